"""Intervals over seeds and folds, and families of tests, do what they are for."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from replication.metrics.intervals import TRAINING_SHARE, holm, interval, replicates
from support.repository import REAL


def series(values: list[float], unit: str) -> pd.Series:
    return pd.Series(values, dtype=float).rename_axis(unit)


def test_folds_are_the_replicates_where_there_are_folds() -> None:
    frame = pd.DataFrame({"seed": [0, 1, 0, 1], "fold": [0, 0, 1, 1], "value": [1.0, 3.0, 5.0, 7.0]})
    by_fold, by_seed = replicates(frame), replicates(frame.assign(fold=np.nan))
    assert by_fold.tolist() == [2.0, 6.0]
    assert by_seed.tolist() == [3.0, 5.0]
    assert [by_fold.index.name, (2 * by_seed - by_seed).index.name] == ["fold", "seed"]


def test_interval_over_seeds_is_that_of_a_t_test() -> None:
    values = [0.1, 0.3, 0.2, 0.5]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = interval(series(values, "seed"))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert not interval(series([1.0], "seed")).known


def test_interval_over_five_folds_counts_the_patients_that_train() -> None:
    """A fold has a fifth of the patients; of the other four fifths the validation patients do not train."""
    values = [0.1, 0.3, 0.2, 0.5, 0.4]
    seeds, folds = (interval(series(values, unit)) for unit in ("seed", "fold"))
    assert REAL["validation_share_recordings"] == pytest.approx(1 - TRAINING_SHARE)
    corrected = 1 / 5 + 0.2 / (0.8 * TRAINING_SHARE)
    assert folds.high - folds.mean == pytest.approx(np.sqrt(5 * corrected) * (seeds.high - seeds.mean))


def test_interval_of_values_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="the index of 2 values has the name None"):
        interval(pd.Series([1.0, 2.0]))


def test_holm_by_hand() -> None:
    """Holm (1979): the smallest times N, the next times N - 1, never below the one before."""
    found = holm(np.array([0.04, 0.01, np.nan, 0.03, 0.9]))
    assert found == pytest.approx([0.09, 0.04, np.nan, 0.09, 0.9], nan_ok=True)
    assert holm(np.array([0.6, 0.8])).tolist() == [1.0, 1.0]
    assert not len(holm(np.array([])))
