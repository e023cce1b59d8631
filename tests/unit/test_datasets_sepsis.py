"""Sepsis sources: onsets by hand, labels, ranges and folds."""

import csv
import datetime
import gzip
import io
import os
import signal
import threading
import traceback
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from clai.checkpoints import STOPPED
from clai.datasets import mimic_iv
from clai.datasets.challenge2019 import parse, read
from clai.datasets.checksums import describe_files
from clai.datasets.fetch import Raw, matching, obtain
from clai.datasets.interrupted import exit_on_sigterm
from clai.datasets.miniature.make import make
from clai.datasets.miniature.mimic_iv import COLUMNS, write_tables
from clai.datasets.prepare import prepare
from clai.datasets.prepared import Prepared, load
from clai.datasets.recordings import Rows, outside_to_missing, write
from clai.datasets.splits import patient_folds
from clai.errors import InputError
from support.loopback import ONCE, entry

RANGES = {
    "HR": [20, 300],
    "O2Sat": [20, 100],
    "Temp": [25, 45],
    "SBP": [20, 300],
    "MAP": [10, 300],
    "DBP": [5, 250],
    "Resp": [1, 80],
}
CHALLENGE: dict[str, Any] = {"title": "Challenge 2019", "cohort": "all", "folds": 2, "variables": RANGES}
MIMIC: dict[str, Any] = {
    "title": "MIMIC-IV",
    "cohort": "all",
    "folds": 2,
    "variables": RANGES,
    "memory_gb": 1,
    "minimum_age": 18,
    "minimum_hours": 6,
    "maximum_hours": 100,
    "minimum_onset_hours": 2,
    "first_stay_only": True,
    "onset": "suspicion",
    "label_hours_before": 6,
    "label_hours_after": None,
}


# Folds


def test_no_patient_is_in_two_folds_and_folds_share_the_positive_ones() -> None:
    rng = np.random.default_rng(0)
    patients = rng.integers(0, 60, 150)
    positive = rng.random(150) < 0.3
    folds = patient_folds(patients, positive, 4, seed=1)
    for patient in np.unique(patients):
        assert len(np.unique(folds[patients == patient])) == 1
    assert set(folds) == {0, 1, 2, 3}
    shares = [positive[folds == k].mean() for k in range(4)]
    assert max(shares) - min(shares) < 0.15


def test_more_folds_than_positive_patients_is_an_error() -> None:
    found = "folds: found 2 patients with a positive hour and 8 without one, expected at least 3 of each"
    with pytest.raises(InputError, match=found):
        patient_folds(np.arange(10), np.arange(10) < 2, 3, seed=0)


def hours_of(stays: list[tuple[int, int]]) -> Rows:
    """Recordings of (hours, first positive hour), each of another patient; none is positive where that hour never comes."""
    recordings = np.repeat(np.arange(len(stays)), [hours for hours, _ in stays])
    hours = np.concatenate([np.arange(hours) for hours, _ in stays])
    y = (hours >= np.array([first for _, first in stays])[recordings]).astype(np.int64)
    x = np.random.default_rng(0).normal(80, 9, (len(y), 1)).astype(np.float32)
    return Rows(x, y, recordings, recordings, hours.astype(np.float32))


def refused_cohort(tmp_path: Path, rows: Rows, folds: np.ndarray | None = None, **changes: Any) -> str:
    settings = {
        "title": "MIMIC-IV",
        "cohort": "sepsis_only",
        "minimum_onset_hours": 4,
        "label_hours_before": 6,
        "folds": 2,
    }
    flow = [
        {"step": "ICU stays in the tables", "n": 140, "unit": "stays"},
        {"step": "after leaving out stays under 12 hours", "n": 52, "unit": "stays"},
        {"step": "after leaving out stays with an onset before hour 4", "n": 51, "unit": "stays"},
    ]
    whole = settings | {"variables": {"HR": [1, 299]}} | changes
    raw = Raw("mimic-iv", "mimic_iv", "3.1", tmp_path, (), "", "", False)
    with pytest.raises(InputError) as refused:
        write(raw, tmp_path / "prepared", whole, 0, rows, [], "", {"flow": flow}, folds)
    assert not (tmp_path / "prepared").exists()
    message = str(refused.value)
    assert (
        "The cohort: 140 stays: ICU stays in the tables; 52 stays: after leaving out stays under 12 hours; " in message
    )
    assert "The step that left out most (88): after leaving out stays under 12 hours." in message
    assert message.endswith("Its settings: cohort sepsis_only, minimum_onset_hours 4.")
    return message


def test_too_few_stays_are_refused_with_the_flow_and_the_settings_behind_it(tmp_path: Path) -> None:
    message = refused_cohort(tmp_path, hours_of([(20, 9), (20, 99)]))
    assert message.startswith(
        "datasets.mimic-iv.folds: found 1 patients with a positive hour and 1 without one, expected"
    )


