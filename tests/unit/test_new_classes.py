"""Classes that training leaves out, and that references then bring in."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from clailearn.checkpoints import Checkpoint
from clailearn.errors import InputError
from clailearn.inference import RULES
from replication.datasets.prepared import Prepared
from replication.experiments.studies import _kept, run_cell
from replication.experiments.unseen import OUTSIDE, Replaced
from replication.models.run import Run
from replication.report.tables.uses import NUMBERS, chosen_read_outs
from replication.runs.identity import RunId
from support.repository import REAL

CPU = torch.device("cpu")
CLASSES = 4


def data() -> Prepared:
    """Four classes of features, each far from the others in a dimension of its own."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, n in (("train", 200), ("val", 40), ("test", 80)):
        y = np.arange(n) % CLASSES
        arrays |= {f"x_{split}": (rng.normal(size=(n, CLASSES)) + 6 * np.eye(CLASSES)[y]), f"y_{split}": y}
    norm = {"mean": [0.0] * CLASSES, "sd": [1.0] * CLASSES}
    return Prepared({"kind": "features", "classes": list("abcd"), "normalisation": {"train": norm}}, arrays)


def run(model: str, left_out: int, **training: object) -> Run:
    small = {"epochs": 8, "batch_size": 16, "precision": "float32", "left_out_classes": left_out}
    chosen = REAL | {
        "model": model,
        "embedding_size": 8,
        "encoder": {"trunk": "mlp", "width": 16, "layers": 1},
        "training": REAL["training"] | small | training,
        "inference": REAL["inference"] | {"validation_references": 40},
    }
    return Run(data(), chosen, RunId("study", "cell", 3), CPU)


def test_training_never_sees_the_class_left_out_and_numbers_the_others_anew() -> None:
    without = run("clai-m", 1)
    (left_out,) = without.left_out
    assert without.classes == 3
    for part, whole in zip(without.splits, without.whole, strict=True):
        kept = whole.labels != left_out
        assert torch.equal(part.x, whole.x[kept])
        assert torch.equal(part.labels, whole.labels[kept] - (whole.labels[kept] > left_out).long())
    assert {*whole.labels.tolist()} == {0, 1, 2, 3}


def test_of_a_class_left_out_the_number_of_references_is_kept_and_a_larger_number_holds_the_smaller() -> None:
    labels = np.array([0, 1, 2, 1, 1, 0, 2, 1])
    kept = {number: set(np.flatnonzero(_kept(labels, [1], number)).tolist()) for number in (1, 2, None)}
    assert kept == {1: {0, 1, 2, 5, 6}, 2: {0, 1, 2, 3, 5, 6}, None: set(range(8))}


@pytest.mark.parametrize(
    "model", ["clai-m", "unconditioned-m", "unconditioned-c", "prototypical", "duq", "cross-entropy"]
)
def test_references_bring_in_a_class_that_training_left_out(model: str, tmp_path: Path) -> None:
    without = run(model, 1)
    metrics = run_cell(without, without.splits, Checkpoint(tmp_path / "c.pt", "a")).evaluation.metrics
    added = metrics[metrics["shares"].isin(NUMBERS)]
    votes = {"centroid", "nearest"} if model in ("clai-m", "duq") else {*RULES, "equal-shares", "centroid", "nearest"}
    assert set(added["rule"]) == votes, "without an embedding for the class there is no vote"
    found = added.set_index(["rule", "shares", "metric"])["value"]
    new, old, whole = (found["centroid", "all", metric] for metric in ("new_accuracy", "old_accuracy", "accuracy"))
    assert min(new, old) > 0.9
    assert whole == pytest.approx(0.25 * new + 0.75 * old)
    unseen = metrics[metrics["metric"] == "unseen_auroc"].set_index(["shares", "rule"])["value"]
    assert len(unseen) == 9
    assert unseen["left-out", "nearest"] > 0.9, "in features of four dimensions a class left out is far from the others"


def test_an_outside_set_is_drawn_by_the_seed_alone() -> None:
    items = Replaced(run("clai-m", 0).splits.test, OUTSIDE["noise"], seed=1)
    first, again = (items.batch(torch.arange(5), None)[0] for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, Replaced(items.items, OUTSIDE["noise"], seed=2).batch(torch.arange(5), None)[0])


def test_at_least_three_classes_remain() -> None:
    with pytest.raises(InputError, match=r"left_out_classes: found 2 of 4 classes"):
        _ = run("clai-m", 2).classes


def test_tables_show_the_read_out_that_validation_samples_choose() -> None:
    rows = [
        ("cell", seed, rule, "5", metric, value)
        for seed in (0, 1)
        for rule, validated, tested in (("nearest", 0.6, 0.9), ("centroid", 0.7, 0.5))
        for metric, value in (("validation_balanced_accuracy", validated), ("balanced_accuracy", tested))
    ]
    metrics = pd.DataFrame(rows, columns=["model", "seed", "rule", "shares", "metric", "value"])
    chosen = chosen_read_outs(metrics)
    assert set(chosen["rule"]) == {"centroid"}
    assert chosen.loc[chosen["metric"] == "balanced_accuracy", "value"].tolist() == [0.5, 0.5]
