"""Training runs: divergence, checkpoints, settings that cannot work, and what turns of classes do to earlier ones."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clailearn.checkpoints import Checkpoint
from clailearn.encoders import ConditionedHead, ConvNet, Encoder, ResNet2d
from clailearn.errors import DivergenceError, InputError
from clailearn.kernels import Cosine, MahalanobisGaussian
from clailearn.learning import collaborative_learning
from clailearn.optimisers import build_optimisers
from clailearn.trainer import Epoch, train
from replication.models.clai import Turns
from support.interruptible import trained
from support.training import SETTINGS, samples, small_encoder


def run(model: Encoder, validate: Callable[[], Epoch] = dict, **changes: Any) -> list[Epoch]:
    settings = dataclasses.replace(SETTINGS, **changes)
    return collaborative_learning(model, Cosine(), samples(), 3, settings, validate, None)


@pytest.mark.parametrize(
    ("model", "kind", "rate"),
    [
        ("deep-kernel-gp", "stays", 100),
        ("deep-kernel-gp", "stays", 1e30),
        ("clai-c", "pictures", 1e5),
        ("clai-m", "stays", 1e5),
    ],
)
def test_numbers_that_are_not_finite_are_divergence(model: str, kind: str, rate: float, tmp_path: Path) -> None:
    """What fails first, a Cholesky factor, a distribution, an embedding or a loss, hangs on rounding."""
    with pytest.raises(DivergenceError, match=r"epoch \d: at step \d of \d .* lower training\.learning_rate\. The"):
        trained(model, kind, {"learning_rate": rate}, Checkpoint(tmp_path / "c.pt", "a"))


def test_an_error_that_is_no_divergence_passes() -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("shapes differ")

    broken = small_encoder()
    broken.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        run(broken)


def test_validation_that_is_not_finite_is_divergence() -> None:
    with pytest.raises(DivergenceError, match=r"epoch 1: at step 4 of 4 the loss is .* not finite"):
        run(small_encoder(), lambda: {"heldout": float("inf")})


@pytest.mark.parametrize(
    ("precision", "advice"),
    [("bfloat16", "lower learning_rate, or set precision to float32"), ("float32", "lower learning_rate")],
)
def test_weights_that_alone_are_not_finite_are_named_and_bfloat16_advised_against(precision: Any, advice: str) -> None:
    model = small_encoder()
    name, weights = list(model.named_parameters())[1]

    def damage() -> dict[str, float]:
        weights.data[0] = float("nan")
        return {}

    with pytest.raises(DivergenceError, match=rf"loss is \d\S* and weights .* finite, 0\.{name} first.*; {advice}$"):
        run(model, damage, precision=precision)


@pytest.mark.parametrize(
    ("schedule", "fall"),
    [("triangular", lambda part: 1 - part), ("one_cycle", lambda part: (1 + np.cos(np.pi * part)) / 2)],
)
def test_a_rate_rises_and_falls_in_a_straight_line_or_along_a_cosine(schedule: Any, fall: Callable[[Any], Any]) -> None:
    history = run(small_encoder(), learning_rate_schedule=schedule, warmup=0.25, epochs=8, learning_rate=0.8)
    rates = [epoch["learning_rate"] for epoch in history]
    steps, top = np.arange(8, 33, 4), 0.25 * 33 - 1
    np.testing.assert_allclose(rates[1:], 0.8 * fall((steps - top) / (32 - top)), atol=1e-4)
    assert rates[0] < rates[1]


def convnet() -> ConvNet:
    trunk = ConvNet(3, 4)
    trunk.whiten(torch.randn(20, 3, 12, 12))
    return trunk


@pytest.mark.parametrize(
    ("build", "part", "number"),
    [(convnet, "blocks", 6), (lambda: ResNet2d(3, 8, [1, 1]), "stages", 5)],
    ids=["convnet", "resnet2d"],
)
def test_muon_moves_the_kernels_behind_the_stem_alone(build: Any, part: str, number: int) -> None:
    trunk = build()
    model = torch.nn.ModuleList([Encoder(trunk, ConditionedHead(trunk.features, 3, 4)), MahalanobisGaussian(4, "full")])
    adamw, _ = build_optimisers(model, "muon", learning_rate=0.01, momentum=0.9, weight_decay=0.0, rounded=False)
    kernels = {id(p) for name, p in model.named_parameters() if name.startswith(f"0.trunk.{part}") and p.ndim == 4}
    assert len(kernels) == number
    others = {id(p) for group in adamw.param_groups for p in group["params"]}
    assert others == {id(p) for p in model.parameters()} - kernels


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("rounded", "tolerance"), [(True, 0.0), (False, 0.03)])
def test_muon_steps_as_torch_does_up_to_rounding(rounded: bool, tolerance: float, layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    trunk = convnet().to(memory_format=layout)
    kernel = trunk.blocks[1].layers[0].weight
    start = kernel.detach().flatten(1).clone()
    expected = torch.nn.Parameter(start.clone())
    _, ours = build_optimisers(trunk, "muon", learning_rate=0.01, momentum=0.9, weight_decay=0.1, rounded=rounded)
    theirs = torch.optim.Muon([expected], lr=0.01, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        expected.grad = torch.randn_like(expected)
        kernel.grad = expected.grad.view_as(kernel).clone(memory_format=layout)
        theirs.step()
        ours.step()
    moved = (expected - start).norm()
    assert moved > 0
    assert (kernel.detach().flatten(1) - expected).norm() <= tolerance * moved


def test_muon_is_refused_where_it_has_nothing_to_do() -> None:
    with pytest.raises(InputError, match=r"training\.optimiser: found muon, expected adamw or sgd"):
        run(small_encoder(), optimiser="muon")


def test_weight_decay_leaves_vectors_and_the_metric_alone() -> None:
    model = torch.nn.ModuleList([small_encoder(), MahalanobisGaussian(4, "full")])
    (adamw,) = build_optimisers(model, "adamw", learning_rate=0.01, momentum=0.0, weight_decay=0.1, rounded=False)
    decayed, others = adamw.param_groups
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert {names[id(p)] for p in decayed["params"]} == {"0.trunk.1.body.0.weight", "0.head.weight", "0.head.bias"}
    assert {names[id(p)] for p in others["params"]} == {"0.trunk.1.body.0.bias", "1.root"}


LABELS = torch.tensor([0, 0, 1, 1, 2, 2])


def ranked(*areas: float) -> tuple[Any, torch.Tensor]:
    """Scores of three classes with these areas under their ROC curves, each 1, 0.5 or 0, and the labels."""
    own = {1.0: (1, 1), 0.5: (1, -1), 0.0: (-1, -1)}
    columns = [np.zeros(len(LABELS)) for _ in range(3)]
    for k, area in enumerate(areas):
        columns[k][LABELS.numpy() == k] = own[area]
    return np.stack(columns, 1), LABELS


@pytest.mark.parametrize(
    ("measured", "change"),
    [
        # Class 0 falls from 1 to 0.5, class 1 from 1 to 0; class 2 has the last turn and does not count.
        ([(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.5, 0.0, 1.0)], -0.75),
        # Each epoch counts for itself.
        ([*[(1.0, 1.0, 1.0)] * 3, (1.0, 0.0, 0.0), *[(0.5, 1.0, 1.0)] * 2], -0.25),
    ],
)
def test_turn_change_is_of_the_area_since_the_turn_of_a_class(measured: list[tuple[float, ...]], change: float) -> None:
    left = iter(measured)
    turns = Turns(lambda: ranked(*next(left)))
    for step in range(len(measured)):
        turns.take(step % 3)
    assert turns.change() == {"turn_change": pytest.approx(change)}


def test_measuring_after_each_turn_leaves_the_training_as_it_was() -> None:
    settings = dataclasses.replace(SETTINGS, schedule="sequential", references="all", epochs=2)
    seen: list[int | None] = []

    def trained(measured: bool) -> dict[str, torch.Tensor]:
        model = small_encoder()

        def look(condition: int | None) -> None:
            seen.append(condition)
            model.eval()
            model(samples().x)

        collaborative_learning(model, Cosine(), samples(), 3, settings, dict, None, look if measured else None)
        return model.state_dict()

    plain, watched = trained(False), trained(True)
    assert seen == [0, 1, 2] * 2
    assert all(torch.equal(plain[name], watched[name]) for name in plain)


def test_each_epoch_and_each_seed_draw_dropout_anew() -> None:
    model, drawn = nn.Linear(2, 2), []

    def step(*_: Any) -> dict[str, torch.Tensor]:
        drawn.append(float(torch.rand(1)))
        loss = model(torch.ones(1, 2)).square().mean()
        loss.backward()
        return {"loss": loss.detach()}

    for seed in (0, 7):
        settings = dataclasses.replace(SETTINGS, epochs=2, seed=seed)
        train(model, samples(), step, settings, dict, None, batches=[slice(0, 2)] * 2)
    assert len(set(drawn)) == 8


def test_momentum_of_gradient_descent_is_nesterovs() -> None:
    (sgd,) = build_optimisers(nn.Linear(2, 2), "sgd", learning_rate=0.1, momentum=0.9, weight_decay=0.1, rounded=False)
    assert sgd.defaults["nesterov"]
