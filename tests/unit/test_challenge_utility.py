"""The Challenge's utility score against values worked out from its definition by hand."""

import numpy as np
import pytest

from replication.metrics.hourly import choose_alarm_threshold, hourly_utility, utility_score

# One septic stay of 24 hours whose labels begin at hour 12, so that its onset is hour 18, and a stay without sepsis.
SEPTIC = np.r_[np.zeros(12), np.ones(12)].astype(np.int64)
Y, RECORDING = np.r_[SEPTIC, np.zeros(10, dtype=np.int64)], np.repeat([1, 2], [24, 10])
UTILITY = hourly_utility(Y, RECORDING, 6)


@pytest.mark.parametrize(
    ("hour", "alarm", "silence"),
    [
        (0, -0.05, 0),  # 18 h before onset: as useless as a false alarm
        (5, -0.05, 0),
        (6, 0, 0),  # 12 h before: alarms begin to be worth something
        (9, 0.5, 0),  # halfway up
        (12, 1, 0),  # 6 h before: the best moment, and silence costs nothing yet
        (15, 2 / 3, -2 / 3),  # 3 of the 9 hours down
        (18, 1 / 3, -4 / 3),  # onset
        (21, 0, -2),  # 3 h after
        (22, 0, 0),  # too late for either
        (23, 0, 0),
    ],
)
def test_utility_of_an_hour_of_a_septic_stay(hour: int, alarm: float, silence: float) -> None:
    assert UTILITY.alarm[hour] == pytest.approx(alarm)
    assert UTILITY.silence[hour] == pytest.approx(silence)


def test_score_is_0_without_alarms_1_at_best_and_by_hand_between() -> None:
    best = np.r_[(np.arange(24) >= 6) & (np.arange(24) <= 21), np.zeros(10, dtype=bool)]
    assert utility_score(UTILITY, np.zeros(34)) == pytest.approx(0)
    assert utility_score(UTILITY, best) == pytest.approx(1)
    # Silence: 2 (1 + ... + 9) / 9 = 10 lost. Best: (0 + ... + 6) / 6 + (8 + ... + 0) / 9 = 7.5 won.
    # Alarms in all hours: 7.5 won, 6 useless hours and 10 false ones at 0.05.
    assert utility_score(UTILITY, np.ones(34)) == pytest.approx((7.5 - 0.8 + 10) / 17.5)
    only_at_onset = np.arange(34) == 18
    assert utility_score(UTILITY, only_at_onset) == pytest.approx((1 / 3 + 4 / 3) / 17.5)


def test_stay_that_begins_with_label_1_has_its_onset_six_hours_later() -> None:
    utility = hourly_utility([1, 1, 1], [5, 5, 5], 6)
    np.testing.assert_allclose(utility.alarm, [1, 8 / 9, 7 / 9])


def test_no_septic_stay_has_no_score() -> None:
    assert np.isnan(utility_score(hourly_utility([0, 0], [1, 1], 6), [1, 0]))


def test_threshold_is_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    score = np.round(rng.normal(size=34) + Y, 1)
    chosen = choose_alarm_threshold(UTILITY, score)
    scores = [utility_score(UTILITY, score > t) for t in np.r_[-9, np.unique(score)]]
    assert utility_score(UTILITY, score > chosen) == pytest.approx(max(scores))
    assert utility_score(UTILITY, score > chosen) > 0


def test_threshold_that_never_alarms_where_alarms_only_cost() -> None:
    utility = hourly_utility(np.zeros(5), np.ones(5), 6)
    assert choose_alarm_threshold(utility, np.arange(5.0)) == np.inf