def test_hours_of_one_class_are_refused(tmp_path: Path) -> None:
    message = refused_cohort(tmp_path, hours_of([(20, 0), (30, 0)]))
    assert message.startswith(
        "datasets.mimic-iv.label_hours_before: found 50 positive and 0 negative hours, expected some"
    )
    assert "raise `minimum_onset_hours` above 6" in message
    message = refused_cohort(tmp_path, hours_of([(20, 99), (30, 99)]))
    assert message.startswith("datasets.mimic-iv.cohort: found 0 positive and 50 negative hours")


def test_a_class_that_is_missing_from_a_fold_is_refused(tmp_path: Path) -> None:
    rows = hours_of([(20, 0), (20, 0), (20, 9)])
    message = refused_cohort(tmp_path, rows, folds=(rows.recordings == 2).astype(np.int64))
    assert message.startswith(
        "datasets.mimic-iv.folds: the rows of fold 0 are 0 of 'no sepsis', 40 of 'sepsis'; expected some"
    )
    rows = hours_of([(20, 99), (20, 99), (20, 9)])
    message = refused_cohort(tmp_path, rows, folds=(rows.recordings == 2).astype(np.int64))
    assert "the rows of fold 0 are 40 of 'no sepsis', 0 of 'sepsis'" in message


def test_values_outside_their_range_become_missing_and_are_counted() -> None:
    x = np.array([[80, 20.9], [500, 37], [np.nan, 46]], dtype=np.float32)
    assert outside_to_missing(x, {"HR": [20, 300], "Temp": [25, 45]}) == {"HR": 1, "Temp": 2}
    np.testing.assert_array_equal(np.isnan(x), [[False, True], [True, False], [True, True]])


# Challenge 2019


def record(*rows: str, header: str = "HR|Temp|ICULOS|SepsisLabel") -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def test_records_are_parsed_with_their_own_hours() -> None:
    batch = [("p000007.psv", record("80|NaN|3|0", "81|36.5|4|1")), ("p000002.psv", record("90|37|1|0"))]
    rows = parse(batch, ["HR", "Temp"])
    np.testing.assert_array_equal(rows.recordings, [7, 7, 2])
    np.testing.assert_array_equal(rows.hours, [3, 4, 1])
    np.testing.assert_array_equal(rows.y, [0, 1, 0])
    np.testing.assert_array_equal(rows.x, np.array([[80, np.nan], [81, 36.5], [90, 37]], dtype=np.float32))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (record("80|36|1"), "p000003.psv: has rows of other than 4 fields"),
        (record("80|warm|1|0"), "p000003.psv: has a field that is not a number"),
        (record("80|36|1|2"), "p000003.psv: SepsisLabel is not 0 or 1"),
        (record("80|1|0", header="HR|ICULOS|SepsisLabel"), "p000003.psv: header differs"),
        (b"", "p000003.psv: header differs"),
    ],
)
def test_a_malformed_record_is_named_among_good_ones(bad: bytes, message: str) -> None:
    good = record("80|36|1|0")
    with pytest.raises(InputError, match=message):
        parse([("p000001.psv", good), ("p000003.psv", bad), ("p000004.psv", good)], ["HR", "Temp"])


def challenge(folder: Path, out: Path, **changes: Any) -> Prepared:
    raw = obtain("challenge2019", entry("challenge2019"), folder / "sources.csv", folder, None, ONCE, True)
    prepare(raw, out, CHALLENGE | changes, 0)
    return load(out)


@pytest.fixture(scope="module")
def challenge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("challenge")
    make("challenge2019", folder, 5)
    return folder


def test_recordings_are_contiguous_with_hours_ascending_and_one_fold(challenge_folder: Path, tmp_path: Path) -> None:
    data = challenge(challenge_folder, tmp_path / "p")
    groups, hours = np.asarray(data["groups_all"]), np.asarray(data["hours_all"])
    same = groups[1:] == groups[:-1]
    assert same.sum() == len(groups) - len(np.unique(groups)), "contiguous"
    assert (np.diff(hours)[same] > 0).all()
    assert (np.diff(data["folds_all"])[same] == 0).all()
    np.testing.assert_array_equal(data["observed_all"], ~np.isnan(data["x_all"]))
    assert hours.min() == 1
    assert (hours[1:][~same] > 1).any(), "ICULOS does not always begin at 1"
    np.testing.assert_array_equal(data["patients_all"], groups)
    assert data.info["normalisation"] == {}, "each run computes its own, from its training rows"


def test_the_positive_cohort_leaves_out_and_counts_the_others(challenge_folder: Path, tmp_path: Path) -> None:
    whole = challenge(challenge_folder, tmp_path / "a")
    positive = challenge(challenge_folder, tmp_path / "b", cohort="sepsis_only")
    left_out = positive.info["exclusions"][0]
    assert left_out["reason"] == "recordings without a positive hour"
    kept = positive.info["splits"]["all"]
    assert kept["recordings"] + left_out["count"] == whole.info["splits"]["all"]["recordings"] == 120
    assert kept["counts"][1] == whole.info["splits"]["all"]["counts"][1]


def test_zips_and_their_folders_give_the_same_rows_and_both_at_once_are_refused(
    challenge_folder: Path, tmp_path: Path
) -> None:
    archive = challenge_folder / "training_setA.zip"
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path)
    records = matching(tmp_path, ["**/p*.psv"])
    a, b = read([archive], ["HR", "Resp"]), read(records, ["HR", "Resp"])
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.recordings, b.recordings)
    with pytest.raises(InputError, match="records appear twice"):
        read([archive, *records], ["HR", "Resp"])


