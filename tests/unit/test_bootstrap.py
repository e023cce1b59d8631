"""Intervals by patient and net benefit."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from clai.bootstrap import Fold, Ranked, net_benefit, patient_intervals
from clai.utility import hourly_utility, utility_score


def test_areas_are_those_of_scikit_learn_with_weights_and_ties() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    score, weight = np.round(rng.normal(size=300) + y, 1), rng.integers(0, 4, 300).astype(float)
    auroc, precision = Ranked(y, score).areas(weight)
    assert auroc == pytest.approx(roc_auc_score(y, score, sample_weight=weight))
    assert precision == pytest.approx(average_precision_score(y, score, sample_weight=weight))


def fold(seed: int, patients: int, hours: int, between: float) -> Fold:
    """Stays of which a third are septic in the second half; scores whose noise is shared by a patient's hours."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), hours)
    y = ((patient % 3 == 0) & (np.tile(np.arange(hours), patients) >= hours // 2)).astype(np.int64)
    noise = between * np.repeat(rng.normal(size=patients), hours) + rng.normal(size=len(y))
    good, bad = (y + noise).astype(np.float32), (0.3 * y + noise).astype(np.float32)
    alarms = {"good": good > 1, "bad": bad > 1}
    scores = {"good": good, "bad": bad}
    return Fold(y, patient, scores, alarms, scores, hourly_utility(y, patient, 6))


def test_value_is_the_mean_over_folds_and_lies_in_its_interval() -> None:
    folds = [fold(0, 60, 12, 1.0), fold(1, 60, 12, 1.0)]
    table = patient_intervals(folds, ["good", "bad"], ["bad"], draws=200, seed=0).set_index(
        ["model", "other", "metric"]
    )
    own = table.loc[("good", "")]
    assert own.loc["auroc", "value"] == pytest.approx(np.mean([roc_auc_score(f.y, f.scores["good"]) for f in folds]))
    expected = np.mean([utility_score(f.utility, f.alarms["good"]) for f in folds if f.utility is not None])
    assert own.loc["utility", "value"] == pytest.approx(expected)
    assert ((table["low"] < table["value"]) & (table["value"] < table["high"])).all()
    assert (table["patients"] == 120).all()
    assert table.loc[("good", "bad", "auroc"), "low"] > 0, "paired on the same patients, the better one is seen as such"


def test_interval_is_wider_where_patients_differ_than_where_only_hours_do() -> None:
    def width(between: float) -> float:
        table = patient_intervals([fold(0, 90, 20, between)], ["good"], [], draws=200, seed=0).set_index("metric")
        return float(table.loc["auroc", "high"] - table.loc["auroc", "low"])

    assert width(2.0) > 1.5 * width(0.0)


def test_net_benefit_by_hand() -> None:
    y, p = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0.9, 0.1, 0.6, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    table = net_benefit(y, p, [0.2, 0.5])
    assert table["net_benefit"].tolist() == pytest.approx([0.1 - 0.25 * 0.2, 0.1 - 0.1])
    assert table["always"].tolist() == pytest.approx([0.2 - 0.25 * 0.8, 0.2 - 0.8])
