"""One cell of a study: fit a model with the cell's settings, and measure it on the samples that the study is scored on."""

import copy
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from torch.utils.flop_counter import FlopCounterMode

from clailearn.checkpoints import Checkpoint
from clailearn.encoders import place
from clailearn.inference import RULES, decide, parzen_means
from clailearn.kernels import Kernel
from replication.experiments.evaluation import Evaluation, evaluate
from replication.experiments.unseen import measure_unseen
from replication.models.base import Network, View, create
from replication.models.batches import Splits
from replication.models.embedding import Embedded, coordinates, embed
from replication.models.run import Run

NUMBERS = (1, 5, 50, None)
"""References of each class that training left out; None: all that there are. The other classes keep all of theirs."""
# A few items: the count is proportional to their number, and BatchNorm needs two.
_ITEMS = 4


class Cell(NamedTuple):
    """The results of a cell.

    evaluation: on the samples that the study is scored on; with classes that training left out, of the other classes, then of
    all classes (`measure_new_classes`), and of what is unseen (`measure_unseen`). history: a row an epoch; of a network,
    `operations` are the floating-point operations up to the end of each epoch. figures: for the record of the run, the choices of
    the fit among them; `training_seconds` include validation, and the time of interrupted processes up to their checkpoint.
    """

    evaluation: Evaluation
    history: pd.DataFrame
    figures: dict[str, Any]


def run_cell(run: Run, splits: Splits, checkpoint: Checkpoint) -> Cell:
    """Fit the model of a cell on these splits, and evaluate it on all their test samples."""
    started = time.perf_counter()
    model = create(run.model)
    epochs = model.fit(run, splits, checkpoint)
    seconds = checkpoint.earlier + time.perf_counter() - started
    figures: dict[str, Any] = {"training_seconds": round(seconds, 2), **model.choices}
    history = pd.DataFrame(epochs or {"epoch": []})
    if isinstance(model, Network):
        per_item = operations_per_item(run, model)
        if per_item is not None:
            history["operations"] = history["epoch"] * model.passes(run) * len(splits.train) * per_item
    evaluation = evaluate(run, model, splits)
    if isinstance(model, Network) and run.settings["training"].get("left_out_classes") is not None:
        view = model.views()[0]
        place(view.module, run.device)
        added = [measure_new_classes(run, view), *([measure_unseen(run, model, view)] if run.left_out else [])]
        evaluation = evaluation._replace(metrics=pd.concat([evaluation.metrics, *added], ignore_index=True))
    return Cell(evaluation, history, figures)


def operations_per_item(run: Run, model: Network) -> float | None:
    """Count the operations of one training item in a model's network, forward and backward.

    A multiplication and an addition are two operations, as Jordan (2024, arXiv 2404.00498) counts. PyTorch's counter knows
    convolutions and matrix products, from their shapes; the layout in memory and the precision change nothing. Normalisation,
    activations, the loss and the optimiser are not counted: together they are a few per cent. None for recordings, because the
    counter does not know recurrent layers.
    """
    if run.data.info["kind"] == "recordings":
        return None
    model = copy.deepcopy(model)
    model.module.cpu().train()
    x = run.splits.train.batch(torch.arange(_ITEMS), None)[0].cpu()
    with FlopCounterMode(display=False) as counter:
        model.forward(run, x).sum().backward()
    return counter.get_total_flops() / _ITEMS


def measure_new_classes(run: Run, view: View) -> pd.DataFrame:
    """Return the accuracy of read-outs of a model's embedding, with classes that its training left out among the references.

    References are the run's training samples, of each class left out as many as `NUMBERS` says; the run's seed draws them, and
    more hold fewer. An embedding under conditions has none for a new class, so it decides by distances over all of its
    conditions, side by side.

    Columns: rule, shares (references of each class left out: 1, 5, 50 or all), metric and value. old_accuracy
    is of test samples whose class training had, new_accuracy of the others; validation_balanced_accuracy may choose a read-out.
    """
    references, val, test = (embed(run, view.module, items) for items in run.whole)
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


def _kept(labels: NDArray[np.int64], left_out: list[int], number: int | None) -> NDArray[np.bool_]:
    """Return which references stay (N,): of each class left out the first `number`."""
    place = pd.Series(labels).groupby(labels).cumcount().to_numpy()
    return (place < (len(labels) if number is None else number)) | ~np.isin(labels, left_out)


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