# MIMIC-IV

START = datetime.datetime(2150, 1, 1, 7, 20)


class Ward:
    """Builds the MIMIC-IV tables of stays of 40 hours that begin at START, by hours since then."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in COLUMNS}

    def at(self, hour: float) -> str:
        return f"{START + datetime.timedelta(hours=hour):%Y-%m-%d %H:%M:%S}"

    def stay(self, n: int, hours: float = 40, age: int = 60, patient: int | None = None, begin: float = 0) -> None:
        subject = n if patient is None else patient
        if patient is None:
            self.rows["hosp/patients"].append({"subject_id": n, "anchor_age": age, "anchor_year": START.year})
        times = {"intime": self.at(begin), "outtime": self.at(begin + hours)}
        self.rows["icu/icustays"].append({"subject_id": subject, "hadm_id": n, "stay_id": 100 + n, **times})
        for hour in range(int(hours)):
            self.chart(n, begin + hour + 0.25, 220045, 80 + hour % 5, subject)

    def chart(self, n: int, hour: float, item: int, value: float, subject: int | None = None, text: str = "") -> None:
        self.rows["icu/chartevents"].append(
            {"subject_id": subject or n, "stay_id": 100 + n, "charttime": self.at(hour), "itemid": item,
             "value": text or value, "valuenum": value}
        )  # fmt: skip

    def lab(self, n: int, hour: float, item: int, value: float) -> None:
        self.rows["hosp/labevents"].append(
            {"subject_id": n, "itemid": item, "charttime": self.at(hour), "valuenum": value}
        )

    def culture(self, n: int, hour: float) -> None:
        day = START + datetime.timedelta(hours=hour)
        self.rows["hosp/microbiologyevents"].append(
            {"subject_id": n, "chartdate": f"{day:%Y-%m-%d} 00:00:00", "charttime": self.at(hour)}
        )

    def drug(self, n: int, hour: float, name: str = "Vancomycin", route: str = "IV") -> None:
        self.rows["hosp/prescriptions"].append(
            {"subject_id": n, "starttime": self.at(hour), "drug": name, "route": route}
        )

    def noradrenaline(self, n: int, start: float, end: float, rate: float) -> None:
        self.pressor(n, start, end, mimic_iv.NOREPINEPHRINE, rate)

    def pressor(self, n: int, start: float, end: float, item: int, rate: float, **further: Any) -> None:
        self.rows["icu/inputevents"].append(
            {"subject_id": n, "stay_id": 100 + n, "starttime": self.at(start), "endtime": self.at(end),
             "itemid": item, "rate": rate, "rateuom": "mcg/kg/min"} | further
        )  # fmt: skip

    def urine(self, n: int, total: float) -> None:
        """So much in the first 24 hours."""
        self.rows["icu/outputevents"].append(
            {"stay_id": 100 + n, "charttime": self.at(10), "itemid": 226559, "value": total}
        )

    def onsets(self, tmp_path: Path, onset: str, **changes: Any) -> dict[int, int]:
        """Onset hour by stay number."""
        with self.database(tmp_path) as database:
            mimic_iv.select_stays(database, MIMIC | changes)
            mimic_iv.read_events(database)
            mimic_iv.score_sofa(database)
            mimic_iv.find_onsets(database, onset)
            return {stay - 100: hour for stay, hour in database.execute("SELECT * FROM onsets").fetchall()}

    def sofa(self, tmp_path: Path) -> dict[int, list[int]]:
        """SOFA of each hour by stay number."""
        with self.database(tmp_path) as database:
            mimic_iv.select_stays(database, MIMIC)
            mimic_iv.read_events(database)
            mimic_iv.score_sofa(database)
            found: dict[int, list[int]] = {}
            for stay, score in database.execute("SELECT stay_id, sofa FROM sofa ORDER BY stay_id, hour").fetchall():
                found.setdefault(stay - 100, []).append(score)
            return found

    def database(self, tmp_path: Path) -> Any:
        write_tables(tmp_path / "mimic", self.rows)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        return mimic_iv.connect(tmp_path / "mimic", scratch, 1)


def septic(ward: Ward, n: int, sofa_hour: float) -> None:
    """A stay whose SOFA is 2 from `sofa_hour` on for a day: platelets below 100."""
    ward.stay(n)
    ward.lab(n, sofa_hour, 51265, 80)


def test_onset_needs_culture_antibiotic_and_sofa_in_their_windows(tmp_path: Path) -> None:
    ward = Ward()
    for n in range(1, 10):
        septic(ward, n, 20)
    # 1: antibiotic 71 h after the culture. 2: 73 h after. 3: culture 23 h after the antibiotic. 4: 25 h after.
    for n, culture, drug in ((1, 10, 81), (2, 10, 83), (3, 35, 12), (4, 37, 12)):
        ward.culture(n, culture)
        ward.drug(n, drug)
    ward.culture(5, 10)  # no antibiotic
    ward.drug(6, 10)  # no culture
    ward.culture(7, 10)
    ward.drug(7, 11, "Erythromycin 0.5% Ophth Oint", "BOTH EYES")
    ward.culture(8, 10)
    ward.drug(8, 11, "Acetaminophen", "PO")
    ward.culture(9, -6)  # SOFA comes 26 h after the suspicion
    ward.drug(9, -5)
    ward.stay(10)  # suspicion, but SOFA 0 throughout
    ward.culture(10, 10)
    ward.drug(10, 11)
    assert ward.onsets(tmp_path, "suspicion") == {1: 10, 3: 12}


@pytest.mark.parametrize(("onset", "hour"), [("suspicion", 25), ("sofa", 20), ("earliest", 20)])
def test_the_onset_is_the_time_that_the_setting_names(tmp_path: Path, onset: str, hour: int) -> None:
    ward = Ward()
    septic(ward, 1, 20)
    ward.culture(1, 25)
    ward.drug(1, 26)
    ward.culture(1, 34)
    assert ward.onsets(tmp_path, onset) == {1: hour}


def test_sofa_components_score_as_published(tmp_path: Path) -> None:
    ward = Ward()
    for n in range(1, 9):
        ward.stay(n)
    ward.lab(1, 5, 50885, 6.0)  # bilirubin: 3
    ward.lab(2, 5, 50912, 1.2)  # creatinine: 1
    ward.chart(3, 5, 220052, 69)  # mean pressure below 70: 1
    ward.noradrenaline(4, 5, 7, 0.1)  # noradrenaline up to 0.1: 3
    ward.noradrenaline(5, 5, 7, 0.2)  # above: 4
    ward.lab(6, 5, 50821, 90)  # PaO2 90 at FiO2 50 %, ratio 180: 2 without a ventilator
    ward.lab(6, 4, 50816, 50)
    ward.lab(7, 5, 50821, 90)  # the same on a ventilator: 3
    ward.lab(7, 4, 50816, 50)
    ward.chart(7, 3, 223849, 1, text="CMV/ASSIST")
    for item, value in ((220739, 2), (223900, 3), (223901, 4)):
        ward.chart(8, 5, item, value)  # coma scale 9: 3
    scores = ward.sofa(tmp_path)
    assert {n: scores[n][5] for n in range(1, 9)} == {1: 3, 2: 1, 3: 1, 4: 3, 5: 4, 6: 2, 7: 3, 8: 3}
    assert {scores[n][4] for n in range(1, 9)} == {0}, "nothing scores before it is measured"
    assert scores[1][28] == 3, "the worst of the last 24 hours counts"
    assert scores[1][29] == 0
    assert scores[4][30] == 3, "an infusion counts to its last hour, then 23 more"
    assert scores[4][31] == 0


def test_little_urine_scores_once_a_day_has_passed(tmp_path: Path) -> None:
    ward = Ward()
    ward.stay(1)
    for hour in range(40):
        ward.rows["icu/outputevents"].append(
            {"stay_id": 101, "charttime": ward.at(hour + 0.5), "itemid": 226559, "value": 15}
        )
    scores = ward.sofa(tmp_path)[1]
    assert scores[22] == 0
    assert scores[23] == 3, "360 mL in 24 hours"


def test_intubated_patients_do_not_score_for_speech(tmp_path: Path) -> None:
    ward = Ward()
    ward.stay(1)
    ward.chart(1, 5, 223900, 1, text="No Response-ETT")
    assert ward.sofa(tmp_path)[1][5] == 0


LABS = {
    "bilirubin": (mimic_iv.BILIRUBIN, [(1.1, 0), (1.2, 1), (1.9, 1), (2, 2), (5.9, 2), (6, 3), (11.9, 3), (12, 4)]),
    "creatinine": (mimic_iv.CREATININE, [(1.1, 0), (1.2, 1), (1.9, 1), (2, 2), (3.4, 2), (3.5, 3), (4.9, 3), (5, 4)]),
    "platelets": (
        mimic_iv.PLATELETS,
        [(150, 0), (149, 1), (100, 1), (99, 2), (50, 2), (49, 3), (20, 3), (19, 4)],
    ),
}


@pytest.mark.parametrize("name", LABS)
def test_laboratory_components_score_at_their_thresholds(tmp_path: Path, name: str) -> None:
    item, cases = LABS[name]
    ward = Ward()
    for n, (value, _) in enumerate(cases, 1):
        ward.stay(n)
        ward.lab(n, 5, item, value)
    scores = ward.sofa(tmp_path)
    assert [(value, scores[n][5]) for n, (value, _) in enumerate(cases, 1)] == cases


@pytest.mark.parametrize(
    ("ventilated", "cases"),
    [
        (False, [(400, 0), (399, 1), (300, 1), (299, 2), (200, 2), (199, 2), (99, 2)]),
        (True, [(400, 0), (399, 1), (300, 1), (299, 2), (200, 2), (199, 3), (100, 3), (99, 4)]),
    ],
)
def test_respiration_scores_at_its_thresholds_the_worst_only_on_a_ventilator(
    tmp_path: Path, ventilated: bool, cases: list[tuple[int, int]]
) -> None:
    ward = Ward()
    for n, (ratio, _) in enumerate(cases, 1):
        ward.stay(n)
        ward.lab(n, 4, mimic_iv.FIO2, 0.5 if n % 2 else 50)  # a fraction, or per cent
        ward.lab(n, 5, mimic_iv.PAO2, ratio / 2)
        if ventilated:
            ward.chart(n, 4, 226732, 1, text="Endotracheal tube")
    scores = ward.sofa(tmp_path)
    assert [(ratio, scores[n][5]) for n, (ratio, _) in enumerate(cases, 1)] == cases


def test_oxygen_without_a_recent_share_of_it_does_not_score(tmp_path: Path) -> None:
    ward = Ward()
    for n in (1, 2, 3):
        ward.stay(n)
        ward.lab(n, 10, mimic_iv.PAO2, 50)
    ward.lab(2, 5.5, mimic_iv.FIO2, 50)  # four and a half hours before
    ward.lab(3, 11, mimic_iv.FIO2, 50)  # only afterwards
    assert all(score == 0 for hours in ward.sofa(tmp_path).values() for score in hours)


PRESSORS = [
    (mimic_iv.DOPAMINE, 0.5, 2), (mimic_iv.DOPAMINE, 5, 2), (mimic_iv.DOPAMINE, 5.1, 3), (mimic_iv.DOPAMINE, 15, 3),
    (mimic_iv.DOPAMINE, 15.1, 4), (mimic_iv.DOBUTAMINE, 0.5, 2), (mimic_iv.DOBUTAMINE, 50, 2),
    (mimic_iv.EPINEPHRINE, 0.1, 3), (mimic_iv.EPINEPHRINE, 0.11, 4), (mimic_iv.NOREPINEPHRINE, 0.01, 3),
    (mimic_iv.NOREPINEPHRINE, 0.1, 3), (mimic_iv.NOREPINEPHRINE, 0.11, 4),
]  # fmt: skip


def test_circulation_scores_by_drug_and_rate(tmp_path: Path) -> None:
    ward = Ward()
    for n, (item, rate, _) in enumerate(PRESSORS, 1):
        ward.stay(n)
        ward.pressor(n, 5, 6, item, rate)
    for n, further in ((50, {"rateuom": "mcg/min", "patientweight": 80}), (51, {"statusdescription": "Rewritten"})):
        ward.stay(n)
        ward.pressor(n, 5, 6, mimic_iv.NOREPINEPHRINE, 10, **further)  # 10 mcg/min at 80 kg: 0.125
    for n, pressure in ((60, 70), (61, 69.9), (62, 0)):
        ward.stay(n)
        ward.chart(n, 5, 220052, pressure)
    scores = ward.sofa(tmp_path)
    assert [(*case[:2], scores[n][5]) for n, case in enumerate(PRESSORS, 1)] == PRESSORS
    assert [scores[n][5] for n in (50, 51)] == [4, 0]
    assert [scores[n][5] for n in (60, 61, 62)] == [0, 1, 0]


def test_consciousness_scores_at_its_thresholds(tmp_path: Path) -> None:
    ward = Ward()
    cases = {15: 0, 14: 1, 13: 1, 12: 2, 10: 2, 9: 3, 6: 3, 5: 4, 3: 4}
    for total in cases:
        ward.stay(total)
        speech = min(5, total - 2)
        movement = min(6, total - 1 - speech)
        for item, value in ((mimic_iv.EYE, total - speech - movement), (mimic_iv.VERBAL, speech)):
            ward.chart(total, 5, item, value)
        ward.chart(total, 5, mimic_iv.MOTOR, movement)
    scores = ward.sofa(tmp_path)
    assert {total: scores[total][5] for total in cases} == cases


def test_urine_scores_at_its_thresholds_and_counts_with_creatinine_once(tmp_path: Path) -> None:
    ward = Ward()
    cases = {500: 0, 499: 3, 200: 3, 199: 4}
    for total in cases:
        ward.stay(total)
        ward.urine(total, total)
    ward.stay(1)
    ward.urine(1, 499)
    ward.lab(1, 20, mimic_iv.CREATININE, 2)
    ward.stay(2)  # none was ever charted
    scores = ward.sofa(tmp_path)
    assert {total: scores[total][23] for total in cases} == cases
    assert scores[1][23] == 3, "the worse of the two, not their sum"
    assert scores[2][39] == 0, "what is missing counts as normal"


def test_components_add_up(tmp_path: Path) -> None:
    ward = Ward()
    ward.stay(1)
    ward.lab(1, 5, mimic_iv.BILIRUBIN, 2)
    ward.lab(1, 6, mimic_iv.PLATELETS, 149)
    ward.chart(1, 7, 220052, 60)
    assert ward.sofa(tmp_path)[1][4:8] == [0, 2, 3, 4]


def test_windows_hold_at_their_ends(tmp_path: Path) -> None:
    ward = Ward()
    for n in range(1, 9):
        ward.stay(n, hours=120)
    # 1, 2: antibiotic 72 h after the culture and a minute later. 3, 4: culture 24 h after the antibiotic and a minute later.
    for n, culture, drug in ((1, 20, 92), (2, 20, 92 + 1 / 60), (3, 44, 20), (4, 44 + 1 / 60, 20)):
        ward.lab(n, 25, mimic_iv.PLATELETS, 80)
        ward.culture(n, culture)
        ward.drug(n, drug)
    # SOFA is 2 for 24 hours from the value on. 5: last 48 h before, 6: 49 h before; 7: first 24 h after, 8: 25 h after.
    for n, value in ((5, 80 - 48 - 23), (6, 80 - 49 - 23), (7, 104), (8, 105)):
        ward.lab(n, value, mimic_iv.PLATELETS, 80)
        ward.culture(n, 80)
        ward.drug(n, 81)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 20, 3: 20, 5: 80, 7: 80}


def test_of_several_suspicions_the_first_that_sofa_confirms_counts(tmp_path: Path) -> None:
    ward = Ward()
    ward.stay(1, hours=120)
    ward.lab(1, 80, mimic_iv.PLATELETS, 80)
    for hour in (10, 70, 90):
        ward.culture(1, hour)
        ward.drug(1, hour + 1)
    ward.stay(2)  # a culture known by its day alone counts from midnight, here before the stay
    ward.lab(2, 1, mimic_iv.PLATELETS, 80)
    ward.rows["hosp/microbiologyevents"].append({"subject_id": 2, "chartdate": f"{START:%Y-%m-%d} 00:00:00"})
    ward.drug(2, 3)
    assert ward.onsets(tmp_path, "suspicion", maximum_hours=120) == {1: 70, 2: -8}


def test_one_patients_culture_and_anothers_antibiotic_are_no_suspicion(tmp_path: Path) -> None:
    ward = Ward()
    for n in (1, 2):
        septic(ward, n, 20)
    ward.culture(1, 20)
    ward.drug(2, 20)
    assert ward.onsets(tmp_path, "suspicion") == {}


def mimic(ward_rows: dict[str, Iterable[Any]], tmp_path: Path, **changes: Any) -> Prepared:
    folder = tmp_path / "mimic"
    paths = write_tables(folder, ward_rows)
    raw = Raw("mimic-iv", "mimic_iv", "3.1", folder, tuple(describe_files(paths, folder)), "", "", False)
    prepare(raw, tmp_path / "prepared", MIMIC | changes, 0)
    return load(tmp_path / "prepared")


def small_ward() -> Ward:
    ward = Ward()
    rng = np.random.default_rng(0)
    for n in range(1, 9):
        septic(ward, n, 20)
        for hour in range(0, 40, 2):
            for item in (220277, 220050, 220052, 220051, 220210):
                ward.chart(n, hour + 0.5, item, float(rng.integers(80, 99)) if item != 220210 else 15 + hour % 3)
            ward.chart(n, hour + 0.5, 223761, 98.6 + hour % 2 * 0.5 + n * 0.1)
        if n > 4:
            ward.culture(n, 22)
            ward.drug(n, 23)
    return ward


def test_hourly_means_labels_and_fahrenheit(tmp_path: Path) -> None:
    ward = small_ward()
    ward.chart(1, 3.4, 220045, 103)  # with 83 in the same hour
    ward.chart(1, 4.4, 220045, 9999)
    data = mimic(ward.rows, tmp_path, label_hours_after=5)
    x, y = np.asarray(data["x_all"]), np.asarray(data["y_all"])
    groups, hours = np.asarray(data["groups_all"]), np.asarray(data["hours_all"])
    first = groups == 101
    assert x[first][3, 0] == 93
    assert x[first][4, 0] == 84
    assert x[first][0, 2] == pytest.approx((98.7 - 32) / 1.8, abs=1e-4)
    assert np.isnan(x[first][1, 2])
    assert list(hours[groups == 106][y[groups == 106] == 1]) == list(range(16, 28)), "six hours before 22 to five after"
    assert not y[first].any()
    reasons = {e["reason"]: e["count"] for e in data.info["exclusions"]}
    assert reasons["values of HR outside 20 to 300"] == 1


def test_cohort_rules_leave_out_and_count(tmp_path: Path) -> None:
    ward = small_ward()
    ward.stay(20, age=17)
    ward.stay(21, hours=4)
    ward.stay(22, patient=1, begin=500)
    ward.stay(23, hours=120)
    ward.stay(24)  # an onset in the first hour
    ward.lab(24, 0.5, 51265, 80)
    ward.culture(24, 0.5)
    ward.drug(24, 2)
    data = mimic(ward.rows, tmp_path)
    reasons = {e["reason"]: e["count"] for e in data.info["exclusions"]}
    assert reasons["stays of patients younger than 18 years"] == 1
    assert reasons["stays shorter than 6 hours"] == 1
    assert reasons["later stays of the same patient"] == 1
    assert reasons["hours after hour 100 of a stay"] == 20
    assert reasons["stays with an onset before hour 2"] == 1
    assert set(np.unique(data["groups_all"])) == {*range(101, 109), 123}


def test_the_cohort_is_described_step_by_step(tmp_path: Path) -> None:
    ward = small_ward()
    ward.stay(20, age=17)
    ward.stay(21, hours=4)
    ward.rows["icu/icustays"].append(ward.rows["icu/icustays"][0] | {"subject_id": 999, "stay_id": 1099})
    data = mimic(ward.rows, tmp_path, cohort="sepsis_only")
    flow = [(step["step"], step["n"]) for step in data.info["flow"]]
    assert flow[0] == ("ICU stays in the tables", 11)
    assert flow[1] == ("after leaving out stays of patients whom hosp/patients does not have", 10)
    assert [n for _, n in flow] == sorted([n for _, n in flow], reverse=True)
    assert flow[-1] == ("after leaving out stays without an onset of sepsis", 4)
    assert data.info["splits"]["all"]["recordings"] == 4
    dropped = sum(e["count"] for e in data.info["exclusions"] if "left" in e)
    assert flow[0][1] - dropped == flow[-1][1]


# Layouts

NEWER = ("caregiver_id", "order_provider_id")


@pytest.fixture
def small_tables(tmp_path: Path) -> Path:
    write_tables(tmp_path / "whole", small_ward().rows)
    return tmp_path / "whole"


def rows_of(folder: Path, out: Path) -> dict[str, Any]:
    table = Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv"
    raw = obtain("mimic-iv", entry("mimic_iv", path=str(folder)), table, out, None, ONCE, False)
    prepare(raw, out, MIMIC, 0)
    data = load(out)
    return {name: np.asarray(values) for name, values in data.arrays.items()}


def test_releases_and_the_demo_are_read_alike(small_tables: Path, tmp_path: Path) -> None:
    """3.x as distributed; 2.x, without columns that came later; the demo's folder, also unpacked and one above."""
    older, demo = tmp_path / "mimic-iv-2.2", tmp_path / "above" / "mimic-iv-clinical-database-demo-2.2"
    for path in sorted(small_tables.rglob("*.csv.gz")):
        name = path.relative_to(small_tables)
        lines = list(csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines()))
        header = gzip.decompress(path.read_bytes()).decode().splitlines()[0].split(",")
        text = io.StringIO()
        writer = csv.DictWriter(
            text, [c for c in header if c not in NEWER], extrasaction="ignore", lineterminator="\r\n"
        )
        writer.writeheader()
        writer.writerows(lines)
        for target in (older / name, demo / name.with_suffix("")):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(
                gzip.compress(text.getvalue().encode()) if target.suffix == ".gz" else text.getvalue().encode()
            )
    (demo / "demo_subject_id.csv").write_text("subject_id\n1\n")
    (demo / "hosp" / "d_labitems.csv").write_text("itemid,label\n")
    whole = rows_of(small_tables, tmp_path / "a")
    for folder in (older, demo, demo.parent):
        found = rows_of(folder, tmp_path / f"p{folder.name}")
        assert found.keys() == whole.keys()
        for name, values in whole.items():
            np.testing.assert_array_equal(found[name], values)
    with pytest.raises(InputError, match="found 3 copies"):
        mimic_iv.locate(tmp_path)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    write_tables(tmp_path, {})
    (tmp_path / "hosp" / "labevents.csv.gz").unlink()
    with pytest.raises(InputError, match=r"found no hosp/labevents\.csv\.gz"):
        mimic_iv.connect(tmp_path, tmp_path, 1)


