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
# Item of each vital sign in icu/chartevents, and the share of the hours in which it is charted.
_CHARTED = {
    "HR": (220045, 0.95), "O2Sat": (220277, 0.92), "SBP": (220179, 0.9), "MAP": (220181, 0.9), "DBP": (220180, 0.9),
    "Resp": (220210, 0.93), "Temp": (223761, 0.35),
}  # fmt: skip


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


class _Stay:
    """A stay and the `rows` of all tables, to which it adds its own; `keys` are its identifiers."""

    def __init__(self, rows: Rows, number: int, patient: int, start: datetime.datetime) -> None:
        self.rows, self.start, self.number = rows, start, number
        self.keys = {
            "subject_id": 10_000_000 + 37 * patient,
            "hadm_id": 20_000_000 + 41 * number,
            "stay_id": 30_000_000 + 43 * number,
        }

    def at(self, hour: float) -> str:
        return f"{self.start + datetime.timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}"

    def add(self, table: str, **cells: Any) -> None:
        """Add a row with the identifiers that the table has."""
        known = {name: value for name, value in self.keys.items() if name in COLUMNS[table]}
        self.rows[table].append(known | cells)

    def chart(self, hour: float, item: int, value: str, number: Any) -> None:
        self.add("icu/chartevents", charttime=self.at(hour), itemid=item, value=value, valuenum=number)

    def output(self, hour: float, item: int, volume: int) -> None:
        """Chart what left the body or entered the bladder, in mL."""
        self.add("icu/outputevents", charttime=self.at(hour), itemid=item, value=volume)

    def measure(self, hour: float, specimen: int, values: Mapping[int, str], **patient: Any) -> None:
        for item, value in values.items():
            number = value if value.replace(".", "", 1).isdigit() else ""
            cells = {"itemid": item, "value": value, "valuenum": number}
            specimen_id = 430_000 * self.number + specimen
            self.add("hosp/labevents", specimen_id=specimen_id, charttime=self.at(hour), **cells, **patient)

    def culture(self, hour: float, timed: bool) -> None:
        """Add a blood culture, with its time or its day alone."""
        day, time = self.at(hour)[:10] + " 00:00:00", self.at(hour) if timed else ""
        self.add("hosp/microbiologyevents", chartdate=day, charttime=time)

    def drug(self, hour: float, name: str, route: str) -> None:
        """Prescribe a drug for three days."""
        start, until = self.at(hour), self.at(hour + 72)
        self.add("hosp/prescriptions", starttime=start, stoptime=until, drug=name, route=route)


