"""Controls: other losses on the same trunk, and what the kernels see."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clailearn.alignment import alignment_scores, one_vs_rest, target_matrix
from clailearn.checkpoints import Checkpoint
from clailearn.inference import decide, parzen_means
from clailearn.kernels import Cosine, MahalanobisGaussian
from replication.datasets.prepared import Prepared
from replication.experiments.evaluation import measure_agreement
from replication.experiments.latent import signals_as_seen
from replication.experiments.objectives import measure_alignments, open_space, settle, train_traced
from replication.models.base import create
from replication.models.embedding import Embedded
from replication.models.network_classifiers import prototypical_loss
from replication.models.run import Run
from replication.runs.registry import MODELS
from replication.runs.run import RunId
from replication.runs.settings import merge, model_settings
from support.repository import MINI
from support.training import pictures, rows

CLASSES = 3


def rows_run(name: str, **overrides: Any) -> Run:
    """Open a run of an embedding on rows, with the miniature's settings."""
    model = name if name in MODELS else "clai-m"
    own = {"model": model, "training": {"epochs": 3, "precision": "float32"}}
    settings = merge(model_settings(MINI, "sleepedf-bands", model), own, overrides)
    return Run(rows(), settings, RunId("rows", name, 0), torch.device("cpu"))


def test_prototypical_loss_is_the_published_one_and_leaves_out_classes_without_support() -> None:
    generator = torch.Generator().manual_seed(0)
    support, query = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (6, 4))
    y_support, y_query = torch.tensor([0, 0, 2, 2, 2, 0]), torch.tensor([2, 1, 0, 2])
    means = {k: support[y_support == k].mean(0) for k in (0, 2)}
    losses = []
    for z, label in zip(query, y_query.tolist(), strict=True):
        if label in means:
            squares = {k: (z - mean).square().sum() for k, mean in means.items()}
            losses.append(squares[label] + torch.logsumexp(-torch.stack(list(squares.values())), 0))
    loss = prototypical_loss(support, y_support, query, y_query)
    assert loss.item() == pytest.approx(torch.stack(losses).mean().item())


OBJECTIVES = {
    "clai-m": ["gaussian"], "alignment-m": ["gaussian"], "centred-m": ["gaussian"],
    "clai-c": ["cosine"], "alignment-c": ["cosine"], "centred-c": ["cosine"],
    **{key: ["cosine", "gaussian"] for key in ("cross-entropy", "supervised-contrastive", "prototypical")},
}  # fmt: skip


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_traced_by_its_kernels(objective: str, tmp_path: Path) -> None:
    trace, history = train_traced(rows_run(objective), Checkpoint(tmp_path / "checkpoint.pt", ""))
    assert list(dict.fromkeys(trace["kernel"])) == OBJECTIVES[objective]
    assert history["epoch"].tolist() == [1, 2, 3]
    assert history["validation_accuracy"].iloc[-1] > 0.5
    for _, part in trace.groupby("kernel"):
        assert part["epoch"].tolist() == [0, 1, 2, 3]
        maximised = {"alignment": "alignment", "centred": "centred_alignment"}.get(objective.split("-")[0])
        if maximised:
            assert part[maximised].iloc[-1] > part[maximised].iloc[0] + 0.05


@pytest.mark.parametrize("name", ["clai-m", "cross-entropy"])
def test_tracing_changes_no_loss_of_a_training(name: str, tmp_path: Path) -> None:
    run = rows_run(name)
    _, traced = train_traced(run, Checkpoint(tmp_path / "traced.pt", ""))
    plain = create(name).fit(run, Checkpoint(tmp_path / "plain.pt", ""))
    assert traced["loss"].tolist() == [row["loss"] for row in plain]


def test_traced_alignments_are_those_of_the_model_untrained_and_trained_on_validation_samples(tmp_path: Path) -> None:
    run = rows_run("clai-c")
    trace, _ = train_traced(run, Checkpoint(tmp_path / "traced.pt", ""))
    model = create("clai-c")
    model.fit(run, Checkpoint(tmp_path / "plain.pt", ""))
    with torch.no_grad():
        z = model.network.eval()(run.splits.val.batch(torch.arange(90), None)[0])
        signs = one_vs_rest(run.splits.val.labels, CLASSES)
        target = target_matrix(signs, signs, run.training.target)
        expected = [float(score.mean()) for score in alignment_scores(model.kernel(z, z), target)]
    assert trace.iloc[-1][["alignment", "centred_alignment"]].tolist() == pytest.approx(expected, abs=1e-5)
    untrained = create("clai-c").start(run)
    settle(run, untrained.network)
    first = measure_alignments(run, untrained, torch.arange(90))
    assert trace["alignment"].iloc[0] == pytest.approx(first["alignment, cosine"])


