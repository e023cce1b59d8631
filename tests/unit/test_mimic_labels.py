"""SOFA of MIMIC-IV, each component at its thresholds, and the suspicion of infection and onset of sepsis, by each rule."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replication.datasets.mimic_iv import sofa
from support.ward import START, Ward, septic


def test_what_is_measured_counts_for_24_hours_from_then_on(tmp_path: Path) -> None:
    ward = Ward(1, 2)
    ward.lab(1, 5, sofa.BILIRUBIN, 6.0)
    ward.pressor(2, 5, 7, sofa.NOREPINEPHRINE, 0.1)
    scores = ward.sofa(tmp_path)
    assert (scores[1][4:6], scores[1][28:30]) == ([0, 3], [3, 0])
    assert (scores[2][4:6], scores[2][30:32]) == ([0, 3], [3, 0]), "an infusion counts to its last hour, then 23 more"


def test_little_urine_scores_once_a_day_has_passed(tmp_path: Path) -> None:
    ward = Ward(1)
    ward.urine(1, 40 * 15, first=0.5, last=39.5)
    scores = ward.sofa(tmp_path)[1]
    assert scores[21] == 0, "the entries stand for less than 22 hours"
    assert scores[22] == 3, "360 mL in 24 hours"


def test_entries_that_stand_for_more_than_a_day_count_by_their_time(tmp_path: Path) -> None:
    ward = Ward(1, 2)
    for n, volume in ((1, 600), (2, 630)):
        ward.output(n, 0.25, sofa.URINE[0], 1000)
        ward.output(n, 29.25, sofa.URINE[0], volume)  # 29 hours later: 497 and 521 mL a day
    ward.stay(3, hours=60)
    ward.output(3, 0.25, sofa.URINE[0], 1000)
    ward.output(3, 40.25, sofa.URINE[0], 100)  # too long after the one before to tell
    scores = ward.sofa(tmp_path)
    assert [scores[n][29] for n in (1, 2)] == [3, 0]
    assert not any(scores[3])


def test_what_irrigates_the_bladder_is_no_urine(tmp_path: Path) -> None:
    ward = Ward(1, 2)
    for n, came_out in ((1, 1300), (2, 1600)):
        ward.urine(n, 0)
        ward.output(n, 12.25, sofa.IRRIGANT_IN, 1000)
        ward.output(n, 12.25, sofa.IRRIGANT_AND_URINE_OUT, came_out)
    scores = ward.sofa(tmp_path)
    assert [scores[n][24] for n in (1, 2)] == [3, 0], "300 and 600 mL of urine"


def test_intubated_patients_do_not_score_for_speech(tmp_path: Path) -> None:
    ward = Ward(1)
    ward.chart(1, 5, 223900, 1, text="No Response-ETT")
    assert ward.sofa(tmp_path)[1][5] == 0


def gas(ward: Ward, n: int, ratio: float) -> None:
    ward.gas(n, 5, ratio / 2, 0.5 if n % 2 else 50)  # a fraction, or per cent


def ventilated_gas(ward: Ward, n: int, ratio: float) -> None:
    gas(ward, n, ratio)
    for hour in (4, 8):
        ward.chart(n, hour, sofa.OXYGEN_DEVICE, 1, text=sofa.TUBE)


def coma_scale(ward: Ward, n: int, total: int) -> None:
    speech = min(5, total - 2)
    movement = min(6, total - 1 - speech)
    for item, value in ((sofa.EYE, total - speech - movement), (sofa.VERBAL, speech), (sofa.MOTOR, movement)):
        ward.chart(n, 5, item, value)


def lab(item: int) -> Callable[[Ward, int, float], None]:
    return lambda ward, n, value: ward.lab(n, 5, item, value)


def pressor(item: int, **further: Any) -> Callable[[Ward, int, float], None]:
    return lambda ward, n, rate: ward.pressor(n, 5, 6, item, rate, **further)


BY_WEIGHT = {"rateuom": "mg/kg/min", "patientweight": 80}
THRESHOLDS: dict[str, tuple[Callable[[Ward, int, Any], None], list[tuple[float, int]]]] = {
    "bilirubin": (lab(sofa.BILIRUBIN), [(1.1, 0), (1.2, 1), (1.9, 1), (2, 2), (5.9, 2), (6, 3), (11.9, 3), (12, 4)]),
    "creatinine": (
        lab(sofa.CREATININE),
        [(1.1, 0), (1.2, 1), (1.9, 1), (2, 2), (3.4, 2), (3.5, 3), (4.9, 3), (5, 4), (151, 0)],
    ),
    "platelets": (
        lab(sofa.PLATELETS),
        [(150, 0), (149, 1), (100, 1), (99, 2), (50, 2), (49, 3), (20, 3), (19, 4), (0, 0)],
    ),
    "gas": (gas, [(400, 0), (399, 1), (300, 1), (299, 2), (200, 2), (199, 2), (99, 2)]),
    "ventilated gas": (ventilated_gas, [(400, 0), (399, 1), (300, 1), (299, 2), (200, 2), (199, 3), (100, 3), (99, 4)]),
    "coma scale": (coma_scale, [(15, 0), (14, 1), (13, 1), (12, 2), (10, 2), (9, 3), (6, 3), (5, 4), (3, 4)]),
    "mean pressure": (lambda ward, n, value: ward.chart(n, 5, 220052, value), [(70, 0), (69.9, 1), (0, 0)]),
    "dopamine": (pressor(sofa.DOPAMINE), [(0.5, 2), (5, 2), (5.1, 3), (15, 3), (15.1, 4)]),
    "dobutamine": (pressor(sofa.DOBUTAMINE), [(0.5, 2), (50, 2)]),
    "adrenaline": (pressor(sofa.EPINEPHRINE), [(0.1, 3), (0.11, 4)]),
    "noradrenaline": (pressor(sofa.NOREPINEPHRINE), [(0.01, 3), (0.1, 3), (0.11, 4)]),
    "noradrenaline in mg": (pressor(sofa.NOREPINEPHRINE, **BY_WEIGHT), [(0.05, 4)]),
    # A weight of 1 kg: the rate is taken as it stands, as that of the other drugs is in any unit.
    "noradrenaline in mcg": (pressor(sofa.NOREPINEPHRINE, rateuom="mg/kg/min", patientweight=1), [(0.05, 3)]),
    "adrenaline in mg": (pressor(sofa.EPINEPHRINE, **BY_WEIGHT), [(0.05, 3)]),
    "rewritten": (pressor(sofa.NOREPINEPHRINE, statusdescription="Rewritten"), [(0.05, 0)]),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_components_score_at_their_thresholds(tmp_path: Path, name: str) -> None:
    """The worst of respiration only on a ventilator."""
    measure, cases = THRESHOLDS[name]
    ward = Ward(*range(1, len(cases) + 1))
    for n, (value, _) in enumerate(cases, 1):
        measure(ward, n, value)
    scores = ward.sofa(tmp_path)
    assert [(value, scores[n][5]) for n, (value, _) in enumerate(cases, 1)] == cases


def test_oxygen_without_a_recent_share_of_it_does_not_score(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, 4)
    for n in (1, 2, 3, 4):
        ward.gas(n, 10, 50)
    ward.chart(2, 5.5, sofa.CHARTED_FIO2, 50)  # four and a half hours before
    ward.chart(3, 11, sofa.CHARTED_FIO2, 50)  # only afterwards
    ward.lab(4, 9, sofa.FIO2, 50)  # of another specimen
    assert not any(score for hours in ward.sofa(tmp_path).values() for score in hours)


def test_the_latest_charted_share_of_oxygen_serves_where_none_was_measured_with_the_gas(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3)
    for n in (1, 2, 3):
        ward.chart(n, 6.5, sofa.CHARTED_FIO2, 21)
        ward.chart(n, 8, sofa.CHARTED_FIO2, 0.5)
        ward.chart(n, 9, sofa.CHARTED_FIO2, 5)  # neither a fraction nor per cent
    ward.gas(1, 10, 120)  # ratio 240
    ward.gas(2, 10, 120, 30)  # the measured share counts: ratio 400
    ward.gas(3, 7, 60)  # at 21 %: ratio 286
    scores = ward.sofa(tmp_path)
    assert (scores[1][10], scores[2][10], scores[3][7]) == (2, 0, 2)


def test_only_arterial_gases_count(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, 4, 5)
    for n, drawn in enumerate(("ART.", "VEN.", "MIX.", "CENTRAL VENOUS."), 1):
        ward.gas(n, 5, 40, 50, drawn)
    ward.lab(5, 5, sofa.PAO2, 40)  # drawn nobody knows where
    ward.chart(5, 5, sofa.CHARTED_FIO2, 50)
    scores = ward.sofa(tmp_path)
    assert [scores[n][5] for n in range(1, 6)] == [2, 0, 0, 0, 0]


MODE, HAMILTON, DEVICE = sofa.VENTILATOR_MODE, sofa.HAMILTON_MODE, sofa.OXYGEN_DEVICE
CHARTED = {
    "modes at both ends": ([(4, MODE, "SIMV"), (7, MODE, "SIMV")], True),
    "a Hamilton ventilator": ([(4, HAMILTON, "APV (cmv)"), (7, HAMILTON, "ASV")], True),
    "standby": ([(4, MODE, "Standby"), (7, MODE, "Standby")], False),
    "standby between": ([(3, MODE, "SIMV"), (4, MODE, "Standby"), (7, MODE, "SIMV")], True),
    "once": ([(4, MODE, "SIMV")], False),
    "13 hours later": ([(2, MODE, "SIMV"), (15, MODE, "SIMV"), (16, MODE, "SIMV")], True),
    "14 hours later": ([(2, MODE, "SIMV"), (16, MODE, "SIMV"), (17, MODE, "SIMV")], False),
    "a mask since": ([(2, MODE, "SIMV"), (3, MODE, "SIMV"), (4, DEVICE, "CPAP mask "), (7, MODE, "SIMV")], False),
    "until the mask": ([(2, MODE, "SIMV"), (3, MODE, "SIMV"), (6, DEVICE, "Bipap mask ")], True),
    "a mask of the ventilator": ([(4, HAMILTON, "NIV"), (7, HAMILTON, "NIV")], False),
    "a tracheostomy": ([(4, DEVICE, "Trach mask "), (7, DEVICE, "Trach mask ")], False),
    "later": ([(6, MODE, "SIMV"), (7, MODE, "SIMV")], False),
}


@pytest.mark.parametrize("name", CHARTED)
def test_ventilation_is_an_interval_between_charted_modes_and_devices(tmp_path: Path, name: str) -> None:
    charted, ventilated = CHARTED[name]
    ward = Ward(1)
    ward.gas(1, 5, 45, 50)  # ratio 90
    for hour, item, text in charted:
        ward.chart(1, hour, item, 1, text=text)
    assert ward.sofa(tmp_path)[1][5] == (4 if ventilated else 2)


def test_the_coma_scale_scores_when_charted_and_is_carried_only_to_complete_it(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3)
    for n in (1, 2, 3):
        ward.chart(n, 5, sofa.VERBAL, 2)  # 12 with the rest normal
    ward.chart(2, 10, sofa.EYE, 3)  # five hours later: 3 + 2 + 6
    ward.chart(3, 12, sofa.EYE, 3)  # seven hours later: 3 + 5 + 6
    scores = ward.sofa(tmp_path)
    assert scores[1][28:30] == [2, 0], "24 hours, and no longer"
    assert scores[2][28:34] == [2] * 6
    assert scores[3][28:30] == [2, 1]


def test_urine_scores_at_its_thresholds_and_counts_with_creatinine_once(tmp_path: Path) -> None:
    cases = {500: 0, 499: 3, 200: 3, 199: 4}
    ward = Ward(1, 2, *cases)  # no urine of 2 was ever charted
    for total in cases:
        ward.urine(total, total)
    ward.urine(1, 499)
    ward.lab(1, 20, sofa.CREATININE, 2)
    scores = ward.sofa(tmp_path)
    assert {total: scores[total][24] for total in cases} == cases
    assert scores[1][24] == 3, "the worse of the two, not their sum"
    assert scores[2][39] == 0, "what is missing counts as normal"


def test_components_add_up(tmp_path: Path) -> None:
    ward = Ward(1)
    ward.lab(1, 5, sofa.BILIRUBIN, 2)
    ward.lab(1, 6, sofa.PLATELETS, 149)
    ward.chart(1, 7, 220052, 60)
    assert ward.sofa(tmp_path)[1][4:8] == [0, 2, 3, 4]


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
        ward.lab(n, 25, sofa.PLATELETS, 80)
        ward.culture(n, culture)
        ward.drug(n, drug)
    # SOFA is 2 for 24 hours from the value on. 5: last 48 h before, 6: 49 h before; 7: first 24 h after, 8: 25 h after.
    for n, value in ((5, 80 - 48 - 23), (6, 80 - 49 - 23), (7, 104), (8, 105)):
        ward.lab(n, value, sofa.PLATELETS, 80)
        ward.culture(n, 80)
        ward.drug(n, 81)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 20, 3: 20, 5: 80, 7: 80}


def test_of_several_suspicions_the_first_that_sofa_confirms_counts(tmp_path: Path) -> None:
    ward = Ward(1, hours=120)
    ward.lab(1, 80, sofa.PLATELETS, 80)
    for hour in (10, 70, 90):
        ward.culture(1, hour)
        ward.drug(1, hour + 1)
    ward.stay(2)  # a culture known by its day alone counts from midnight, here before the stay
    ward.lab(2, 1, sofa.PLATELETS, 80)
    ward.rows["hosp/microbiologyevents"].append({"subject_id": 2, "chartdate": f"{START:%Y-%m-%d} 00:00:00"})
    ward.drug(2, 3)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 70, 2: -8}


def treated(ward: Ward, n: int, culture: float, *orders: tuple[float, float], route: str = "IV") -> None:
    ward.culture(n, culture)
    for start, stop in orders:
        ward.drug(n, start, stop=stop, route=route)


def test_a_rise_by_two_points_within_a_day_is_asked_for(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, hours=120)
    for n in (1, 2, 3):
        treated(ward, n, 50, (51, 130))
    for hour in (0.5, 20, 40, 60):
        ward.lab(1, hour, sofa.PLATELETS, 80)  # 2 points throughout
    ward.lab(2, 45, sofa.PLATELETS, 80)  # 0, then 2
    for hour, value in ((0.5, 149), (20, 149), (40, 149), (55, 80)):
        ward.lab(3, hour, sofa.PLATELETS, value)  # 1, then 2
    assert ward.onsets(tmp_path, "sofa", "challenge2019", maximum_hours=120) == {2: 45}
    assert ward.onsets(tmp_path / "b", "sofa", "sepsis3", maximum_hours=120) == {1: 2, 2: 45, 3: 55}


def test_its_window_is_24_hours_before_to_12_after_the_suspicion(tmp_path: Path) -> None:
    ward = Ward(1, 2, 3, 4, hours=120)
    for n, hour in ((1, 35), (2, 36), (3, 72), (4, 73)):
        # The rise lasts a day, from the value on; before the suspicion its last hour decides.
        ward.lab(n, hour - 23 if hour < 60 else hour, sofa.PLATELETS, 80)
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
