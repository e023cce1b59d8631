"""Miniatures of the sepsis sources: csv.gz tables as in MIMIC-IV, and zips of the records of Challenge 2019."""

import datetime
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter

from replication.datasets.mimic_iv.sofa import FIO2, PAO2, SPECIMEN
from replication.datasets.mimic_iv.tables import TABLES, VITALS

Rows = dict[str, list[dict[str, Any]]]
# Mean over patients; spread between patients and within one; drift up to the onset of sepsis.
_USUAL = np.array([84.0, 97.2, 36.9, 122.0, 82.0, 64.0, 18.0])
_BETWEEN = np.array([11.0, 1.2, 0.3, 13.0, 8.0, 7.0, 2.5])
_WITHIN = np.array([6.0, 1.2, 0.25, 9.0, 6.0, 5.0, 2.5])
_SEPSIS = np.array([15.0, -1.4, 0.8, -16.0, -11.0, -7.0, 4.5])
# Decimals that the source gives of each vital sign.
_DIGITS = {"HR": 0, "O2Sat": 0, "Temp": 2, "SBP": 0, "MAP": 1, "DBP": 0, "Resp": 0}
HEADER = (
    "HR|O2Sat|Temp|SBP|MAP|DBP|Resp|EtCO2|BaseExcess|HCO3|FiO2|pH|PaCO2|SaO2|AST|BUN|Alkalinephos|Calcium|"
    "Chloride|Creatinine|Bilirubin_direct|Glucose|Lactate|Magnesium|Phosphate|Potassium|Bilirubin_total|"
    "TroponinI|Hct|Hgb|PTT|WBC|Fibrinogen|Platelets|Age|Gender|Unit1|Unit2|HospAdmTime|ICULOS|SepsisLabel"
)
COLUMNS = {table: dict.fromkeys(["subject_id", *read.split(), "hadm_id"]) for table, read in TABLES.items()}
"""The columns that are read of each table, between the identifiers of patient and admission."""
_CHARTED = (0.95, 0.92, 0.35, 0.9, 0.9, 0.9, 0.93)  # in this share of hours, in the order of VITALS


def vital_signs(hours: int, onset: int | None, rng: np.random.Generator) -> NDArray[Any]:
    """Return vital signs (hours, 7), of VITALS, around a level of the patient; before an onset they drift to that of sepsis."""
    level = _USUAL + _BETWEEN * rng.normal(size=7)
    noise = rng.normal(size=(hours, 7))
    slow, _ = lfilter([0.6], [1, -0.8], noise, axis=0, zi=0.8 * rng.normal(size=(1, 7)))
    values: NDArray[Any] = level + _WITHIN * slow
    if onset is not None:
        ramp = np.clip((np.arange(hours) - (onset - 10)) / 10, 0, 1)
        values += ramp[:, None] * _SEPSIS * rng.uniform(0.2, 1.1)
    values[:, 1] = np.minimum(values[:, 1], 100)
    values[:, 2:] = np.maximum(values[:, 2:], 5)
    return values


