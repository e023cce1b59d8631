"""Area under the ROC curve.

It stands apart from the other metrics because training measures it after each epoch, and a change of the others should
not rerun a training.
"""

import logging

import numpy as np
from numpy.typing import ArrayLike

logger = logging.getLogger("replication")


def roc_auc(positive: ArrayLike, score: ArrayLike, name: str = "class 1") -> float:
    """Return the area under the ROC curve of scores (N,) for outcomes (N,) in {0, 1}.

    NaN where one outcome does not occur; a warning then says so of the class `name`.
    """
    from sklearn.metrics import roc_auc_score

    positive = np.asarray(positive).astype(bool)
    if positive.all() or not positive.any():
        logger.warning("%s is %s among the labels: its ROC-AUC is NaN", name, "alone" if positive.all() else "missing")
        return float("nan")
    return float(roc_auc_score(positive, score))
