"""Metrics against cases worked out by hand, and the bounds on what the paper's softmax can show."""

import itertools
import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.metrics import f1_score

from clailearn.calibration import LogisticCalibration, fit_calibration, fit_logistic, fit_temperature
from clailearn.errors import InputError
from replication.metrics.classification import (
    binary_metrics,
    choose_threshold,
    expected_calibration_error,
    sample_metrics,
)

# Labels 0 0 0 1 2; the third sample is taken for a 1.
Y = [0, 0, 0, 1, 2]
P = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.9, 0.0], [0.1, 0.2, 0.7]]


def test_metrics_of_samples_by_hand() -> None:
    m = sample_metrics(Y, P, P)
    assert m["accuracy"] == pytest.approx(4 / 5)
    assert m["precision"] == pytest.approx((3 * 1 + 1 * 1 / 2 + 1 * 1) / 5)
    assert m["recall"] == pytest.approx((3 * 2 / 3 + 1 + 1) / 5)
    assert m["f1"] == pytest.approx((3 * 0.8 + 2 / 3 + 1) / 5)
    assert m["macro_f1"] == pytest.approx((0.8 + 2 / 3 + 1) / 3)
    by_chance = (3 * 2 + 1 * 2 + 1 * 1) / 25  # labels 3, 1, 1; predictions 2, 2, 1
    assert m["kappa"] == pytest.approx((4 / 5 - by_chance) / (1 - by_chance))
    # Class 0: .2 of a class-0 sample is above .1 and .1 of the others. Class 1 and 2: no pair in the wrong order.
    assert m["roc_auc"] == pytest.approx(1)
    # Recall and specificity of the decided class: 2/3 and 1, 1 and 3/4, 1 and 1.
    assert m["roc_auc_decisions"] == pytest.approx((5 / 6 + 7 / 8 + 1) / 3)
    assert m["log_loss"] == pytest.approx(-np.log([0.8, 0.6, 0.2, 0.9, 0.7]).mean())
    # Every sample has a bin to itself: |1 - .8|, |1 - .6|, |0 - .5|, |1 - .9|, |1 - .7|.
    assert m["ece"] == pytest.approx((0.2 + 0.4 + 0.5 + 0.1 + 0.3) / 5)


def test_a_class_missing_from_the_labels_makes_roc_auc_nan_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        m = sample_metrics([0, 0, 1], P[:3], P[:3])
    assert math.isnan(m["roc_auc"])
    assert math.isnan(m["roc_auc_decisions"])
    assert "class 2 is missing" in caplog.text
    assert math.isfinite(m["accuracy"] + m["f1"] + m["macro_f1"] + m["ece"])


def test_ece_by_hand_with_two_bins() -> None:
    # [0, .5): mean .25 against rate 1/2; [.5, 1]: mean .8 against rate 2/3.
    p, outcome = [0.1, 0.4, 0.5, 0.9, 1.0], [0, 1, 0, 1, 1]
    assert expected_calibration_error(p, outcome, bins=2) == pytest.approx(2 / 5 * 0.25 + 3 / 5 * (0.8 - 2 / 3))


def test_probabilities_outside_the_unit_interval_are_refused_and_not_taken_for_logits() -> None:
    with pytest.raises(InputError, match="must lie in"):
        expected_calibration_error([-0.2, 0.5], [0, 1], bins=15)
    with pytest.raises(InputError, match="must lie in"):
        expected_calibration_error([np.nan, 0.5], [0, 1], bins=15)


def test_ece_is_that_of_torchmetrics() -> None:
    torch, classification = (pytest.importorskip(name) for name in ("torch", "torchmetrics.functional.classification"))
    generator = np.random.default_rng(0)
    for bins, n in itertools.product((2, 10, 15), (1, 7, 1000, 20_000)):
        p = generator.beta(0.5, 0.5, n)
        outcome = generator.random(n) < p
        theirs = classification.binary_calibration_error(torch.tensor(p), torch.tensor(outcome, dtype=int), n_bins=bins)
        assert expected_calibration_error(p, outcome, bins=bins) == pytest.approx(float(theirs), rel=1e-9, abs=1e-12)


