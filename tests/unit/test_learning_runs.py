"""Training runs: divergence, checkpoints, and settings that cannot work."""

import dataclasses
from pathlib import Path

import pytest
import torch

from clai.encoders import MLP, ConditionedHead, Encoder
from clai.estimator import Samples
from clai.kernels import Cosine
from clai.learning import DivergenceError, Settings, collaborative_learning

SETTINGS = Settings(
    epochs=4, batch_size=8, optimiser="adamw", learning_rate=1e-2, weight_decay=0.0, learning_rate_schedule="one_cycle",
    warmup=0.25, precision="float32", compile=False, schedule="joint", references=1, reference_reduction="mean",
    pair_weighting="none", samples_per_class=None, target="zero", seed=0,
)  # fmt: skip


def data() -> Samples:
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    return Samples(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long())


def encoder() -> Encoder:
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Dropout(0.2), MLP(3, 8, 1))
    return Encoder(trunk, ConditionedHead(8, 3, 4))


def run(
    model: Encoder, settings: Settings, checkpoint: Path | None = None, fingerprint: str = "a"
) -> list[dict[str, float]]:
    return collaborative_learning(model, Cosine(), data(), 3, settings, dict, checkpoint, fingerprint)


def test_loss_that_is_not_finite_stops_training_with_epoch_step_and_rate() -> None:
    model = encoder()
    with torch.no_grad():
        model.head.bias[0] = float("nan")
    with pytest.raises(DivergenceError, match=r"epoch 1, first at step 1 of 4, learning rate .*learning_rate"):
        run(model, SETTINGS)


@pytest.mark.parametrize("done", [1, 3])
def test_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path: Path, done: int) -> None:
    whole, stopped, resumed = encoder(), encoder(), encoder()
    history = run(whole, SETTINGS)
    calls = iter(range(done + 1))

    def interrupt() -> dict[str, float]:
        if next(calls) == done:
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        collaborative_learning(stopped, Cosine(), data(), 3, SETTINGS, interrupt, tmp_path / "c.pt", "a")
    assert run(resumed, SETTINGS, tmp_path / "c.pt") == history
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_checkpoint_of_other_settings_is_not_used(tmp_path: Path) -> None:
    run(encoder(), SETTINGS, tmp_path / "c.pt", "a")
    other = dataclasses.replace(SETTINGS, epochs=2)
    assert run(encoder(), other, tmp_path / "c.pt", "b") == run(encoder(), other)


def test_batch_larger_than_half_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size 40 leaves 1 batches of 64 items"):
        run(encoder(), dataclasses.replace(SETTINGS, batch_size=40))


def test_short_runs_have_a_schedule_too() -> None:
    history = run(encoder(), dataclasses.replace(SETTINGS, epochs=1, batch_size=32))
    assert len(history) == 1
