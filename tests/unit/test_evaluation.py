"""Inference is measured by every rule, two classes under both class shares of the references, from the same similarities."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from clailearn.inference import RULES
from clailearn.kernels import MahalanobisGaussian
from replication.datasets.prepared import Prepared
from replication.experiments.evaluation import SHARES, Evaluation, evaluate_clai, evaluate_fewer
from replication.metrics.classification import expected_calibration_error, top_label
from replication.models.base import create
from replication.models.embedding import Embedded
from replication.models.run import Run
from replication.runs.run import RunId

KERNEL = MahalanobisGaussian(2, "identity")
SETTINGS: dict[str, Any] = {"inference": {"references": "all"}}


def embedded(classes: int) -> dict[str, Embedded]:
    """Embeddings of each split, a fifth of them of the last class, whose classes overlap."""
    generator = torch.Generator().manual_seed(classes)
    parts = {}
    for split in ("train", "val", "test"):
        y = torch.where(torch.arange(200) % 5 == 0, classes - 1, torch.arange(200) % (classes - 1))
        z = torch.randn(classes if classes > 2 else 1, 200, 2, generator=generator)
        z[..., 0] += 1.5 * (y == torch.arange(classes)[-len(z) :, None])
        parts[split] = Embedded(z, y)
    return parts


def evaluated(classes: int) -> Evaluation:
    data = Prepared({"kind": "features", "classes": [str(k) for k in range(classes)]}, {})
    run = Run(data, SETTINGS, RunId("rows", "clai-m", 0), torch.device("cpu"))
    return evaluate_clai(run, KERNEL, embedded(classes))


def test_two_classes_are_measured_by_every_rule_under_both_shares() -> None:
    metrics = evaluated(2).metrics
    readings = set(metrics[["rule", "shares"]].itertuples(index=False, name=None))
    assert readings == {(rule, shares) for rule in RULES for shares in SHARES}
    value = metrics.set_index(["rule", "shares", "metric"])["value"]
    assert value["printed", "population", "f1"] != value["printed", "equal", "f1"]
    for metric in ("f1", "auroc"):
        of_equal = {value[rule, "equal", metric] for rule in RULES[:3]}
        assert len(of_equal) == 1, "with equal shares the printed rule is the centred and the balanced one"
    assert value["parzen", "population", "ece_positive_rate"] < value["printed", "population", "ece_positive_rate"] / 2


def test_probabilities_of_the_parzen_rule_are_posteriors_that_add_up_to_one() -> None:
    """The reference computes them from densities, without logarithms."""
    parts = embedded(4)
    windows = torch.exp(KERNEL.log_parzen(parts["test"].z, parts["train"].z))
    own = (parts["train"].y == torch.arange(4)[:, None]).float().unsqueeze(-1)
    posterior = ((windows @ own).squeeze(-1) / windows.sum(-1)).T
    posterior = (posterior / posterior.sum(1, keepdim=True)).detach().double().numpy()
    value = evaluated(4).metrics.query("rule == 'parzen'").set_index("metric")["value"]
    y = parts["test"].y.numpy()
    expected = expected_calibration_error(*top_label(y, posterior), bins=15)
    assert value["ece"] == pytest.approx(expected, abs=1e-5)
    assert value["roc_auc"] == pytest.approx(np.mean([roc_auc_score(y == k, posterior[:, k]) for k in range(4)]))


def test_reliability_of_two_classes_gives_the_calibration_errors_of_the_main_reading() -> None:
    result = evaluated(2)
    value = result.metrics.query("rule == 'printed' and shares == 'population'").set_index("metric")["value"]
    for mapping, part in result.reliability.groupby("mapping"):
        gap = ((part["accuracy"] - part["confidence"]).abs() * part["n"]).sum() / part["n"].sum()
        name = "ece_positive_rate" + ("_calibrated" if mapping == "calibrated" else "")
        assert value[name] == pytest.approx(gap)


def test_votes_of_as_many_references_as_there_are_are_those_of_all() -> None:
    data = Prepared({"kind": "features", "classes": ["0", "1"]}, {})
    run = Run(data, SETTINGS | {"miniature": False}, RunId("rows", "clai-m", 0), torch.device("cpu"))
    model = create("clai-m").around(nn.Identity(), KERNEL)
    fewer = evaluate_fewer(run, model, embedded(2), [160]).set_index("metric")["value"]
    value = evaluated(2).metrics.query("rule == 'printed' and shares == 'population'").set_index("metric")["value"]
    for metric in ("accuracy", "auroc", "log_loss", "log_loss_calibrated"):
        assert fewer[f"{metric}_of_160"] == pytest.approx(value[metric])
