"""Calibration recovers what made the scores."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from clai.calibration import LogisticCalibration, fit_logistic, fit_temperature
from replication.metrics.classification import expected_calibration_error


@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
def test_temperature_that_made_the_labels_is_found(temperature: float) -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(20000, 5)) * 1.5
    y = (softmax(logits, axis=1).cumsum(1) < generator.random((20000, 1))).sum(1)
    assert fit_temperature(logits * temperature, y) == pytest.approx(temperature, rel=0.03)


def test_scores_that_say_nothing_get_the_largest_temperature_and_separable_ones_the_smallest() -> None:
    y = np.arange(300) % 3
    assert fit_temperature(-np.eye(3)[y], y) == pytest.approx(1e4, rel=0.01)
    assert fit_temperature(np.eye(3)[y], y) < 0.1


def test_logistic_calibration_recovers_slope_and_intercept() -> None:
    generator = np.random.default_rng(0)
    score = generator.uniform(-1, 1, 50000)
    y = generator.random(50000) < expit(4 * score - 2)
    fitted = fit_logistic(score, y)
    assert fitted.slope == pytest.approx(4, rel=0.05)
    assert fitted.intercept == pytest.approx(-2, rel=0.05)
    assert expected_calibration_error(fitted(score), y, bins=15) < 0.01


def test_logistic_calibration_of_one_class_or_separable_scores_is_finite() -> None:
    assert LogisticCalibration(2.0, -1.0)([0.5]).tolist() == [0.5]
    only_negatives = fit_logistic([0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0])
    assert 0 < only_negatives([0.25])[0] < 0.5
    separable = fit_logistic([-1.0, -0.9, 0.9, 1.0], [0, 0, 1, 1])
    assert 0.5 < separable([1.0])[0] < 1


def test_constant_scores_get_the_prevalence() -> None:
    assert fit_logistic(np.full(1000, 0.3), np.arange(1000) < 100)([0.3])[0] == pytest.approx(0.1, abs=0.002)
