"""Collaborative Learning and Inference (CLaI): kernels learned by alignment for Bayes classification.

`CLaIClassifier` is the method as a scikit-learn estimator. `load` reads a published model and needs the extra `replication`.
Their first use imports them, so that parts of the package that need no PyTorch do not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clai.estimator import CLaIClassifier

# By name the module that has it. The root imports nothing from the layers above it, of which `load` is one.
_HOMES = {"CLaIClassifier": "clai.estimator", "load": "replication.experiments.published_model"}

__all__ = ["CLaIClassifier", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