def test_an_untrained_network_has_the_statistics_of_its_training_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken in a drawn order. Here they stand in that of their classes, and a batch of them would be of one."""
    monkeypatch.setattr("replication.experiments.objectives._BLOCK", 80)
    run = rows_run("untrained")
    run.splits.train.x = run.splits.train.x[run.splits.train.labels.argsort()]
    encoder = open_space(run, "untrained").module
    with torch.no_grad():
        features = encoder.standardise(encoder.trunk(run.splits.train.batch(torch.arange(240), None)[0]))
    spread = features.std(0)
    torch.testing.assert_close(spread[spread > 0], torch.ones(int((spread > 0).sum())), atol=0.05, rtol=0)


def test_an_untrained_convolutional_trunk_has_its_filters() -> None:
    own = {"encoder": {"trunk": "convnet", "width": 4}, "training": {"samples": None}}
    run = Run(pictures(), merge(rows_run("clai-m").settings, own), RunId("images", "clai-m", 0), torch.device("cpu"))
    space = open_space(run, "untrained")
    with torch.no_grad():
        z = space.module(run.splits.test.batch(torch.arange(20), None)[0])
    assert z.std(1).min() > 0.01


def clouds(n: int, seed: int) -> Embedded:
    """Return embeddings under the condition of each class, the class moved away from the others."""
    y = torch.arange(n) % CLASSES
    z = torch.randn(CLASSES, n, 4, generator=torch.Generator().manual_seed(seed))
    z[..., 0] += one_vs_rest(y, CLASSES) > 0
    return Embedded(z, y)


def test_rules_agree_on_the_samples_that_neither_or_both_call_positive() -> None:
    """A third of the samples is positive, and the offset 1 - 2p of the printed rule calls more of them so."""
    run, kernel = rows_run("clai-m", inference={"references": "all"}), MahalanobisGaussian(4, "identity")
    train, test = clouds(300, 0), clouds(200, 1)
    found = measure_agreement(run, kernel, {"train": train, "test": test})
    means = parzen_means(kernel, test.z, train.z, train.y)
    called = [float((decide(means, rule) > 0).double().mean()) for rule in ("printed", "parzen")]
    assert called[0] > called[1]
    value, share = (found.set_index("quantity")[column] for column in ("value", "share"))
    assert (share["agreement"], share["equal_agreement"]) == pytest.approx((1 / 3, 0.5))
    assert value["agreement"] == pytest.approx(1 - (called[0] - called[1]), abs=1e-6)
    assert 0.5 < value["class_agreement"] <= 1
    assert value["equal_agreement"] == 1, "both compare the same means"


def test_signals_as_the_cosine_kernel_sees_them_have_no_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signals of a stay grow together in its event, which changes their distance and no direction."""
    hours, stays = 10, 6
    y = np.tile(np.r_[np.zeros(5, int), np.ones(5, int)], stays)
    groups = np.repeat(np.arange(stays), hours)
    generator = np.random.default_rng(0)
    direction = generator.standard_normal((len(y), 4))
    z = torch.from_numpy(direction * np.where(y, 5.0, 1.0)[:, None])
    run = Run(
        Prepared({"kind": "recordings"}, {"groups_all": groups, "hours_all": np.arange(len(y)), "y_all": y}),
        {}, RunId("stays", "clai-m", 0, 0), torch.device("cpu"),
    )  # fmt: skip
    everything = np.ones(len(y), dtype=bool)
    monkeypatch.setattr("replication.experiments.latent.recording_rows", lambda *_: (everything,) * 3)
    effect = {}
    for kernel in (MahalanobisGaussian(4, "identity").double(), Cosine()):
        found, _ = signals_as_seen(run, kernel, Embedded(z.unsqueeze(0), torch.from_numpy(y)))
        effect[kernel.name] = found.set_index("quantity")["value"]["area_effect_seen"]
    assert effect["gaussian"] > 3
    assert abs(effect["cosine"]) < 1
