"""The width of the Parzen window: a power of 1 changes nothing, validation samples choose it, and it answers what it is asked."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics as sk

from clailearn.calibration import fit_temperature
from clailearn.inference import decide, log_posteriors, parzen_means
from clailearn.kernels import KERNELS, Cosine, Kernel, MahalanobisGaussian
from clailearn.votes import References
from replication.experiments.bandwidth import (
    BANDWIDTH_COLUMNS,
    Power,
    choose_power,
    coarser_roc_auc,
    log_loss,
    measure_bandwidth,
)
from replication.models.embedding import Embedded
from support.training import clouds

CLASSES = 4
POWERS = [0.25, 0.5, 1, 2, 4, 8, 16]


def references() -> References:
    part = clouds(200, 0, CLASSES)
    return References(part.z, part.y, torch.arange(200), torch.bincount(part.y))


def measured(kernel: Kernel, val: Embedded, test: Embedded) -> pd.Series:
    frame = measure_bandwidth(kernel, references(), val, test)
    assert list(frame) == BANDWIDTH_COLUMNS
    return frame.set_index(["reading", "metric"])["value"]


def posteriors(kernel: Kernel, part: Embedded) -> torch.Tensor:
    given = references()
    return log_posteriors(parzen_means(kernel, part.z, given.z, given.y, block=64)).double().T


@pytest.mark.parametrize("kernel", [Cosine(), MahalanobisGaussian(4, "identity")])
def test_a_power_of_one_is_the_kernel_itself(kernel: Kernel) -> None:
    part = clouds(40, 1, CLASSES)
    assert torch.allclose(posteriors(Power(kernel, 1.0), part), posteriors(kernel, part), atol=1e-5)
    assert "power" not in KERNELS, "it is no kernel to train with"


@pytest.mark.parametrize(("best", "found"), [(1.0, 1.0), (3.0, 3.0), (100.0, 16.0), (0.01, 0.25)])
def test_a_power_is_refined_between_those_of_the_grid_and_stays_within(best: float, found: float) -> None:
    assert choose_power(lambda power: abs(math.log(power / best)), POWERS) == pytest.approx(found, rel=0.02)


def test_test_samples_choose_nothing() -> None:
    kernel, val, test = Cosine(), clouds(120, 1, CLASSES), clouds(120, 2, CLASSES)
    first, second = (
        measured(kernel, val, Embedded(test.z, y)).loc[:, ["power", "temperature"]] for y in (test.y, test.y.flip(0))
    )
    pd.testing.assert_series_equal(first, second)


def test_readings_are_those_of_the_posterior_and_of_its_temperature() -> None:
    kernel, val, test = MahalanobisGaussian(4, "identity"), clouds(120, 1, CLASSES), clouds(120, 2, CLASSES)
    value = measured(kernel, val, test)
    scores, y = posteriors(kernel, test).numpy(), test.y.numpy()
    fitted = fit_temperature(posteriors(kernel, val).numpy(), val.y.numpy())
    assert value["parzen", "log_loss"] == pytest.approx(log_loss(y, scores), abs=1e-5)
    assert value["parzen-temperature", "temperature"] == pytest.approx(fitted, rel=1e-3)
    assert value["parzen-temperature", "log_loss"] == pytest.approx(log_loss(y, scores / fitted), abs=1e-4)
    for metric in ("accuracy", "power"):
        assert value["parzen", metric] == value["parzen-temperature", metric], (
            "a temperature keeps the order of classes"
        )


@pytest.mark.parametrize("kernel", [Cosine(), MahalanobisGaussian(4, "identity")])
def test_two_classes_have_the_posterior_of_their_one_condition(kernel: Kernel) -> None:
    def part(n: int, seed: int) -> Embedded:
        generator = torch.Generator().manual_seed(seed)
        y = (torch.arange(n) % 3 == 0).long()
        return Embedded(torch.randn(1, n, 4, generator=generator) + 1.5 * y[None, :, None], y)

    train, val, test = part(150, 0), part(90, 1), part(90, 2)
    given = References(train.z, train.y, torch.arange(150), torch.bincount(train.y))
    value = measure_bandwidth(kernel, given, val, test).set_index(["reading", "metric"])["value"]
    means, y = parzen_means(kernel, test.z, train.z, train.y), test.y.numpy()
    posterior, f = log_posteriors(means)[0].double().exp().numpy(), decide(means, "printed")[0].numpy()
    assert value["parzen", "log_loss"] == pytest.approx(sk.log_loss(y, posterior), abs=1e-5)
    assert value["parzen", "accuracy"] == sk.accuracy_score(y, posterior > 0.5)
    for reading, score in (("parzen", posterior), ("softmax", f), ("f", f), ("decisions", f > 0), ("label", f > 0)):
        assert value[reading, "roc_auc"] == pytest.approx(sk.roc_auc_score(y, score)), reading
    assert value["softmax", "accuracy"] == sk.accuracy_score(y, f > 0)


def test_roc_auc_of_coarser_scores_on_a_hand_example() -> None:
    # Class 0: 0.32 and 0.31 are its samples, 0.33 is not. Of its four pairs f orders two rightly.
    f = np.array([[0.32, -1.0], [0.31, -1.0], [0.33, 0.9], [-0.5, 0.8]])
    found = coarser_roc_auc(np.array([0, 0, 1, 1]), f)
    assert found["f"] == pytest.approx((2 / 4 + 1) / 2)
    assert found["f-rounded"] == pytest.approx((3 / 4 + 1) / 2), "0.32, 0.31 and 0.33 are ties at 0.3"
    assert found["decisions"] == pytest.approx((3 / 4 + 1) / 2), "a tie counts half"
    assert found["label"] == 1
