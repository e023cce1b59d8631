"""Intervals by patient."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from replication.metrics.bootstrap import Fold, Predictions, Ranked, patient_intervals
from replication.metrics.hourly import hourly_utility, utility_score
from replication.metrics.intervals import bca_limits


def test_areas_are_those_of_scikit_learn_with_weights_and_ties() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    score, weight = np.round(rng.normal(size=300) + y, 1), rng.integers(0, 4, 300).astype(float)
    (_, _), (auroc, precision) = Ranked(y, score, np.arange(300), 300).areas(np.stack([np.ones(300), weight]))
    assert auroc == pytest.approx(roc_auc_score(y, score, sample_weight=weight))
    assert precision == pytest.approx(average_precision_score(y, score, sample_weight=weight))
    patient = rng.integers(0, 40, 300)
    of_samples = weight[:40][patient]
    ((auroc, precision),) = Ranked(y, score, patient, 40).areas(weight[None, :40])
    assert auroc == pytest.approx(roc_auc_score(y, score, sample_weight=of_samples))
    assert precision == pytest.approx(average_precision_score(y, score, sample_weight=of_samples))


@pytest.mark.parametrize("weight", [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
def test_areas_need_both_classes(weight: list[float]) -> None:
    assert np.isnan(Ranked([1, 1, 0], [0.3, 0.2, 0.1], np.arange(3), 3).areas(np.array([weight]))).all()


def fold(seed: int, patients: int, hours: int, number: int | None = None) -> Fold:
    """Stays of which a third are septic in the second half; scores whose noise, drawn with `seed`, a patient's hours share."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), hours)
    y = ((patient % 3 == 0) & (np.tile(np.arange(hours), patients) >= hours // 2)).astype(np.int64)
    noise = np.repeat(rng.normal(size=patients), hours) + rng.normal(size=len(y))
    good, bad = (y + noise).astype(np.float32), (0.3 * y + noise).astype(np.float32)
    predictions = {name: Predictions(score, score, score, score > 1) for name, score in (("good", good), ("bad", bad))}
    return Fold(seed if number is None else number, y, patient, hourly_utility(y, patient, 6), predictions)


def score(one: Fold, model: str) -> NDArray[np.floating]:
    return one.predictions[model].score


def test_value_is_the_mean_over_folds_and_lies_in_its_interval() -> None:
    folds = [fold(0, 60, 12), fold(1, 60, 12)]
    table = patient_intervals(folds, ["good", "bad"], draws=200)
    own = table.set_index(["model", "metric"]).loc["good"]
    assert own.loc["auroc", "value"] == pytest.approx(np.mean([roc_auc_score(f.y, score(f, "good")) for f in folds]))
    expected = np.mean([utility_score(f.utility, score(f, "good") > 1) for f in folds if f.utility is not None])
    assert own.loc["utility", "value"] == pytest.approx(expected)
    assert ((table["low"] < table["value"]) & (table["value"] < table["high"])).all()
    assert (table["patients"] == 120).all()


def test_limits_are_those_of_scipy_for_the_same_draws() -> None:
    """Two folds are two independent samples of patients."""
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, (2, 25, 4)), rng.normal(size=(2, 25, 4))
    score += y

    def precision(*patients: NDArray[np.intp]) -> float:
        parts = [
            average_precision_score(y[f][drawn].ravel(), score[f][drawn].ravel()) for f, drawn in enumerate(patients)
        ]
        return float(np.mean(parts))

    whole = (np.arange(25), np.arange(25))
    expected = stats.bootstrap(whole, precision, n_resamples=200, vectorized=False, method="BCa", rng=rng)
    jackknife = [
        np.array(
            [precision(*(np.delete(part, i) if g == f else part for g, part in enumerate(whole))) for i in range(25)]
        )
        for f in range(2)
    ]
    found = bca_limits(precision(*whole), expected.bootstrap_distribution, jackknife)
    assert found == pytest.approx(tuple(expected.confidence_interval))
    percentiles = np.percentile(expected.bootstrap_distribution, [2.5, 97.5])
    assert np.abs(percentiles - found).max() > 1e-3, "the case is skewed enough to tell them apart"


def test_draws_and_the_jackknife_are_of_patients_fold_after_fold() -> None:
    folds = [fold(0, 45, 4), fold(1, 36, 4)]
    table = patient_intervals(folds, ["good"], draws=30).set_index("metric")

    def area(one: Fold, weight: NDArray[np.float64]) -> float:
        return float(average_precision_score(one.y, score(one, "good"), sample_weight=weight[one.patient]))

    generator = np.random.default_rng(0)
    whole = np.array([area(one, np.ones(45)) for one in folds])
    draws, jackknife = np.zeros(30), []
    for i, (one, patients) in enumerate(zip(folds, (45, 36), strict=True)):
        for draw in range(30):
            weight = np.bincount(generator.integers(patients, size=patients), minlength=patients)
            draws[draw] += area(one, weight.astype(float)) / 2
        without = [area(one, (np.arange(patients) != patient).astype(float)) for patient in range(patients)]
        jackknife.append((np.array(without) + whole[1 - i]) / 2)
    assert tuple(table.loc["auprc", ["low", "high"]]) == pytest.approx(bca_limits(whole.mean(), draws, jackknife))


def test_limits_weigh_the_jackknife_of_folds_by_their_numbers_of_groups() -> None:
    """By hand: the influences are 1/2, -1/2 and 4/3, 4/3, -8/3, the acceleration is -0.063526."""
    draws, jackknife = np.arange(1001) / 1000, [np.array([1.0, 3.0]), np.array([0.0, 0.0, 6.0])]
    assert bca_limits(0.5, draws, jackknife) == pytest.approx((0.012588, 0.959329), abs=1e-5)


def test_limits_of_a_statistic_that_never_varies_are_the_statistic_and_without_draws_there_are_none() -> None:
    same = np.full(20, 0.5)
    assert bca_limits(0.5, same, [same]) == (0.5, 0.5)
    assert np.isnan(bca_limits(0.5, np.array([np.nan]), [same])).all()


def test_seeds_of_a_fold_share_its_draws_and_count_its_patients_once() -> None:
    once = [fold(0, 60, 12), fold(1, 50, 12)]
    alone, thrice = (patient_intervals(folds, ["good", "bad"], 100) for folds in (once, once * 3))
    pd.testing.assert_frame_equal(alone, thrice)
    assert (thrice["patients"] == 110).all()


def test_a_model_that_fewer_seeds_have_is_averaged_over_those() -> None:
    first, second = fold(0, 60, 12, number=0), fold(1, 60, 12, number=0)
    lacking = replace(second, predictions={"good": second.predictions["good"]})
    for order in ([first, lacking], [lacking, first]):
        table = patient_intervals(order, ["good", "bad"], draws=50).set_index(["model", "metric"])
        both = [roc_auc_score(unit.y, score(unit, "good")) for unit in (first, second)]
        assert table.loc[("good", "auroc"), "value"] == pytest.approx(np.mean(both))
        assert table.loc[("bad", "auroc"), "value"] == pytest.approx(roc_auc_score(first.y, score(first, "bad")))
        assert table["low"].notna().all()


def test_a_draw_without_positives_in_one_fold_counts_with_the_others() -> None:
    whole, barren = fold(0, 60, 12), fold(1, 60, 12)
    barren = replace(barren, y=np.zeros_like(barren.y), utility=None)
    alone, both = (patient_intervals(folds, ["good"], 50).set_index("metric") for folds in ([whole], [whole, barren]))
    assert list(both.loc["auroc", ["value", "low", "high"]]) == list(alone.loc["auroc", ["value", "low", "high"]])
