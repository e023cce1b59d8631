"""Differences between models count seeds and test samples, and have their nominal coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from clailearn.errors import InputError
from replication.metrics.classification import sample_metrics
from replication.metrics.intervals import (
    SAMPLE_METRICS,
    Predictions,
    Ranked,
    compare_models,
    over_samples,
    paired_difference,
)


def predicted(y: NDArray[np.int64], seed: int, skill: float) -> Predictions:
    score = np.random.default_rng(seed).normal(size=(len(y), 3)) + skill * np.eye(3)[y]
    return Predictions(score, softmax(score, axis=1), softmax(2 * score, axis=1))


def three_models() -> tuple[NDArray[np.int64], dict[str, dict[int, Predictions]]]:
    y = np.random.default_rng(9).integers(0, 3, 240)
    good = {seed: predicted(y, seed, 2.0) for seed in range(3)}
    bad = {seed: predicted(y, 10 + seed, 1.0) for seed in range(1, 4)}
    return y, {"good": good, "bad": bad, "alone": {0: predicted(y, 20, 1.0)}}


def test_values_are_mean_differences_of_the_metrics_of_table1_over_common_seeds() -> None:
    y, runs = three_models()
    table = compare_models(y, np.arange(240), runs, draws=20).set_index(["cell", "other", "metric"])
    of_runs = {
        (model, seed): sample_metrics(y, one.probability, one.calibrated)
        for model, of_seeds in runs.items()
        for seed, one in of_seeds.items()
    }
    pairs = {("good", "bad"): [(1, 1), (2, 2)], ("good", "alone"): [(0, 0), (1, 0), (2, 0)]}
    for (model, other), seeds in pairs.items():
        for metric in SAMPLE_METRICS:
            differences = [of_runs[model, a][metric] - of_runs[other, b][metric] for a, b in seeds]
            row = table.loc[(model, other, metric)]
            assert row["value"] == pytest.approx(np.mean(differences))
            assert (row["samples"], row["seeds"], row["draws"]) == (240, len(seeds), 20)
    assert table.loc[("good", "bad", "accuracy"), "p"] < 0.05
    assert len(table) == (3 + 3) * len(SAMPLE_METRICS), "pairs, then models alone"
    for model, of_seeds in runs.items():
        for metric in SAMPLE_METRICS:
            row = table.loc[(model, "", metric)]
            assert row["value"] == pytest.approx(np.mean([of_runs[model, seed][metric] for seed in of_seeds]))
            assert row["low"] < row["value"] < row["high"]
            assert (row["samples"], row["seeds"], row["draws"]) == (240, len(of_seeds), 20)
            assert np.isnan(row["p"]), "no metric is tested against 0"


def test_a_draw_counts_each_sample_as_often_as_its_group_was_drawn() -> None:
    """With one seed the interval is that of the metrics of the drawn samples themselves."""
    y, runs = three_models()
    groups, draws = np.arange(240) // 8, 30
    first, second = runs["good"][1], runs["bad"][1]
    table = compare_models(y, groups, {"a": {1: first}, "b": {1: second}}, draws)
    pair, alone = (
        table[part].set_index("metric")
        for part in (table["other"] == "b", table["cell"].eq("a") & table["other"].eq(""))
    )
    counts = np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30), size=draws)
    drawn = [np.repeat(np.arange(240), weight[groups]) for weight in counts]
    own, other = (
        pd.DataFrame([sample_metrics(y[rows], *2 * [one.probability[rows]]) for rows in drawn])
        for one in (first, second)
    )
    for metric in ("accuracy", "macro_f1", "ece", "roc_auc"):
        for found, values in ((pair, own[metric] - other[metric]), (alone, own[metric])):
            half = stats.t.ppf(0.975, 29) * np.std(values, ddof=1) * np.sqrt(30 / 29)
            assert found.loc[metric, "high"] - found.loc[metric, "value"] == pytest.approx(half)


def test_models_without_a_common_seed_are_not_compared() -> None:
    y, runs = three_models()
    with pytest.raises(InputError, match=r"found the seeds \[0, 1, 2\] and \[7, 8\], expected some in common"):
        compare_models(y, np.arange(240), {"a": runs["good"], "b": {7: runs["bad"][1], 8: runs["bad"][2]}}, draws=2)


def test_an_interval_is_found_whichever_of_two_models_stands_first() -> None:
    y, runs = three_models()
    table = compare_models(y, np.arange(240), runs, draws=20)
    first, second = (over_samples(table, "accuracy", *pair) for pair in (("good", "bad"), ("bad", "good")))
    assert first is not None
    assert second == replace(first, mean=-first.mean, low=-first.high, high=-first.low)


def test_equal_predictions_give_no_interval() -> None:
    y, runs = three_models()
    table = compare_models(y, np.arange(240), {"a": runs["good"], "b": runs["good"]}, draws=10)
    table = table[table["other"] == "b"]
    assert (table["value"] == 0).all()
    assert table[["low", "high", "p"]].isna().all().all()


@pytest.mark.parametrize(("seeds", "training"), [(3, 0.0), (3, 0.03), (5, 0.06), (1, 0.0)])
def test_coverage_over_seeds_and_samples_is_nominal(seeds: int, training: float) -> None:
    """Differences of samples have a part that seeds share, 0.3, and one of each seed, 0.5; the true difference is 0."""
    rng, samples, repetitions = np.random.default_rng(0), 400, 500
    inside, inside_by_draws = 0, 0
    for _ in range(repetitions):
        shared, own = rng.normal(0, 0.3, (samples, 1)), rng.normal(0, 0.5, (samples, seeds))
        difference = rng.normal(0, training, seeds) + shared + own
        drawn = rng.multinomial(samples, np.full(samples, 1 / samples), size=100) @ difference / samples
        found = paired_difference(difference.mean(0), drawn, samples)
        inside += found.low <= 0 <= found.high
        assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
        low, high = np.percentile(drawn.mean(1), [2.5, 97.5])
        inside_by_draws += low <= 0 <= high
    assert 0.92 < inside / repetitions < 0.98
    if training > 0:
        assert inside_by_draws / repetitions < 0.85, "samples alone explain too little"


def test_degrees_of_freedom_are_never_below_those_of_the_fewest() -> None:
    """Two seeds that samples move apart: the estimate of what they share is negative."""
    found = paired_difference(np.array([0.0, 0.2]), np.array([[-0.01, 0.21], [0.01, 0.19]] * 10), groups=2)
    error = 0.2 / np.sqrt(2) / np.sqrt(2)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 1) * error)


def test_areas_are_those_of_scikit_learn_with_weights_and_ties() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    score, weight = np.round(rng.normal(size=300) + y, 1), rng.integers(0, 4, 300).astype(float)
    _, area = Ranked(y, score, np.arange(300), 300).areas(np.stack([np.ones(300), weight]))
    assert area == pytest.approx(roc_auc_score(y, score, sample_weight=weight))
    group = rng.integers(0, 40, 300)
    (area,) = Ranked(y, score, group, 40).areas(weight[None, :40])
    assert area == pytest.approx(roc_auc_score(y, score, sample_weight=weight[:40][group]))


@pytest.mark.parametrize("weight", [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
def test_areas_need_both_classes(weight: list[float]) -> None:
    assert np.isnan(Ranked([1, 1, 0], [0.3, 0.2, 0.1], np.arange(3), 3).areas(np.array([weight]))).all()
