"""Area under the ROC curve, apart from the other metrics: training measures it after each epoch and should rerun for no other.

A quantity that needs a class which does not occur is NaN, and a warning names the class.
"""

import logging

import numpy as np
from numpy.typing import ArrayLike

logger = logging.getLogger("clai")


def roc_auc(positive: ArrayLike, score: ArrayLike, name: str = "class 1") -> float:
    """Area under the ROC curve of scores (N,) for outcomes (N,) in {0, 1}; NaN, with a warning, if one does not occur."""
    from sklearn.metrics import roc_auc_score

    positive = np.asarray(positive).astype(bool)
    if positive.all() or not positive.any():
        logger.warning("%s is %s among the labels: its ROC-AUC is NaN", name, "alone" if positive.all() else "missing")
        return float("nan")
    return float(roc_auc_score(positive, score))
