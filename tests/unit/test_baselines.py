"""The baselines do what their names promise, on data where the answer is known."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import gpytorch
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score

from clailearn.errors import DivergenceError, InputError
from replication.models.base import create
from replication.models.gaussian_processes import DeepKernelGP, GaussianProcess
from replication.models.items import Recordings, Splits
from replication.models.row_classifiers import (
    LogisticRegression,
    StudentTMixture,
    class_sample,
    fit_student_t_mixture,
    merit,
)
from replication.models.run import training_settings
from replication.runs.run import RunId
from support.training import SETTINGS

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
MIXTURE: dict[str, Any] = {
    "components": 2, "degrees_of_freedom": 4.0, "variance": 0.999, "regularisation": 1e-4,
    "samples_per_class": 5000, "seed": 0,
}  # fmt: skip
TRAINING = {key: value for key, value in asdict(SETTINGS).items() if key not in ("target", "seed")}
TRAINING |= {"epochs": 30, "learning_rate": 0.02}
PROCESS: dict[str, Any] = {
    "inducing_points": 32, "epochs": 20, "batch_size": 128, "learning_rate": 0.05, "samples_per_class": 5000, "seed": 0,
}  # fmt: skip


def two_clouds(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    y = (np.arange(n) >= n // 2).astype(np.int64)
    return generator.normal(size=(n, 2)) + 2 * y[:, None], y


def test_student_t_mixture_tends_to_the_gaussian_for_many_degrees_of_freedom() -> None:
    z, y = two_clouds(4000)
    model = fit_student_t_mixture(z, y, **MIXTURE | {"components": 1, "degrees_of_freedom": 1000.0})
    whitened = model.whitening.transform(z)
    for k, densities in enumerate(model.log_densities(z[::40]).T):
        own = whitened[y == k]
        gaussian = multivariate_normal(own.mean(0), np.cov(own.T)).logpdf(whitened[::40])
        np.testing.assert_allclose(densities, gaussian, atol=0.15)


def test_student_t_mixture_is_bayes_rule_with_the_class_shares() -> None:
    z, y = two_clouds(2000)
    keep = (y == 0) | (np.arange(2000) % 5 == 0)
    model = fit_student_t_mixture(z[keep], y[keep], **MIXTURE)
    assert model.shares == pytest.approx([5 / 6, 1 / 6])
    joint = np.exp(model.log_densities(z)) * model.shares
    np.testing.assert_allclose(expit(model.log_odds(z)), joint[:, 1] / joint.sum(1), atol=1e-12)


def test_student_t_mixture_of_embeddings_near_a_subspace() -> None:
    """Nearly singular embeddings, as trained encoders give them, and a rare class with few samples."""
    generator = np.random.default_rng(0)
    z = generator.normal(size=(3000, 3)) @ generator.normal(size=(3, 16)) + 1e-9 * generator.normal(size=(3000, 16))
    y = (np.arange(3000) % 50 == 0).astype(np.int64)
    z[y == 1] += 2
    model = fit_student_t_mixture(z, y, **MIXTURE)
    assert model.whitening.n_components_ <= 4
    assert np.isfinite(model.log_odds(z)).all()
    few = np.r_[np.flatnonzero(y == 0)[:100], np.flatnonzero(y == 1)[:5]]
    assert fit_student_t_mixture(z[few], y[few], **MIXTURE).whitening.n_components_ == 2


def test_mixture_that_is_chosen_is_the_best_on_validation_samples() -> None:
    """A ring around the other class: one component cannot tell them apart, two to four can better."""
    generator = np.random.default_rng(0)

    def ring(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        y = (np.arange(n) % 3 == 0).astype(np.int64)
        side = 4.0 * np.where(generator.random(n) < 0.5, 1, -1) * (1 - y)
        return generator.normal(size=(n, 2)) + np.stack([side, np.zeros(n)], 1), y

    z, y, z_val, y_val = *ring(1200), *ring(600)
    settings = {key: value for key, value in MIXTURE.items() if key not in ("components", "degrees_of_freedom")}
    mixture = StudentTMixture().fit_rows(z, y, z_val, y_val, components=[1, 2], degrees_of_freedom=[4, 100], **settings)
    best = roc_auc_score(y_val, mixture.score_rows(z_val))
    for components in (1, 2):
        for freedom in (4, 100):
            other = fit_student_t_mixture(z, y, **settings, components=components, degrees_of_freedom=freedom)
            assert best >= roc_auc_score(y_val, other.log_odds(z_val))
    assert set(mixture.choices) == {"components", "degrees_of_freedom"}


def test_mixture_is_regularised_and_fitted_to_samples_that_its_seed_draws() -> None:
    z, y = two_clouds(400)

    def fitted(**settings: Any) -> Any:
        own = {"components": 1, "degrees_of_freedom": 1000.0} | settings
        return fit_student_t_mixture(z, y, **MIXTURE | own).mixtures[0]

    first, other = (fitted(samples_per_class=20, seed=seed).location_ for seed in (0, 1))
    assert np.abs(first - other).max() > 0.05
    added = fitted(regularisation=0.5).scale_ - fitted().scale_
    np.testing.assert_allclose(np.diag(added[:, :, 0]), 0.5, atol=0.1)


def rows(n: int, seed: int, radii: Sequence[float] = (3.2, 6.0)) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows of classes that circles around the origin divide: of two, at shares of 95 and 5 %, or of three, of 80, 15 and 5 %."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 2)).astype(np.float32)
    return x, np.digitize(np.square(x).sum(1) + generator.normal(0, 0.3, n), radii).astype(np.int64)


@pytest.mark.parametrize("radii", [(6.0,), (3.2, 6.0)], ids=["two classes", "three classes"])
def test_classifiers_of_rows_have_the_shares_of_the_whole_data_and_choose_by_merit(radii: tuple[float, ...]) -> None:
    (x, y), val, (test, truth) = (rows(n, seed, radii) for seed, n in enumerate((20_000, 5000, 20_000)))
    given = {"samples_per_class": 1500, "seed": 0}
    settings: dict[str, dict[str, Any]] = {
        "logistic-regression": given | {"inverse_penalty": [1e-6, 1.0]},
        "gradient-boosting": given | {"iterations": [1, 60], "learning_rate": 0.1, "max_leaf_nodes": 8},
    }
    if len(radii) == 1:
        process = {"inducing_points": 16, "epochs": 8, "batch_size": 256, "learning_rate": 0.05}
        settings |= {"gp": given | process, "constant": {"seed": 0}}
    scores, choices = {}, {}
    for name, own in settings.items():
        model = create(name)
        scores[name] = model.fit_rows(x, y, *val, **own).score_rows(test)
        found = softmax(scores[name], axis=1)[:, 1:] if len(radii) > 1 else expit(scores[name])[:, None]
        np.testing.assert_allclose(found.mean(0), np.bincount(truth)[1:] / len(truth), atol=0.02)
        choices |= model.choices
    assert choices.keys() == {"inverse_penalty", "iterations"}
    assert choices["iterations"] == 60
    merits = {name: merit(truth, found) for name, found in scores.items()}
    assert merits["gradient-boosting"] > merits["logistic-regression"] + 0.05
    assert "constant" not in scores or len(np.unique(scores["constant"])) == 1


def test_dead_columns_of_an_embedding_do_not_count() -> None:
    x, y = rows(2000, 0, radii=(6.0,))
    dead = np.where(np.arange(len(x)) % 2, np.float32(1e-43), np.float32(0))[:, None]
    fitting = {"inverse_penalty": [1.0], "samples_per_class": 2000, "seed": 0}
    alone = LogisticRegression().fit_rows(x, y, x, y, **fitting)
    beside = LogisticRegression().fit_rows(np.hstack([dead, x]), y, np.hstack([dead, x]), y, **fitting)
    awake = np.full((len(x), 1), 0.5, np.float32)
    np.testing.assert_array_equal(beside.score_rows(np.hstack([awake, x])), alone.score_rows(x))
    constant = LogisticRegression().fit_rows(np.ones_like(x), y, x, y, **fitting)
    assert np.isfinite(constant.score_rows(np.ones_like(x))).all()


def test_the_scale_of_a_column_changes_no_penalty() -> None:
    x, y = two_clouds(300)
    fitting = {"inverse_penalty": [0.01], "samples_per_class": 300, "seed": 0}
    both = (x, x * [100, 0.01])
    plain, scaled = (LogisticRegression().fit_rows(z, y, z, y, **fitting).score_rows(z) for z in both)
    np.testing.assert_allclose(plain, scaled, atol=1e-3)


def test_boosting_has_its_settings_and_chooses_by_the_scores_that_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Floats] = []
    monkeypatch.setattr("replication.models.row_classifiers.merit", lambda y, scores: measured.append(scores) or 0.0)
    val, settings = rows(500, 1), {"learning_rate": 0.3, "max_leaf_nodes": 8, "min_samples_leaf": 7}
    model = create("gradient-boosting")
    model.fit_rows(*rows(2000, 0), *val, samples_per_class=80, seed=0, iterations=[3], **settings)
    assert settings.items() <= model.classifier.get_params().items()
    np.testing.assert_allclose(measured[0], model.score_rows(val[0]))


def test_the_sample_of_several_classes_shifts_each_of_them() -> None:
    y = np.repeat([0, 1, 2], [900, 300, 100])
    chosen, shift = class_sample(y, 200, 0)
    assert np.bincount(y[chosen]).tolist() == [200, 200, 100]
    assert not np.array_equal(chosen, class_sample(y, 200, 1)[0])
    np.testing.assert_allclose(shift, np.log([900 / 200, 300 / 200, 1]) - np.log(900 / 200))
    with pytest.raises(InputError, match="found 5, 0 rows of the classes"):
        class_sample(np.zeros(5), 3, 0)


def test_deep_kernel_process_learns_what_its_recordings_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = mock.Mock(wraps=gpytorch.mlls.VariationalELBO)
    monkeypatch.setattr(gpytorch.mlls, "VariationalELBO", bound)
    generator = np.random.default_rng(0)

    def items(n: int) -> Recordings:
        recording = np.repeat(np.arange(n), 6)
        x = generator.normal(size=(6 * n, 2)).astype(np.float32)
        y = (generator.random(6 * n) < 0.3 * (x[:, 0] * x[:, 1] > 0.3)).astype(np.int64)
        return Recordings(x, y, recording, torch.device("cpu"))

    splits = Splits(items(300), items(100), items(200))
    config = {
        "training": TRAINING | {"samples_per_class": 15}, "embedding_size": 4, "baselines": {"gp": {"inducing_points": 16}},
        "encoder": {"trunk": "gru", "width": 16, "layers": 2, "dropout": 0.0},
    }  # fmt: skip
    training = training_settings(config, conditions=1, seed=0)
    run: Any = SimpleNamespace(splits=splits, settings=config, training=training, inputs=2)
    run.device, run.id, run.check = torch.device("cpu"), RunId("stays", "dkgp", 0), lambda: None
    model = DeepKernelGP()
    history = model.fit(run, None)
    assert bound.call_args.kwargs == {"num_data": len(splits.train.labels)}
    scores, (_, sd) = model.scores(run, splits.test), model.latent(run, splits.test)
    assert (sd > 0).all()
    assert roc_auc_score(splits.test.labels, scores) > 0.75, "a straight line reaches about 0.5"
    assert history[-1]["loss"] < history[0]["loss"]
    share = float(splits.test.labels.double().mean())
    assert share < 0.15
    assert expit(scores).mean() == pytest.approx(share, abs=0.04)
    model.save(tmp_path / "model.safetensors")
    loaded = DeepKernelGP().load(run, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.scores(run, splits.test), scores)


def test_student_t_mixture_refuses_what_has_no_density() -> None:
    z, y = two_clouds(40)
    with pytest.raises(InputError, match="constant or not finite"):
        fit_student_t_mixture(np.ones_like(z), y, **MIXTURE)
    with pytest.raises(InputError, match="class 1 has 3 embeddings"):
        fit_student_t_mixture(z[:23], y[:23], **MIXTURE)


def fit_process(z: Floats, y: Labels, **settings: Any) -> GaussianProcess:
    return GaussianProcess().fit_rows(z, y, z, y, **PROCESS | settings)


def test_gaussian_process_separates_two_moons() -> None:
    moons = fit_process(*make_moons(600, noise=0.2, random_state=0))
    z, y = make_moons(600, noise=0.2, random_state=1)
    predicted = moons.score_rows(z) > 0
    assert (predicted == y).mean() > 0.93, "a straight line reaches about 0.87"
    np.testing.assert_array_equal(predicted, moons.predict(z)[0] > 0)


def test_gaussian_process_begins_as_wide_as_its_inputs_and_moves_in_every_pass() -> None:
    start, moved = (fit_process(*two_clouds(40), epochs=epochs).process.covar_module for epochs in (0, 1))
    torch.testing.assert_close(start.base_kernel.lengthscale, torch.full((1, 1, 2), 2**0.5))
    assert not torch.equal(moved.base_kernel.lengthscale, start.base_kernel.lengthscale)


@pytest.mark.parametrize(("size", "rate"), [(40, 10.0), (4, 100.0)], ids=["not finite", "exploding"])
def test_gaussian_process_that_diverges_names_step_and_setting(size: int, rate: float) -> None:
    generator = np.random.default_rng(0)
    z = generator.normal(size=(2000, size))
    y = (generator.random(2000) < 0.3 * (z[:, 0] * z[:, 1] > 0)).astype(np.int64)
    with pytest.raises(
        DivergenceError,
        match=rf"at step \d+ of 16 the loss is \S+, the learning rate {rate:g}; lower baselines\.gp\.learning_rate",
    ):
        fit_process(z, y, learning_rate=rate)
