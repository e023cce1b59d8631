"""The MIMIC-IV tables of a made-up ward, and what the library makes of them."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np

from replication.datasets import mimic_iv
from replication.datasets.mimic_iv.sofa import PLATELETS, URINE
from replication.datasets.mimic_iv.tables import connect
from replication.datasets.miniature import icu
from support.repository import REAL

SMALL = {"folds": 2, "development_share": None}
CHALLENGE: dict[str, Any] = REAL["datasets"]["challenge2019"] | SMALL
MIMIC: dict[str, Any] = REAL["datasets"]["mimic-iv"] | SMALL | {
    "cohort": "all", "variables": CHALLENGE["variables"], "memory_gb": 1, "minimum_hours": 6, "maximum_hours": 100,
    "minimum_onset_hours": 2, "onset": "sepsis3",
}  # fmt: skip
START = datetime.datetime(2150, 1, 1, 7, 20)


class Ward(icu.Ward):
    """Stays that begin at START, and what the library makes of them."""

    def __init__(self, *stays: int, hours: float = 40) -> None:
        super().__init__()
        for n in stays:
            self.stay(n, hours)

    def stay(self, n: int, hours: float = 40, age: int = 60, patient: int | None = None, begin: float = 0) -> None:
        self.starts[n] = START
        self.keys[n] = {"subject_id": n if patient is None else patient, "stay_id": 100 + n}
        if patient is None:
            self.add("hosp/patients", n, anchor_age=age, anchor_year=START.year)
        self.add("icu/icustays", n, intime=self.at(n, begin), outtime=self.at(n, begin + hours))
        for hour in range(int(hours)):
            self.chart(n, begin + hour + 0.25, 220045, 80 + hour % 5)

    def pressor(self, n: int, start: float, end: float, item: int, rate: float, **further: Any) -> None:
        cells = {"itemid": item, "rate": rate, "rateuom": "mcg/kg/min"} | further
        self.add("icu/inputevents", n, starttime=self.at(n, start), endtime=self.at(n, end), **cells)

    def urine(self, n: int, total: float, first: float = 1.25, last: float = 24.25) -> None:
        """So much, charted every hour from `first` to `last` in equal parts, and the rest with the first."""
        hours = np.arange(first, last + 1)
        part = total // len(hours)
        for hour in hours:
            self.output(n, hour, URINE[0], part + (total - part * len(hours) if hour == first else 0))

    def onsets(self, tmp_path: Path, time: str = "suspicion", rule: str = "sepsis3", **changes: Any) -> dict[int, int]:
        """Hour of the onset, or of its suspicion or SOFA, by stay number."""
        found = self.labelled(tmp_path, f"SELECT stay_id, {time} FROM onsets", onset=rule, **changes)
        return {stay - 100: hour for stay, hour in found}

    def sofa(self, tmp_path: Path) -> dict[int, list[int]]:
        """SOFA of each hour by stay number."""
        found: dict[int, list[int]] = {}
        for stay, score in self.labelled(tmp_path, "SELECT stay_id, sofa FROM sofa ORDER BY stay_id, hour"):
            found.setdefault(stay - 100, []).append(score)
        return found

    def labelled(self, tmp_path: Path, sql: str, **changes: Any) -> list[Any]:
        with connect(icu.write_tables(tmp_path, self.rows), tmp_path, 1) as database:
            mimic_iv.label(database, MIMIC | changes)
            return database.execute(sql).fetchall()


def septic(*stays: int) -> Ward:
    """Stays whose SOFA is 2 from hour 20 on for a day: platelets below 100."""
    ward = Ward(*stays)
    for n in stays:
        ward.lab(n, 20, PLATELETS, 80)
    return ward


def small_ward() -> Ward:
    ward, rng = septic(*range(1, 9)), np.random.default_rng(0)
    for n in range(1, 9):
        for hour in range(0, 40, 2):
            for item in (220277, 220050, 220052, 220051, 220210):
                ward.chart(n, hour + 0.5, item, float(rng.integers(80, 99)) if item != 220210 else 15 + hour % 3)
            ward.chart(n, hour + 0.5, 223761, 98.6 + hour % 2 * 0.5 + n * 0.1)
        if n > 4:
            ward.culture(n, 22)
            ward.drug(n, 23)
    return ward
