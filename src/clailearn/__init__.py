"""Collaborative Learning and Inference (CLaI): kernels learned by alignment for Bayes classification.

`CLaIClassifier` is the method as a scikit-learn estimator. `AlignmentLoss` and `vote` are its two halves, for a training loop of
one's own; `ParzenLoss` is ours. `load` reads a published or a saved model. Their first use imports them, so that a program that
needs `clailearn.errors` alone does not wait for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clailearn.alignment import AlignmentLoss
    from clailearn.estimator import CLaIClassifier, load
    from clailearn.inference import vote
    from clailearn.parzen import ParzenLoss

_HOMES = {
    "AlignmentLoss": "clailearn.alignment",
    "CLaIClassifier": "clailearn.estimator",
    "ParzenLoss": "clailearn.parzen",
    "load": "clailearn.estimator",
    "vote": "clailearn.inference",
}

__all__ = ["AlignmentLoss", "CLaIClassifier", "ParzenLoss", "__version__", "load", "vote"]
__version__ = "0.2.0"


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