def test_what_the_definition_needs_and_the_tables_lack_is_named(tmp_path: Path) -> None:
    ward = small_ward()
    data = mimic(ward.rows, tmp_path)
    assert {"PaO2", "urine", "vasopressors", "coma scale, eyes", "mechanical ventilation"} <= set(data.info["lacking"])
    assert not {"platelets", "cultures", "antibiotics", "vital sign HR"} & set(data.info["lacking"])
    assert data.info["coverage"]["platelets"] == 8
    assert data.info["coverage"]["cultures"] == 4
    ward.rows["hosp/prescriptions"] = []
    with pytest.raises(InputError, match=r"found no onset of sepsis; the tables have no .*antibiotics"):
        mimic(ward.rows, tmp_path / "b")


# Interrupted attempts


def test_asked_to_stop_it_leaves_no_rows_and_the_status_of_a_stopped_training(
    small_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(database: duckdb.DuckDBPyConnection) -> None:
        assert [path.name[:17] for path in out.iterdir()] == [".prepared-duckdb-"]
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        database.execute("SELECT sum(x.range * y.range % 7) FROM range(1000000) x, range(1000000) y")

    out = tmp_path / "out"
    monkeypatch.setattr(mimic_iv, "score_sofa", interrupted)
    with pytest.raises(SystemExit) as left, exit_on_sigterm():
        rows_of(small_tables, out / "prepared")
    assert left.value.code == STOPPED
    assert not list(out.iterdir())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_what_a_killed_attempt_left_is_removed_and_nothing_else(small_tables: Path, tmp_path: Path) -> None:
    for name in (".prepared-k1ll_d00", ".prepared-duckdb-k1ll_d00", ".prepared-2-k1ll_d00", ".prepared-notes"):
        (tmp_path / "out" / name / "spill").mkdir(parents=True)
    rows_of(small_tables, tmp_path / "out" / "prepared")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"prepared", ".prepared-2-k1ll_d00", ".prepared-notes"}


