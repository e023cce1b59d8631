"""Suspicion of infection and the onset of sepsis in MIMIC-IV, by each rule."""

from pathlib import Path

import pytest

from replication.datasets.mimic_iv.sofa import PLATELETS
from support.ward import START, Ward, septic


def test_onset_needs_culture_antibiotic_and_sofa(tmp_path: Path) -> None:
    ward = septic(*range(1, 6))
    ward.stay(6)  # suspicion, but SOFA 0 throughout
    for n in (1, 2, 3, 4, 6):
        ward.culture(n, 10)  # 2: no antibiotic
    ward.drug(1, 11)
    ward.drug(3, 11, "Erythromycin 0.5% Ophth Oint", "BOTH EYES")
    ward.drug(4, 11, "Acetaminophen", "PO")
    ward.drug(5, 11)  # no culture
    ward.drug(6, 11)
    assert ward.onsets(tmp_path, "suspicion") == {1: 10}


@pytest.mark.parametrize(("time", "hour"), [("suspicion", 25), ("sofa", 20), ("onset", 20)])
def test_the_onset_is_the_earlier_of_suspicion_and_sofa(tmp_path: Path, time: str, hour: int) -> None:
    ward = septic(1)
    ward.culture(1, 25)
    ward.drug(1, 26)
    ward.culture(1, 34)
    assert ward.onsets(tmp_path, time) == {1: hour}


def test_windows_hold_at_their_ends(tmp_path: Path) -> None:
    ward = Ward(*range(1, 9), hours=120)
    # 1, 2: antibiotic 72 h after the culture and a minute later. 3, 4: culture 24 h after the antibiotic and a minute later.
    for n, culture, drug in ((1, 20, 92), (2, 20, 92 + 1 / 60), (3, 44, 20), (4, 44 + 1 / 60, 20)):
        ward.lab(n, 25, PLATELETS, 80)
        ward.culture(n, culture)
        ward.drug(n, drug)
    # SOFA is 2 for 24 hours from the value on. 5: last 48 h before, 6: 49 h before; 7: first 24 h after, 8: 25 h after.
    for n, value in ((5, 80 - 48 - 23), (6, 80 - 49 - 23), (7, 104), (8, 105)):
        ward.lab(n, value, PLATELETS, 80)
        ward.culture(n, 80)
        ward.drug(n, 81)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 20, 3: 20, 5: 80, 7: 80}


def test_of_several_suspicions_the_first_that_sofa_confirms_counts(tmp_path: Path) -> None:
    ward = Ward(1, hours=120)
    ward.lab(1, 80, PLATELETS, 80)
    for hour in (10, 70, 90):
        ward.culture(1, hour)
        ward.drug(1, hour + 1)
    ward.stay(2)  # a culture known by its day alone counts from midnight, here before the stay
    ward.lab(2, 1, PLATELETS, 80)
    ward.rows["hosp/microbiologyevents"].append({"subject_id": 2, "chartdate": f"{START:%Y-%m-%d} 00:00:00"})
    ward.drug(2, 3)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 70, 2: -8}


# The rule of Challenge 2019


def treated(ward: Ward, n: int, culture: float, *orders: tuple[float, float], route: str = "IV") -> None:
    """A culture, and orders of an antibiotic from hour to hour."""
    ward.culture(n, culture)
    for start, stop in orders:
        ward.drug(n, start, stop=stop, route=route)


def test_a_rise_by_two_points_within_a_day_is_asked_for(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, hours=120)
    for n in (1, 2, 3):
        treated(ward, n, 50, (51, 130))
    for hour in (0.5, 20, 40, 60):
        ward.lab(1, hour, PLATELETS, 80)  # 2 points throughout
    ward.lab(2, 45, PLATELETS, 80)  # 0, then 2
    for hour, value in ((0.5, 149), (20, 149), (40, 149), (55, 80)):
        ward.lab(3, hour, PLATELETS, value)  # 1, then 2
    assert ward.onsets(tmp_path, "sofa", "challenge2019", maximum_hours=120) == {2: 45}
    assert ward.onsets(tmp_path / "b", "sofa", "sepsis3", maximum_hours=120) == {1: 2, 2: 45, 3: 55}


def test_its_window_is_24_hours_before_to_12_after_the_suspicion(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, 4, hours=120)
    for n, hour in ((1, 35), (2, 36), (3, 72), (4, 73)):
        # The rise lasts a day, from the value on; before the suspicion its last hour decides.
        ward.lab(n, hour - 23 if hour < 60 else hour, PLATELETS, 80)
        treated(ward, n, 60, (61, 140))
    assert set(ward.onsets(tmp_path, "suspicion", "challenge2019", maximum_hours=120)) == {2, 3}


def test_intravenous_antibiotics_must_continue_for_72_hours(tmp_path: Path) -> None:
    ward = septic(*range(1, 7))
    treated(ward, 1, 20, (21, 93))
    treated(ward, 2, 20, (21, 92))
    treated(ward, 3, 20, (21, 45), (69, 94))  # the next order follows a day after the last
    treated(ward, 4, 20, (21, 45), (70, 120))
    treated(ward, 5, 20, (21, 120), route="PO")
    treated(ward, 6, 20, (21, 30), (25, 60), (59, 93))
    assert set(ward.onsets(tmp_path, "suspicion", "challenge2019")) == {1, 3, 6}
    assert set(ward.onsets(tmp_path / "b", "suspicion", "sepsis3")) == set(range(1, 7))
