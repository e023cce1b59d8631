"""Claim 10 on learned embeddings: the printed rule against the Parzen-window Bayes rule, with the class shares of the data."""

from collections.abc import Mapping

import pandas as pd

from clai.inference import decide, log_posteriors, predict_labels
from clai.kernels import Kernel
from replication.models.embedding import Embedded, similarity_means
from replication.models.run import Run

AGREEMENT_COLUMNS = ["share", "quantity", "value"]


def measure_agreement(run: Run, kernel: Kernel, embedded: Mapping[str, Embedded]) -> pd.DataFrame:
    """Return how often the rules `printed` and `parzen` decide alike on the test samples of a run of CLaI-M.

    The Parzen form of the learned Gaussian kernel is a density up to a constant. Training samples are references.

    Returns:
        `AGREEMENT_COLUMNS`: for the class share of each condition, conditions with equal shares together, agreement, the share of
        test samples that f > 0 of both rules decides alike. For many classes, with an empty share, class_agreement, the share of
        test samples that get the same class.
    """
    means = similarity_means(run, kernel, embedded["test"], embedded["train"])
    printed, parzen = (decide(means, rule) > 0 for rule in ("printed", "parzen"))
    alike = (printed == parzen).double().mean(1).tolist()
    rows = [(share, "agreement", value) for share, value in zip(means.share[:, 0].tolist(), alike, strict=True)]
    if len(means.share) > 1:
        same = predict_labels(decide(means, "printed")) == predict_labels(log_posteriors(means))
        rows.append((float("nan"), "class_agreement", float(same.double().mean())))
    found = pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)
    return found.groupby(["share", "quantity"], as_index=False, dropna=False, sort=False).mean()