# Tables that are not what they seem

SECRET = "10009999"


def rewrite(folder: Path, table: str, change: Callable[[str], str]) -> None:
    path = folder / f"{table}.csv.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("icu/chartevents", lambda t: t.replace("valuenum", "wert", 1), "found no column valuenum among"),
        ("icu/chartevents", lambda t: t + f"{SECRET},1,101\n", r"chartevents.*Line: \d+"),
        ("icu/chartevents", lambda t: t + f"{SECRET}," * 30 + "\n", r"chartevents.*Line: \d+"),
        ("icu/chartevents", lambda t: t.replace(",80,80,", f",80,eighty {SECRET},", 1), "chartevents.*Could not convert.*DOUBLE"),
        ("hosp/labevents", lambda t: t.replace(",80,", ",nan,", 1), "labevents.*a number is not finite"),
        ("hosp/labevents", lambda t: t.replace("2150-01-02", f"yesterday {SECRET}", 1), "labevents"),
        ("icu/icustays", lambda t: t.replace("\n1,", f"\nx{SECRET},", 1), "icustays"),
    ],
)  # fmt: skip
def test_rows_that_are_not_as_distributed_are_refused_without_showing_them(
    small_tables: Path, tmp_path: Path, table: str, change: Callable[[str], str], message: str
) -> None:
    before = gzip.decompress((small_tables / f"{table}.csv.gz").read_bytes())
    rewrite(small_tables, table, change)
    assert gzip.decompress((small_tables / f"{table}.csv.gz").read_bytes()) != before
    with pytest.raises(InputError, match=message) as raised:
        rows_of(small_tables, tmp_path / "p")
    assert SECRET not in "".join(traceback.format_exception(raised.value)), "a row of a patient reached the message"
    assert not (tmp_path / "p").exists()


