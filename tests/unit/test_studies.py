"""Cells of the studies: each model trains, is measured by every rule, and counts what the encoder did."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clailearn.checkpoints import Checkpoint
from clailearn.encoders import MLP, ConditionedHead, Encoder
from clailearn.inference import RULES
from clailearn.kernels import Cosine
from clailearn.learning import collaborative_learning, encoder_passes
from replication.datasets.prepared import DEVELOPMENT
from replication.experiments.evaluation import SHARES, operations_per_item, run_cell
from replication.models import clai
from replication.models.base import create, draw_references
from replication.models.clai import CLaI, build_clai
from replication.models.items import NO_AUGMENTATION, recording_rows
from replication.models.run import Run
from replication.runs.registry import MODELS, fitted_on
from replication.runs.run import RunId
from replication.runs.settings import Settings, merge, pass_on
from support.repository import REAL
from support.training import SETTINGS, Recorded, pictures, recordings, rows

CPU = torch.device("cpu")


def settings(model: str, **training: Any) -> dict[str, Any]:
    small = {"epochs": 12, "batch_size": 8, "precision": "float32", "samples": 64, "augmentation": NO_AUGMENTATION}
    encoder = {"trunk": "resnet2d", "width": 4, "blocks": [1], "pool": True}
    inference = {"validation_references": 20, "validation_samples": 10}
    own = {
        "model": model,
        "embedding_size": 4,
        "encoder": encoder,
        "inference": inference,
        "training": small | training,
    }
    passed_on = ["threads", "device", "encoder", "target", "training", "normalise_test_separately"]
    return Settings(pass_on(merge(REAL, own), model, [*passed_on, "validation_share_recordings"]), "train_model")


TRAINED = [model for model in fitted_on("samples") if not MODELS[model].recordings_only]


@pytest.mark.parametrize("model", TRAINED)
def test_every_model_learns_the_classes_and_is_measured(model: str, tmp_path: Path) -> None:
    run = Run(pictures(), settings(model), RunId("study", "cell", 0), CPU)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "a")
    _, evaluation, history = run_cell(run, checkpoint)
    metrics = evaluation.metrics
    accuracy = metrics[metrics["metric"] == "accuracy"].set_index("rule")["value"]
    by_rules = isinstance(create(model), CLaI)
    assert set(accuracy.index) == (set(RULES) if by_rules else {""})
    assert set(metrics["shares"]) == ({"population"} if by_rules else {""})
    assert accuracy.max() > 0.6
    decided = evaluation.predictions.probability.argmax(axis=1) == run.data["y_test"]
    assert decided.mean() == pytest.approx(accuracy["printed" if by_rules else ""])
    assert history["validation_accuracy"].notna().all()
    views = 2 if model == "supervised-contrastive" else 1
    per_item = operations_per_item(run, create(run.model).build(run))
    assert history["operations"].tolist() == pytest.approx([views * 64 * epoch * per_item for epoch in range(1, 13)])


@pytest.mark.parametrize("model", ["clai-m", "parzen-vote"])
def test_all_references_of_a_class_vote_as_all_do_and_fewer_may_not(model: str, tmp_path: Path) -> None:
    chosen = settings(model)
    members = 64  # more than any class has
    chosen["inference"] = chosen["inference"] | {"fewer_references": [2, members], "witnesses": 3}
    run = Run(pictures(), chosen, RunId("study", "cell", 0), CPU)
    metrics, _, predictions = run_cell(run, Checkpoint(tmp_path / "checkpoint.pt", "a"))[1]
    assert (predictions.witnesses is not None) == (model == "clai-m"), "the Parzen vote names none"
    assert "degrees_of_freedom" not in set(metrics["metric"])
    value = metrics[metrics["rule"].isin(["", "printed"])].set_index("metric")["value"]
    for metric in ("accuracy", "log_loss", "log_loss_scaled"):
        assert value[f"{metric}_of_{members}"] == pytest.approx(value[metric], abs=1e-6)
    assert value["log_loss_of_2"] != value["log_loss"]


def test_with_one_embedding_the_parzen_vote_gives_posteriors_and_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(clai, "collaborative_learning", lambda *own: given.extend(own) or collaborative_learning(*own))
    chosen = settings("parzen-vote")
    chosen["baselines"]["parzen_vote"] |= {"conditioning": None, "memory": 77}
    run = Run(pictures(), chosen, RunId("study", "cell", 0), CPU)
    untrained = create("parzen-vote").start(run)
    assert np.exp(untrained.scores(run, run.splits.test)).sum(axis=1) == pytest.approx(1)
    metrics = run_cell(run, Checkpoint(tmp_path / "checkpoint.pt", "a"))[1].metrics
    assert given[4] == replace(run.training, loss="parzen", memory=77, conditioning=None)
    assert float(metrics.set_index("metric")["value"]["accuracy"]) > 0.6


@pytest.mark.parametrize("model", ["clai-c", "cross-entropy"])
def test_a_study_measures_tails_and_other_class_shares_where_it_is_told(model: str, tmp_path: Path) -> None:
    chosen = settings(model)
    chosen["inference"] = chosen["inference"] | {"tail_samples": 20, "varied_shares": [0.1, 0.5]}
    run = Run(pictures(), chosen, RunId("study", "cell", 0), CPU)
    metrics = run_cell(run, Checkpoint(tmp_path / "checkpoint.pt", "a"))[1].metrics
    rows = metrics[metrics["metric"] == "degrees_of_freedom"]
    assert len(rows) == 1
    assert rows["value"].item() >= 1
    agreement = metrics.set_index("metric")["value"].filter(like="agreement_at")
    if model == "clai-c":
        assert agreement["agreement_at_0.5"] == 1, "both rules compare the same means"
        assert 0.5 < agreement["agreement_at_0.1"] < 1
    else:
        assert agreement.empty


def test_references_while_training_have_a_sample_of_each_class() -> None:
    chosen = settings("clai-m")
    chosen["inference"]["validation_references"] = 1
    run = Run(pictures(), chosen, RunId("study", "cell", 0), CPU)
    assert sorted(run.splits.train.labels[draw_references(run)].tolist()) == [0, 1, 2]


def test_labels_in_a_drawn_order_are_those_of_training_alone() -> None:
    plain, drawn = (
        Run(pictures(), settings("clai-m", shuffled_labels=shuffled), RunId("study", "cell", 0), CPU).splits
        for shuffled in (False, True)
    )
    assert torch.equal(plain.train.labels.bincount(), drawn.train.labels.bincount())
    assert not torch.equal(plain.train.labels, drawn.train.labels)
    assert torch.equal(plain.val.labels, drawn.val.labels)
    assert torch.equal(plain.test.labels, drawn.test.labels)


@pytest.mark.parametrize("model", ["clai-m", "cross-entropy", "supervised-contrastive"])
def test_a_mirrored_image_has_the_scores_of_the_image(model: str) -> None:
    chosen = settings(model)
    chosen["inference"] = chosen["inference"] | {"mirror": True}
    run = Run(pictures(), chosen, RunId("study", "cell", 0), CPU)
    started = create(model).start(run)
    scores = started.scores(run, run.splits.test)
    run.splits.test.x = run.splits.test.x.flip(2)
    np.testing.assert_allclose(started.scores(run, run.splits.test), scores, atol=1e-5)


def settings_of_recordings(model: str = "clai-c", **own: Any) -> dict[str, Any]:
    small = settings(model, samples=None, epochs=8, batch_size=4, pair_weighting="balanced", learning_rate=0.02)
    encoder = {"trunk": "gru", "width": 8, "layers": 1, "dropout": 0.0, "head": "linear"}
    return Settings(small | {"encoder": encoder, **own}, "run_cell")


def test_a_trial_of_the_deep_kernel_process_reads_what_its_rule_passes_on_and_no_more(tmp_path: Path) -> None:
    run = Run(recordings(), settings_of_recordings("deep-kernel-gp"), RunId("study", "cell", 0, 1), CPU)
    metrics = run_cell(run, Checkpoint(tmp_path / "checkpoint.pt", "a"))[1].metrics
    assert metrics.set_index("metric").loc["auroc", "value"] > 0.8


def test_a_cell_learns_and_is_measured_on_recordings_by_every_rule_and_both_shares(tmp_path: Path) -> None:
    run = Run(recordings(), settings_of_recordings(), RunId("study", "cell", 0, 1), CPU)
    _, evaluation, _ = run_cell(run, Checkpoint(tmp_path / "checkpoint.pt", "a"))
    value = evaluation.metrics.set_index(["rule", "shares", "metric"])["value"]
    assert value["printed", "equal", "auroc"] > 0.8
    assert {"f1_validation", "auprc", "ece_positive_rate"} <= set(evaluation.metrics["metric"])
    assert {key[:2] for key in value.index} == {(rule, shares) for rule in RULES for shares in SHARES}
    assert len(run.splits.test) == 13


def test_a_cell_scored_on_development_sees_development_patients_alone_and_one_test_part_for_all_seeds() -> None:
    data = recordings()
    stay, folds = (np.asarray(data[f"{name}_all"]) for name in ("groups", "folds"))
    chosen = settings_of_recordings(scored_on="development", split_seed=5)
    rows = [recording_rows(data, chosen, RunId("study", "cell", seed)) for seed in (0, 1)]
    parts = [[set(stay[part]) for part in of_seed] for of_seed in rows]
    for train, val, test in parts:
        assert sorted([*train, *val, *test]) == sorted(set(stay[folds == DEVELOPMENT]))
    assert parts[0][2] == parts[1][2]
    assert parts[0][1] != parts[1][1]
    run = Run(data, chosen, RunId("study", "cell", 0), CPU)
    assert [len(part) for part in run.splits] == [len(part) for part in parts[0]]


def test_development_patients_are_in_no_part_of_any_fold() -> None:
    data = recordings()
    stay, folds = (np.asarray(data[f"{name}_all"]) for name in ("groups", "folds"))
    for fold in (0, 1):
        parts = recording_rows(data, settings_of_recordings(), RunId("icu", "clai-c", 0, fold))
        assert not set(np.concatenate([stay[part] for part in parts])) & set(stay[folds == DEVELOPMENT])


def test_samples_are_a_choice_of_the_training_samples_by_seed() -> None:
    parts = [Run(pictures(), settings("clai-c"), RunId("study", "cell", seed), CPU).splits for seed in (0, 0, 1)]
    assert [len(part.train) for part in parts] == [64] * 3
    assert [len(part.val) for part in parts] == [30] * 3
    first, again, other = (part.train.batch(torch.arange(64), None)[0] for part in parts)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("schedule", ["joint", "sequential"])
@pytest.mark.parametrize("references", [1, 2, 3, "all"])
def test_passes_are_what_the_encoder_is_sent(schedule: Any, references: Any) -> None:
    given = replace(SETTINGS, epochs=1, schedule=schedule, references=references)
    items = Recorded(torch.randn(60, 3), torch.arange(60) % 3)
    encoder = Encoder(MLP(3, 4, 1), ConditionedHead(4, 3, 2))
    collaborative_learning(encoder, Cosine(), items, 3, given, dict, None)
    assert encoder_passes(60, 3, given) == pytest.approx(sum(len(labels) for _, labels in items.batches) / 60)


@pytest.mark.parametrize(("model", "outputs"), [("clai-m", 3 * 4), ("cross-entropy", 3)])
def test_operations_are_those_of_a_count_by_hand(model: str, outputs: int) -> None:
    """Two a weight forward, as many for its gradient, and as many for the inputs, of which the first layer's need none."""
    own = {"model": model, "embedding_size": 4, "encoder": {"trunk": "mlp", "width": 8, "layers": 1}}
    run = Run(rows(), merge(REAL, own), RunId("study", "cell", 0), CPU)
    assert operations_per_item(run, create(model).build(run)) == 2 * 2 * 4 * 8 + 3 * 2 * 8 * outputs


def test_the_columns_of_an_orthonormal_head_stay_so_under_weight_decay() -> None:
    block = {"trunk": "mlp", "width": 8, "layers": 1, "head": "orthonormal"}
    own = {"encoder": block, "embedding_size": 4, "kernel": {"metric": "full"}}
    encoder, kernel = build_clai(own, "clai-m", 3, 2, 0)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=0.1, weight_decay=0.1)
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        optimiser.zero_grad()
        z = encoder(x)
        kernel(z, z).mean().backward()
        optimiser.step()
    columns = encoder.head.weight.detach()
    torch.testing.assert_close(columns.mT @ columns, torch.eye(4).expand(2, 4, 4), atol=1e-5, rtol=0)