def challenge2019(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `training_setA.zip` and `training_setB.zip` with 60 records each, one in five septic."""
    written = []
    for letter, first in (("A", 1), ("B", 100001)):
        observed = np.array([0.92, 0.88, 0.34, 0.85, 0.90, 0.52 if letter == "A" else 0.85, 0.90])
        members = {}
        for number in range(first, first + 60):
            septic = rng.random() < 0.2 or number % 30 == 1
            hours = int(rng.integers(20, 56))
            onset = hours - 4 if septic else None
            values = vital_signs(hours, onset, rng)
            values[rng.random(values.shape) > observed] = np.nan
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 2] = 20.9
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 6] = 100
            if letter == "A" and rng.random() < 0.3:
                values[:, 5] = np.nan
            start = 1 if rng.random() < 0.85 else int(rng.integers(2, 9))
            labelled = hours if onset is None else onset - 6
            age, gender = round(float(rng.uniform(20, 89)), 2), int(rng.integers(2))
            admitted = round(-float(rng.exponential(20)), 2)
            hour = np.arange(hours)
            own: dict[str, Any] = {"Age": age, "Gender": gender, "HospAdmTime": admitted, "ICULOS": start + hour}
            record = pd.DataFrame(values, columns=list(_DIGITS)).round(_DIGITS).reindex(columns=HEADER.split("|"))
            record = record.assign(**own, SepsisLabel=(hour >= labelled).astype(int))
            members[f"training_set{letter}/p{number:06d}.psv"] = record.to_csv(sep="|", na_rep="NaN", index=False)
        path = folder / f"training_set{letter}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():  # with a date, so that the bytes depend on the records alone
                archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
        written.append(path)
    return written


def write_tables(folder: Path, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Path]:
    """Write MIMIC-IV tables, of these cells by column, as `<folder>/<table>.csv.gz`; what a row leaves out stays empty."""
    written = []
    for table, columns in COLUMNS.items():
        path = folder / f"{table}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame(list(rows.get(table, ())), columns=list(columns), dtype=object)
        frame.to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})
        written.append(path)
    return written


class Ward:
    """Rows of the tables by stay: `keys` has the identifiers of stay n, and hours count from its start."""

    def __init__(self) -> None:
        self.rows: Rows = {table: [] for table in COLUMNS}
        self.keys: dict[int, dict[str, int]] = {}
        self.starts: dict[int, datetime.datetime] = {}

    def at(self, n: int, hour: float) -> str:
        return f"{self.starts[n] + datetime.timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}"

    def add(self, table: str, n: int, **cells: Any) -> None:
        """Add a row with the identifiers that the table has."""
        known = {name: value for name, value in self.keys[n].items() if name in COLUMNS[table]}
        self.rows[table].append(known | cells)

    def chart(self, n: int, hour: float, item: int, value: Any, text: str = "") -> None:
        cells = {"itemid": item, "value": text or value, "valuenum": value}
        self.add("icu/chartevents", n, charttime=self.at(n, hour), **cells)

    def output(self, n: int, hour: float, item: int, volume: float) -> None:
        """Chart what left the body or entered the bladder, in mL."""
        self.add("icu/outputevents", n, charttime=self.at(n, hour), itemid=item, value=volume)

    def lab(self, n: int, hour: float, item: int, value: Any, specimen: int | None = None, **patient: Any) -> None:
        specimen = len(self.rows["hosp/labevents"]) if specimen is None else specimen
        cells = {"itemid": item, "value": value, "valuenum": "" if isinstance(value, str) else value}
        self.add("hosp/labevents", n, charttime=self.at(n, hour), specimen_id=specimen, **cells, **patient)

    def gas(self, n: int, hour: float, pao2: float, fio2: float | None = None, drawn: str = "ART.") -> None:
        """Add a blood gas; `fio2` is measured with it."""
        specimen = len(self.rows["hosp/labevents"])
        self.lab(n, hour, SPECIMEN, drawn, specimen)
        self.lab(n, hour, PAO2, pao2, specimen)
        if fio2 is not None:
            self.lab(n, hour, FIO2, fio2, specimen)

    def culture(self, n: int, hour: float, timed: bool = True) -> None:
        """Add a blood culture, with its time or its day alone."""
        time = self.at(n, hour)
        self.add("hosp/microbiologyevents", n, chartdate=time[:10] + " 00:00:00", charttime=time if timed else "")

    def drug(self, n: int, hour: float, name: str = "Vancomycin", route: str = "IV", stop: float | None = None) -> None:
        until = "" if stop is None else self.at(n, stop)
        self.add("hosp/prescriptions", n, starttime=self.at(n, hour), stoptime=until, drug=name, route=route)


def mimic_iv(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write 80 ICU stays of 74 patients, about half of them with an onset of sepsis; one is too short to keep."""
    ward = Ward()
    for n in range(80):
        again = n >= 74
        days = 30 * n + (4000 if again else 0)
        ward.starts[n] = datetime.datetime(2150, 1, 1, 7, 20) + datetime.timedelta(days=days)
        patient = n - 74 if again else n
        ward.keys[n] = {
            "subject_id": 10_000_000 + 37 * patient, "hadm_id": 20_000_000 + 41 * n, "stay_id": 30_000_000 + 43 * n
        }  # fmt: skip
        hours = 6 if n == 5 else int(rng.integers(30, 80))
        septic = hours > 20 and (n % 2 == 0)
        onset = int(rng.integers(14, max(hours - 8, 16))) if septic else None
        if not again:
            ward.add("hosp/patients", n, anchor_age=int(rng.integers(19, 91)), anchor_year=ward.starts[n].year)
        ward.add("icu/icustays", n, intime=ward.at(n, 0), outtime=ward.at(n, hours - 0.3))
        _chart(ward, n, vital_signs(hours, onset, rng), rng)
        _laboratory(ward, n, hours, onset, rng)
        if n % 3 == 0:
            _ventilation(ward, n, hours, onset, hamilton=n % 2 == 0)
        if n % 5 == 0:  # irrigation of the bladder: more comes out than goes in
            for hour in range(3, hours, 12):
                ward.output(n, hour, 227488, 1000)
                ward.output(n, hour, 227489, 1100)
        _infection(ward, n, hours, onset, rng)
    return write_tables(folder, ward.rows)


def _chart(ward: Ward, n: int, values: NDArray[Any], rng: np.random.Generator) -> None:
    """Add the vital signs, coma scale and urine of a stay; a few values are impossible, and times fall between hours."""
    for hour, hourly in enumerate(values):
        for (name, items), value, share in zip(VITALS.items(), hourly, _CHARTED, strict=True):
            if rng.random() > share:
                continue
            if rng.random() < 0.002:
                value = 9999.0
            if name == "Temp" and value < 100:
                value = value * 9 / 5 + 32
            ward.chart(n, hour + rng.random() * 0.6, items[0], f"{value:.1f}")
        if hour % 4 == 0:
            for item, best in ((220739, 4), (223900, 5), (223901, 6)):
                ward.chart(n, hour, item, best)
            ward.output(n, hour + 0.5, 226559, int(rng.integers(160, 420)))


def _laboratory(ward: Ward, n: int, hours: int, onset: int | None, rng: np.random.Generator) -> None:
    """Add laboratory values every eight hours, worse from two hours before an onset, and noradrenaline for some stays."""
    for hour in range(1, hours, 8):
        ill = onset is not None and hour >= onset - 2
        for item, value in (
            (51265, rng.uniform(60, 95) if ill else rng.uniform(160, 320)),
            (50885, rng.uniform(2.1, 4) if ill else rng.uniform(0.3, 1.1)),
            (50912, rng.uniform(1.3, 1.9) if ill else rng.uniform(0.6, 1.1)),
        ):
            patient: dict[str, Any] = {} if rng.random() < 0.9 else {"hadm_id": ""}
            ward.lab(n, hour, item, round(value, 1), **patient)
    if onset is not None and rng.random() < 0.5:
        first, last = ward.at(n, onset + 1), ward.at(n, onset + 6)
        ward.add("icu/inputevents", n, starttime=first, endtime=last, itemid=221906, rate=0.08, rateuom="mcg/kg/min")


def _ventilation(ward: Ward, n: int, hours: int, onset: int | None, hamilton: bool) -> None:
    """Add a ventilator in the first half of a stay, then its standby and a cannula, and blood gases throughout.

    An arterial gas falls to a ratio below 300 from two hours before an onset. A venous gas would score, if it counted.
    """
    half, mode = hours // 2, (229314, "APV (cmv)") if hamilton else (223849, "CMV/ASSIST")
    for hour in range(1, hours, 4):
        ward.chart(n, hour, 223835, 50 if hour < half else 0.4)
        for item, text in [mode] if hour < half else [(223849, "Standby"), (226732, "Nasal cannula")]:
            ward.chart(n, hour, item, "", text)
    for hour in range(2, hours, 8):
        ratio, percent = (250 if onset is not None and hour >= onset - 2 else 450), 50 if hour < half else 40
        ward.gas(n, hour, ratio * percent // 100, percent if hour % 16 == 2 else None)
        ward.gas(n, hour + 0.5, 35, drawn="VEN.")


def _infection(ward: Ward, n: int, hours: int, onset: int | None, rng: np.random.Generator) -> None:
    """Add cultures and antibiotics around an onset; stays without one get at most one of the two, and all an eye ointment."""
    if onset is not None:
        ward.culture(n, onset)
        ward.culture(n, onset + 5)
        ward.drug(n, onset + 2, stop=onset + 74)
        ward.drug(n, onset + 3, "Piperacillin-Tazobactam", stop=onset + 75)
        ward.drug(n, onset + 20, "Ciprofloxacin HCl", "PO/NG", onset + 92)
    elif rng.random() < 0.4:
        ward.culture(n, hours / 2, timed=rng.random() < 0.5)
    elif rng.random() < 0.4:
        ward.drug(n, hours / 2, "CefazoLIN", stop=hours / 2 + 72)
    ward.drug(n, 2, "Erythromycin 0.5% Ophth Oint", "BOTH EYES", 74)
    ward.drug(n, 1, "Acetaminophen", "PO/NG", 73)