def test_binary_metrics_by_hand() -> None:
    y, f = [0, 0, 0, 1, 1], np.array([-0.8, -0.6, 0.2, -0.2, 0.4])
    p = (1 + f) / 2
    m = binary_metrics(y, f, p, [0.4] * 5, threshold=-0.4)
    assert m["auroc"] == pytest.approx(5 / 6)
    assert m["auprc"] == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert m["f1"] == pytest.approx(0.5), "one of two found, one of two right"
    assert m["f1_validation"] == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert m["brier"] == pytest.approx(np.mean((p - y) ** 2))
    assert m["prevalence"] == pytest.approx(0.4)
    assert m["ece_positive_rate_calibrated"] == pytest.approx(0)
    # p = .1 .2 .6 .4 .7: each its own bin. Top label: confidences .9 .8 .6 .6 .7, of which the two .6 share a bin.
    assert m["ece_positive_rate"] == pytest.approx((0.1 + 0.2 + 0.6 + 0.6 + 0.3) / 5)
    assert m["ece"] == pytest.approx((0.1 + 0.2 + 2 * 0.6 + 0.3) / 5)


def test_binary_metrics_without_positives_are_nan_where_they_need_one() -> None:
    m = binary_metrics([0, 0], [0.1, 0.2], [0.5, 0.6], [0.1, 0.1], threshold=math.nan)
    assert all(math.isnan(m[name]) for name in ("auroc", "auprc", "f1_validation"))
    assert m["f1"] == 0
    assert m["ece_positive_rate"] == pytest.approx(0.55)


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_threshold_has_a_higher_f1_than_the_chosen_one(pairs: list[tuple[bool, int]]) -> None:
    y, score = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    threshold = choose_threshold(y, score)
    if not y.any():
        assert math.isnan(threshold)
        return
    best = max(f1_score(y, score > t, zero_division=0) for t in np.append(np.unique(score), -10) - 0.5)
    assert f1_score(y, score > threshold, zero_division=0) == pytest.approx(best)


# Calibration recovers what made the scores


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


def test_constant_scores_get_the_mean_of_the_targets_of_platt() -> None:
    # One positive has the target 2/3, three negatives have 1/5 each.
    assert fit_logistic(np.zeros(4), [1, 0, 0, 0])([0.0])[0] == pytest.approx((2 / 3 + 3 / 5) / 4)


def test_the_temperature_of_log_odds_is_found() -> None:
    generator = np.random.default_rng(0)
    odds = generator.normal(size=20000) * 2
    y = (generator.random(20000) < expit(odds)).astype(int)
    assert fit_calibration(3 * np.stack([-odds, odds], axis=1), y, log_odds=True) == pytest.approx(3, rel=0.05)


def test_scaled_metrics_are_those_of_calibrated_probabilities() -> None:
    metrics = sample_metrics(Y, np.flip(P, 1), P)
    assert metrics["brier_scaled"] == pytest.approx(np.mean([0.03, 0.13, 0.49, 0.01, 0.07]))
    assert metrics["log_loss_scaled"] == pytest.approx(-np.log([0.8, 0.6, 0.2, 0.9, 0.7]).mean())
    p = np.array([[0.61, 0.39], [0.66, 0.34]])  # in one of ten bins, in two of thirty
    metrics = sample_metrics([0, 1], p, p)
    assert metrics["ece_scaled_10"] == pytest.approx(0.635 - 0.5)
    assert metrics["ece_scaled_30"] == pytest.approx((0.39 + 0.66) / 2)


def test_of_equal_thresholds_the_highest_is_chosen() -> None:
    assert choose_threshold([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.3]) == pytest.approx(0.7)
