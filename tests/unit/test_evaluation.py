"""Inference is measured by every rule, two classes under both class shares of the references, from the same similarities."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from clailearn.calibration import fit_logistic, fit_temperature
from clailearn.inference import RULES
from clailearn.kernels import Cosine, MahalanobisGaussian
from replication.datasets.prepared import Prepared
from replication.experiments.evaluation import (
    SHARES,
    Evaluation,
    Scored,
    class_similarity,
    evaluate_clai,
    evaluate_fewer,
    evaluate_scores,
    with_witnesses,
)
from replication.metrics.classification import expected_calibration_error, top_label
from replication.models.base import create
from replication.models.clai import voted
from replication.models.embedding import Embedded, similarity_means
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


def run_of(classes: int, seed: int = 0, **settings: Any) -> Run:
    data = Prepared({"kind": "features", "classes": [str(k) for k in range(classes)]}, {})
    return Run(data, SETTINGS | settings, RunId("rows", "clai-m", seed), torch.device("cpu"))


def evaluated(classes: int) -> Evaluation:
    return evaluate_clai(run_of(classes), KERNEL, embedded(classes))


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
    model = create("clai-m").around(nn.Identity(), KERNEL)
    fewer = evaluate_fewer(run_of(2, miniature=False), model, embedded(2), [160]).set_index("metric")["value"]
    value = evaluated(2).metrics.query("rule == 'printed' and shares == 'population'").set_index("metric")["value"]
    for metric in ("accuracy", "auroc", "log_loss", "log_loss_calibrated"):
        assert fewer[f"{metric}_of_160"] == pytest.approx(value[metric])


def test_witnesses_are_the_most_similar_of_the_class_and_without_them_others_decide() -> None:
    run, parts = run_of(4), embedded(4)
    test, train = parts["test"], parts["train"]
    parts["test"] = test._replace(z_views=test.z[None] + 0.1)
    evaluation = evaluate_clai(run, KERNEL, parts)
    found = with_witnesses(run, KERNEL, parts, evaluation, 30)
    decided, same = evaluation.predictions.score.argmax(1), []
    for n, k in enumerate(decided):
        similarity = KERNEL(test.z[k, n : n + 1], train.z[k]) + KERNEL(test.z[k, n : n + 1] + 0.1, train.z[k])
        order = [r for r in similarity[0].argsort(descending=True).tolist() if train.y[r] == k]
        assert found.predictions.witnesses is not None
        assert found.predictions.witnesses[n].tolist() == order[:30]
        rest = [r for r in range(200) if r not in order[:30]]
        one = Embedded(test.z[:, n : n + 1], test.y[n : n + 1], test.z[None, :, n : n + 1] + 0.1)
        f = voted(similarity_means(run, KERNEL, one, Embedded(train.z[:, rest], train.y[rest])), "printed")
        same.append(f.argmax() == k)
    assert found.metrics.iloc[-1].tolist() == ["printed", "population", "same_without_witnesses", np.mean(same)]
    assert 0 < np.mean(same) < 1


def test_fewer_references_are_drawn_with_the_seed_of_the_run() -> None:
    parts, fewer = embedded(2), {"references": 20}
    runs = [run_of(2, seed, inference=fewer) for seed in (0, 1)]
    first, second = (similarity_means(run, KERNEL, parts["test"], parts["train"]).log_positive for run in runs)
    assert not torch.equal(first, second)


def test_validation_samples_calibrate_and_choose_the_threshold() -> None:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 3, 400)
    score = np.eye(3)[y] + generator.normal(size=(400, 3))
    many = evaluate_scores(run_of(3), Scored(score, y), Scored(5 * score, y))
    assert many.predictions.calibration.temperature == pytest.approx(fit_temperature(5 * score, y))
    score, y = score[:, 1], (y == 1).astype(np.int64)
    two = evaluate_scores(run_of(2), Scored(score, y), Scored(score + 9, y))
    assert two.predictions.calibration.intercept == pytest.approx(fit_logistic(score + 9, y).intercept)
    assert two.metrics.set_index("metric")["value"]["f1_validation"] == 0, "no test score reaches the threshold"


def test_similarity_of_two_classes_is_that_of_their_samples() -> None:
    z = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 3.0]]])
    found = class_similarity(run_of(2), Cosine(), Embedded(z, torch.tensor([0, 1, 0, 1])))
    assert found.to_numpy().tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]]
