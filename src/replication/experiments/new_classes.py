"""Classes that training left out, added as references without training: what each embedding then tells apart."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from clai.batches import Splits
from clai.encoders import place
from clai.inference import RULES, decide, parzen_means
from clai.kernels import Kernel
from replication.experiments.embeddings import embed_parts
from replication.models.base import Network
from replication.models.embedding import Embedded, coordinates
from replication.models.run import Run

NUMBERS = (1, 5, 50, None)
"""References of each class that training left out; None: all that there are. The other classes keep all of theirs."""
READ_OUTS: dict[str, str] = {
    **{rule: f"Vote, {rule}" for rule in RULES},
    "equal-shares": "Parzen, equal shares",
    "nearest": "Nearest reference",
    "centroid": "Nearest class mean",
}
"""What decides, with the names in tables; the votes need one embedding for all classes."""

Labels = NDArray[np.int64]


def measure_new_classes(run: Run, model: Network) -> pd.DataFrame:
    """Return the accuracy of read-outs of a model's embedding, with classes that its training left out among the references.

    References are the run's training samples, of each class left out as many as `NUMBERS` says; the run's seed draws them, and
    more hold fewer. An embedding under conditions has none for a new class, so it decides by distances over all of its
    conditions, side by side.

    Columns: rule (of `READ_OUTS`), shares (references of each class left out: 1, 5, 50 or all), metric and value. old_accuracy
    is of test samples whose class training had, new_accuracy of the others; validation_balanced_accuracy may choose a read-out.
    """
    view = model.views()[0]
    place(view.module, run.device)
    references, val, test = embed_parts(run, view, dict.fromkeys(Splits._fields), run.whole).values()
    kernel, y = view.kernel.cpu().eval(), test.y.numpy()
    shuffled = np.random.default_rng(run.id.seed).permutation(len(references.y))
    rows = []
    for number in NUMBERS if run.left_out else NUMBERS[-1:]:
        kept = shuffled[_kept(references.y.numpy()[shuffled], run.left_out, number)]
        drawn = Embedded(references.z[:, np.sort(kept)], references.y[np.sort(kept)])
        decided = zip(_decisions(kernel, val, drawn), _decisions(kernel, test, drawn), strict=True)
        for (_, predicted_val), (rule, predicted) in decided:
            right, new = predicted == y, np.isin(y, run.left_out)
            measured = {
                "accuracy": right.mean(),
                "balanced_accuracy": balanced_accuracy_score(y, predicted),
                "old_accuracy": right[~new].mean(),
                **({"new_accuracy": right[new].mean()} if new.any() else {}),
                "validation_balanced_accuracy": balanced_accuracy_score(val.y.numpy(), predicted_val),
            }
            rows += [(rule, str(number or "all"), metric, value) for metric, value in measured.items()]
    return pd.DataFrame(rows, columns=["rule", "shares", "metric", "value"])


def _kept(labels: Labels, left_out: list[int], number: int | None) -> NDArray[np.bool_]:
    """Return which references stay (N,): of each class left out the first `number`."""
    kept = np.ones(len(labels), dtype=bool)
    if number is not None:
        for k in left_out:
            kept[np.flatnonzero(labels == k)[number:]] = False
    return kept


@torch.no_grad()
def _decisions(kernel: Kernel, test: Embedded, references: Embedded) -> Iterator[tuple[str, Any]]:
    """Yield each read-out and the classes (P,) that it gives to the test samples."""
    classes = int(references.y.max()) + 1
    if len(test.z) == 1 and classes > 2:
        means = parzen_means(kernel, test.z, references.z, references.y, classes=classes)
        for rule in RULES:
            yield rule, decide(means, rule).argmax(0).numpy()
        yield "equal-shares", means.log_positive.argmax(0).numpy()
    x, x_references = (coordinates(kernel, z).numpy() for z in (test.z, references.z))
    classifiers = {"nearest": KNeighborsClassifier(1, algorithm="brute"), "centroid": NearestCentroid()}
    for read_out, classifier in classifiers.items():
        yield read_out, classifier.fit(x_references, references.y.numpy()).predict(x)