def mimic_iv(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write 80 ICU stays of 74 patients, about half of them with an onset of sepsis; one is too short to keep."""
    rows: Rows = {table: [] for table in COLUMNS}
    for number in range(80):
        again = number >= 74
        start = datetime.datetime(2150, 1, 1, 7, 20) + datetime.timedelta(days=30 * number + (4000 if again else 0))
        stay = _Stay(rows, number, number - 74 if again else number, start)
        hours = 6 if number == 5 else int(rng.integers(30, 80))
        septic = hours > 20 and (number % 2 == 0)
        onset = int(rng.integers(14, max(hours - 8, 16))) if septic else None
        if not again:
            stay.add("hosp/patients", anchor_age=int(rng.integers(19, 91)), anchor_year=start.year)
        stay.add("icu/icustays", intime=stay.at(0), outtime=stay.at(hours - 0.3))
        _chart(stay, vital_signs(hours, onset, rng), rng)
        _laboratory(stay, hours, onset, rng)
        if number % 3 == 0:
            _ventilation(stay, hours, onset, hamilton=number % 2 == 0)
        if number % 5 == 0:  # irrigation of the bladder: more comes out than goes in
            for hour in range(3, hours, 12):
                stay.output(hour, 227488, 1000)
                stay.output(hour, 227489, 1100)
        _infection(stay, hours, onset, rng)
    return write_tables(folder, rows)


def _chart(stay: _Stay, values: NDArray[Any], rng: np.random.Generator) -> None:
    """Add the vital signs, coma scale and urine of a stay; a few values are impossible, and times fall between hours."""
    for hour, hourly in enumerate(values):
        for name, value in zip(VITALS, hourly, strict=True):
            item, share = _CHARTED[name]
            if rng.random() > share:
                continue
            if rng.random() < 0.002:
                value = 9999.0
            if name == "Temp" and value < 100:
                value = value * 9 / 5 + 32
            stay.chart(hour + rng.random() * 0.6, item, f"{value:.1f}", f"{value:.1f}")
        if hour % 4 == 0:
            for item, best in ((220739, 4), (223900, 5), (223901, 6)):
                stay.chart(hour, item, "", best)
            stay.output(hour + 0.5, 226559, int(rng.integers(160, 420)))


def _laboratory(stay: _Stay, hours: int, onset: int | None, rng: np.random.Generator) -> None:
    """Add laboratory values every eight hours, worse from two hours before an onset, and noradrenaline for some stays."""
    for hour in range(1, hours, 8):
        ill = onset is not None and hour >= onset - 2
        for item, value in (
            (51265, rng.uniform(60, 95) if ill else rng.uniform(160, 320)),
            (50885, rng.uniform(2.1, 4) if ill else rng.uniform(0.3, 1.1)),
            (50912, rng.uniform(1.3, 1.9) if ill else rng.uniform(0.6, 1.1)),
        ):
            patient = {} if rng.random() < 0.9 else {"hadm_id": ""}
            stay.measure(hour, 10 * hour, {item: f"{value:.1f}"}, **patient)
    if onset is not None and rng.random() < 0.5:
        first, last = stay.at(onset + 1), stay.at(onset + 6)
        stay.add("icu/inputevents", starttime=first, endtime=last, itemid=221906, rate=0.08, rateuom="mcg/kg/min")


def _ventilation(stay: _Stay, hours: int, onset: int | None, hamilton: bool) -> None:
    """Add a ventilator in the first half of a stay, then its standby and a cannula, and blood gases throughout.

    An arterial gas falls to a ratio below 300 from two hours before an onset. A venous gas would score, if it counted.
    """
    half = hours // 2
    for hour in range(1, hours, 4):
        charted = {223835: "50", (229314 if hamilton else 223849): "APV (cmv)" if hamilton else "CMV/ASSIST"}
        if hour >= half:
            charted = {223835: "0.4", 223849: "Standby", 226732: "Nasal cannula"}
        for item, value in charted.items():
            stay.chart(hour, item, value, value if item == 223835 else "")
    for hour in range(2, hours, 8):
        ratio, percent = (250 if onset is not None and hour >= onset - 2 else 450), 50 if hour < half else 40
        arterial = {52033: "ART.", 50821: f"{ratio * percent / 100:.0f}"}
        stay.measure(hour, 10 * hour + 1, arterial | ({50816: f"{percent}"} if hour % 16 == 2 else {}))
        stay.measure(hour + 0.5, 10 * hour + 2, {52033: "VEN.", 50821: "35"})


def _infection(stay: _Stay, hours: int, onset: int | None, rng: np.random.Generator) -> None:
    """Add cultures and antibiotics around an onset; stays without one get at most one of the two, and all an eye ointment."""
    if onset is not None:
        stay.culture(onset, timed=True)
        stay.culture(onset + 5, timed=True)
        stay.drug(onset + 2, "Vancomycin", "IV")
        stay.drug(onset + 3, "Piperacillin-Tazobactam", "IV")
        stay.drug(onset + 20, "Ciprofloxacin HCl", "PO/NG")
    elif rng.random() < 0.4:
        stay.culture(hours / 2, timed=rng.random() < 0.5)
    elif rng.random() < 0.4:
        stay.drug(hours / 2, "CefazoLIN", "IV")
    stay.drug(2, "Erythromycin 0.5% Ophth Oint", "BOTH EYES")
    stay.drug(1, "Acetaminophen", "PO/NG")