def test_a_table_cut_short_is_refused(small_tables: Path, tmp_path: Path) -> None:
    path = small_tables / "icu" / "chartevents.csv.gz"
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(InputError, match="chartevents"):
        rows_of(small_tables, tmp_path / "p")


def test_too_little_memory_names_the_key_to_raise_and_blames_no_table(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^datasets\.mimic-iv\.memory_gb: found 0\.003; .*ran out.*Raise it"
    ) as raised:
        mimic(small_ward().rows, tmp_path, memory_gb=0.003)
    assert "distributed" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["mimic"]


def test_a_disk_that_is_full_is_told_as_such(small_tables: Path, tmp_path: Path) -> None:
    with mimic_iv.connect(small_tables, tmp_path, 0.02) as database:
        database.execute("SET max_temp_directory_size = '1MB'")
        sql = "CREATE TABLE a AS SELECT range AS r, hash(range)::VARCHAR AS h FROM range(600000) ORDER BY h"
        with pytest.raises(InputError, match=r"^icu/chartevents: no room on the disk.*Free disk space"):
            mimic_iv.run(database, sql, "icu/chartevents")


def test_no_statement_shows_rows_when_it_fails(small_tables: Path, tmp_path: Path) -> None:
    """Not only where files are read: what is made of them fails with their values, too."""
    with mimic_iv.connect(small_tables, tmp_path, 1) as database:
        database.execute(f"CREATE TABLE chart AS SELECT 1 AS stay_id, 1 AS hour, 220045 AS item, 'x{SECRET}' AS value")
        with pytest.raises(InputError, match="vital signs") as raised:
            mimic_iv.average_vitals(database, {"HR": [20, 300]})
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_miniature_stays_are_about_half_septic_and_prepared_from_end_to_end(tmp_path: Path) -> None:
    table = make("mimic-iv", tmp_path / "raw", 5)
    raw = obtain("mimic-iv", entry("mimic_iv"), table, tmp_path / "raw", None, ONCE, True)
    prepare(raw, tmp_path / "prepared", MIMIC | {"minimum_hours": 12}, 0)
    data = load(tmp_path / "prepared")
    groups, y = np.asarray(data["groups_all"]), np.asarray(data["y_all"])
    septic_share = len(np.unique(groups[y == 1])) / len(np.unique(groups))
    assert 0.3 < septic_share < 0.6
    assert data.info["title"] == "MIMIC-IV (miniature synthetic)"


# The real records


def test_the_real_challenge_has_its_published_counts(tmp_path: Path) -> None:
    path = os.environ.get("CLAI_CHALLENGE2019")
    if path is None:
        pytest.skip("set CLAI_CHALLENGE2019 to the folder of the Challenge 2019 zips")
    table = Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv"
    raw = obtain("challenge2019", entry("challenge2019", path=path), table, tmp_path, None, ONCE, False)
    prepare(raw, tmp_path / "prepared", CHALLENGE | {"folds": 5}, 0)
    data = load(tmp_path / "prepared")
    assert data.info["splits"]["all"]["n"] == 790_215 + 761_995
    assert data.info["splits"]["all"]["recordings"] == 40_336
    groups, y = np.asarray(data["groups_all"]), np.asarray(data["y_all"])
    assert len(np.unique(groups[y == 1])) == 1_790 + 1_142
