"""Read-outs: classifiers of one fixed embedding, CLaI's vote among them, so that embedding and read-out can be told apart.

Every read-out is fitted on the same drawn training samples, is tuned on the same drawn validation samples, and is scored once on
all test samples. CLaI has an embedding for each condition. A read-out of all classes sees them side by side, in the coordinates
in which distances order pairs as the kernel does. Where it needs a kernel, it has the mean over conditions of the learned one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid, NeighborhoodComponentsAnalysis
from sklearn.svm import SVC
from torch import Tensor

from clailearn.inference import decide, log_posteriors, parzen_means
from clailearn.kernels import Kernel
from replication.models.base import log_odds
from replication.models.embedding import Embedded, coordinates
from replication.models.row_classifiers import LogisticRegression, varying
from replication.models.run import Run
from replication.runs.controls import READ_OUT_COMPONENTS

Floats = NDArray[np.float64]
READ_OUT_COLUMNS = ["read_out", "metric", "value"]
VALIDATION_SAMPLES = 2000
"""Validation samples that choose a width, a penalty or a number of neighbours."""
WIDTHS = (0.1, 0.2, 0.3, 0.5)
"""Of the Gaussian windows, in root mean square distances."""
INVERSE_PENALTIES = (0.1, 1, 10)
"""Scikit-learn's C, of the support vector machine and the regression."""
NEIGHBOURS = (1, 5, 20, 50, 100)
"""Numbers of nearest neighbours."""
COMPONENT_SAMPLES, COMPONENT_STEPS = 1000, 30
"""Training samples of neighbourhood components analysis, and the limit of its steps."""
# Rows of scores that a read-out computes at once.
_ROWS = 4096


class Split(NamedTuple):
    """Samples of a split: their embedding, its coordinates side by side (N, K D), and their labels (N,)."""

    embedded: Embedded
    x: NDArray[np.float32]
    y: NDArray[np.int64]


Scores = Callable[[Split], Floats]
"""Of the samples of a split, (N, C), or of two classes (N,): positive above 0."""


def measure_read_outs(run: Run, kernel: Kernel, embedded: Mapping[str, Embedded]) -> pd.DataFrame:
    """Fit every read-out on `train`, choose on `val`, and return its accuracy on `test`, as `READ_OUT_COLUMNS`."""
    kernel = kernel.cpu().eval()
    x = {name: coordinates(kernel, part.z).contiguous().numpy() for name, part in embedded.items()}
    columns = varying(x["train"])  # some read-outs divide by the spread within classes
    parts = {name: Split(part, x[name][:, columns], part.y.numpy()) for name, part in embedded.items()}
    train, val, test = (parts[name] for name in ("train", "val", "test"))
    rows = [(name, "accuracy", _accuracy(f, test.y)) for name, f in _score_all(run, kernel, train, val, test)]
    return pd.DataFrame(rows, columns=READ_OUT_COLUMNS)


def _score_all(run: Run, kernel: Kernel, train: Split, val: Split, test: Split) -> Iterator[tuple[str, Floats]]:
    """Yield each read-out with its scores of the test samples."""
    classes, seed = run.classes, run.id.seed
    references = train.embedded
    means = parzen_means(kernel, test.embedded.z, references.z, references.y, classes=max(run.conditions, 2))
    parzen = log_posteriors(means) if run.conditions > 1 else decide(means, "parzen")
    for read_out, f in (("vote", decide(means, "printed")), ("parzen", parzen)):
        yield read_out, (f.T if run.conditions > 1 else f[0]).double().numpy()
    yield "kernel-density", _density(train, val, test, classes)
    yield "svm", _choose(INVERSE_PENALTIES, lambda c: _machine(kernel, train, c, seed), val, test)
    yield "centroid", NearestCentroid().fit(train.x, train.y).decision_function(test.x)
    yield "neighbours", _choose(NEIGHBOURS, lambda k: _neighbours(train, k), val, test)
    components = NeighborhoodComponentsAnalysis(
        min(READ_OUT_COMPONENTS, train.x.shape[1]), init="pca", max_iter=COMPONENT_STEPS, random_state=seed
    )
    drawn = np.sort(np.random.default_rng(seed).permutation(len(train.y))[:COMPONENT_SAMPLES])
    components.fit(train.x[drawn], train.y[drawn])
    near, near_val, near_test = (part._replace(x=components.transform(part.x)) for part in (train, val, test))
    yield "components", _choose(NEIGHBOURS, lambda k: _neighbours(near, k), near_val, near_test)
    linear = LogisticRegression().fit_rows(
        train.x, train.y, val.x, val.y,
        inverse_penalty=INVERSE_PENALTIES, samples_per_class=len(train.y), seed=seed,
    )  # fmt: skip
    yield "linear", linear.score_rows(test.x)


def _choose(values: Sequence[Any], fit: Callable[[Any], Scores], val: Split, test: Split) -> Floats:
    """Score test samples by the read-out that decides most validation samples rightly, the first of equals."""
    read_outs = [fit(value) for value in values]
    return max(read_outs, key=lambda read_out: _accuracy(read_out(val), val.y))(test)


def _accuracy(score: Floats, y: NDArray[np.int64]) -> float:
    return float(((score.argmax(1) if score.ndim == 2 else score > 0) == y).mean())


def _in_blocks(scores: Callable[[slice], Floats], count: int) -> Floats:
    return np.concatenate([scores(slice(first, first + _ROWS)) for first in range(0, count, _ROWS)])


def _machine(kernel: Kernel, train: Split, c: float, seed: int) -> Scores:
    """Fit a support vector machine with the mean Parzen form (1 + S) / 2, positive semidefinite where S is not, as its kernel."""
    z = train.embedded.z

    @torch.no_grad()
    def gram(rows: Tensor) -> Floats:
        return ((1 + kernel(rows, z)) / 2).mean(0).double().numpy()

    machine = SVC(C=c, kernel="precomputed", decision_function_shape="ovr", cache_size=1000, random_state=seed)
    machine.fit(gram(z), train.y)
    return lambda part: _in_blocks(lambda rows: machine.decision_function(gram(part.embedded.z[:, rows])), len(part.y))


def _neighbours(train: Split, count: int) -> Scores:
    """Fit the nearest neighbours; scores are logarithms of class counts, each class counting one more than it has."""
    count = min(count, len(train.y))
    classifier = KNeighborsClassifier(count, algorithm="brute").fit(train.x, train.y)
    return lambda part: log_odds(np.log(classifier.predict_proba(part.x) * count + 1))


def _density(train: Split, val: Split, test: Split, classes: int) -> Floats:
    """Score by the Bayes rule with Gaussian windows; validation samples choose the width, in root mean square distances."""
    scale = float(np.sqrt(train.x.var(0).sum()))
    centre = train.x.mean(0)
    references = torch.from_numpy(train.x - centre).double()
    log_prior = np.log(np.bincount(train.y, minlength=classes) / len(train.y))
    members = [np.flatnonzero(train.y == k) for k in range(classes)]

    def scores(width: float) -> Scores:
        def of_rows(x: NDArray[np.float32]) -> Floats:
            squared = torch.cdist(torch.from_numpy(x - centre).double(), references).square().numpy()
            exponent = -squared / (2 * (width * scale) ** 2)
            logs = [logsumexp(exponent[:, m], axis=1) - np.log(len(m)) for m in members]
            return np.asarray(log_softmax(np.stack(logs, 1) + log_prior, axis=1))

        return lambda part: log_odds(_in_blocks(lambda rows: of_rows(part.x[rows]), len(part.y)))

    return _choose(WIDTHS, scores, val, test)
