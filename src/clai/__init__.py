"""Collaborative Learning and Inference (CLaI): kernels learned by alignment for Bayes classification.

`CLaIClassifier` is the method as a scikit-learn estimator. Its first use imports it, so that parts of the package that need no
PyTorch do not wait for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clai.estimator import CLaIClassifier

__all__ = ["CLaIClassifier"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from clai import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
