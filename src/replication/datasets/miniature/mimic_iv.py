"""A miniature of MIMIC-IV: its csv.gz tables with the columns of release 3.1."""

import csv
import datetime
import gzip
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replication.datasets.miniature.vital_signs import VITALS, vital_signs

COLUMNS = {
    "hosp/patients": "subject_id gender anchor_age anchor_year anchor_year_group dod",
    "icu/icustays": "subject_id hadm_id stay_id first_careunit last_careunit intime outtime los",
    "icu/chartevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valuenum valueuom "
    "warning",
    "icu/inputevents": "subject_id hadm_id stay_id caregiver_id starttime endtime storetime itemid amount amountuom "
    "rate rateuom orderid linkorderid ordercategoryname secondaryordercategoryname ordercomponenttypedescription "
    "ordercategorydescription patientweight totalamount totalamountuom isopenbag continueinnextdept statusdescription "
    "originalamount originalrate",
    "icu/outputevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valueuom",
    "hosp/labevents": "labevent_id subject_id hadm_id specimen_id itemid order_provider_id charttime storetime value "
    "valuenum valueuom ref_range_lower ref_range_upper flag priority comments",
    "hosp/microbiologyevents": "microevent_id subject_id hadm_id micro_specimen_id order_provider_id chartdate "
    "charttime spec_itemid spec_type_desc test_seq storedate storetime test_itemid test_name org_itemid org_name "
    "isolate_num quantity ab_itemid ab_name dilution_text dilution_comparison dilution_value interpretation comments",
    "hosp/prescriptions": "subject_id hadm_id pharmacy_id poe_id poe_seq order_provider_id starttime stoptime "
    "drug_type drug formulary_drug_cd gsn ndc prod_strength form_rx dose_val_rx dose_unit_rx form_val_disp "
    "form_unit_disp doses_per_24_hrs route",
}


def write_tables(folder: Path, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Path]:
    """Write MIMIC-IV tables as `<folder>/<table>.csv.gz` with the columns of release 3.1.

    rows: cells by column, for each table name (a key of COLUMNS). A column that a row leaves out stays empty; a table
    without rows has its header alone.
    """
    written = []
    for table, columns in COLUMNS.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, columns.split(), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows.get(table, ()))
        path = folder / f"{table}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=6, mtime=0))
        written.append(path)
    return written


_CHART_ITEMS = {
    "HR": 220045, "O2Sat": 220277, "SBP": 220179, "MAP": 220181, "DBP": 220180, "Resp": 220210, "Temp": 223761
}  # fmt: skip
# Share of the hours in which a vital sign is charted.
_CHARTED = {"HR": 0.95, "O2Sat": 0.92, "SBP": 0.9, "MAP": 0.9, "DBP": 0.9, "Resp": 0.93, "Temp": 0.35}


def mimic_iv(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write 80 ICU stays of 74 patients, about half of them with an onset of sepsis; one is too short to keep."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in COLUMNS}
    for number in range(80):
        again = number >= 74
        subject = 10_000_000 + 37 * (number - 74 if again else number)
        keys = {"subject_id": subject, "hadm_id": 20_000_000 + 41 * number, "stay_id": 30_000_000 + 43 * number}
        start = datetime.datetime(2150, 1, 1, 7, 20) + datetime.timedelta(days=30 * number + (4000 if again else 0))
        hours = 6 if number == 5 else int(rng.integers(30, 80))
        septic = hours > 20 and (number % 2 == 0)
        onset = int(rng.integers(14, max(hours - 8, 16))) if septic else None

        def at(hour: float, start: datetime.datetime = start) -> str:
            return f"{start + datetime.timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}"

        if not again:
            rows["hosp/patients"].append(
                {"subject_id": subject, "gender": "FM"[number % 2], "anchor_age": int(rng.integers(19, 91)),
                 "anchor_year": start.year, "anchor_year_group": "2011 - 2013"}
            )  # fmt: skip
        unit = "Medical Intensive Care Unit (MICU)"
        rows["icu/icustays"].append(
            {**keys, "first_careunit": unit, "last_careunit": unit, "intime": at(0), "outtime": at(hours - 0.3),
             "los": round((hours - 0.3) / 24, 5)}
        )  # fmt: skip
        _chart(rows, keys, at, vital_signs(hours, onset, rng), rng)
        _laboratory(rows, keys, at, hours, onset, rng)
        if number % 3 == 0:
            _ventilation(rows, keys, at, hours, onset, hamilton=number % 2 == 0)
        if number % 5 == 0:
            _irrigation(rows, keys, at, hours)
        _infection(rows, keys, at, hours, onset, rng)
    return write_tables(folder, rows)


def _chart(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    values: NDArray[Any],
    rng: np.random.Generator,
) -> None:
    """Add the vital signs, coma scale and urine of a stay; a few values are impossible, and times fall between hours."""
    for hour, hourly in enumerate(values):
        for name, value in zip(VITALS, hourly, strict=True):
            if rng.random() > _CHARTED[name]:
                continue
            if rng.random() < 0.002:
                value = 9999.0
            if name == "Temp" and value < 100:
                value = value * 9 / 5 + 32
            charted = {"itemid": _CHART_ITEMS[name], "value": f"{value:.1f}", "valuenum": f"{value:.1f}", "warning": 0}
            when = at(hour + rng.random() * 0.6)
            rows["icu/chartevents"].append({**keys, "charttime": when, "storetime": when, **charted})
        if hour % 4 == 0:
            for item, best in ((220739, 4), (223900, 5), (223901, 6)):
                rows["icu/chartevents"].append(
                    {**keys, "charttime": at(hour), "storetime": at(hour), "itemid": item, "value": "",
                     "valuenum": best, "warning": 0}
                )  # fmt: skip
            rows["icu/outputevents"].append(
                {**keys, "charttime": at(hour + 0.5), "storetime": at(hour + 0.6), "itemid": 226559,
                 "value": int(rng.integers(160, 420)), "valueuom": "mL"}
            )  # fmt: skip


def _measure(
    rows: dict[str, list[dict[str, Any]]],
    keys: Mapping[str, Any],
    at: Callable[[float], str],
    hour: float,
    specimen: int,
    values: Mapping[int, str],
) -> None:
    """Add laboratory values, by item, of one specimen; `specimen` numbers those of a stay. A text has no number."""
    for item, value in values.items():
        number = value if value.replace(".", "", 1).isdigit() else ""
        rows["hosp/labevents"].append(
            {"labevent_id": len(rows["hosp/labevents"]) + 1, "subject_id": keys["subject_id"], "hadm_id": keys["hadm_id"],
             "specimen_id": 10_000 * (keys["stay_id"] - 30_000_000) + specimen, "itemid": item, "charttime": at(hour),
             "storetime": at(hour + 1), "value": value, "valuenum": number}
        )  # fmt: skip


def _laboratory(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    hours: int,
    onset: int | None,
    rng: np.random.Generator,
) -> None:
    """Add laboratory values every eight hours, worse from two hours before an onset, and noradrenaline for some stays."""
    for hour in range(1, hours, 8):
        ill = onset is not None and hour >= onset - 2
        for item, value in (
            (51265, rng.uniform(60, 95) if ill else rng.uniform(160, 320)),
            (50885, rng.uniform(2.1, 4) if ill else rng.uniform(0.3, 1.1)),
            (50912, rng.uniform(1.3, 1.9) if ill else rng.uniform(0.6, 1.1)),
        ):
            patient = keys | ({} if rng.random() < 0.9 else {"hadm_id": ""})
            _measure(rows, patient, at, hour, 10 * hour, {item: f"{value:.1f}"})
    if onset is not None and rng.random() < 0.5:
        rows["icu/inputevents"].append(
            {**keys, "starttime": at(onset + 1), "endtime": at(onset + 6), "storetime": at(onset + 1), "itemid": 221906,
             "amount": 4, "amountuom": "mg", "rate": 0.08, "rateuom": "mcg/kg/min",
             "orderid": len(rows["icu/inputevents"]), "statusdescription": "FinishedRunning"}
        )  # fmt: skip


def _ventilation(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    hours: int,
    onset: int | None,
    hamilton: bool,
) -> None:
    """Add a ventilator in the first half of a stay, then its standby and a cannula, and blood gases throughout.

    An arterial gas falls to a ratio below 300 from two hours before an onset. A venous gas would score, if it counted. The share
    of oxygen is charted, and measured with every other gas.
    """
    half = hours // 2
    for hour in range(1, hours, 4):
        charted = {223835: "50", (229314 if hamilton else 223849): "APV (cmv)" if hamilton else "CMV/ASSIST"}
        if hour >= half:
            charted = {223835: "0.4", 223849: "Standby", 226732: "Nasal cannula"}
        for item, value in charted.items():
            rows["icu/chartevents"].append(
                {**keys, "charttime": at(hour), "storetime": at(hour), "itemid": item, "value": value,
                 "valuenum": value if item == 223835 else "", "warning": 0}
            )  # fmt: skip
    for hour in range(2, hours, 8):
        ratio, percent = (250 if onset is not None and hour >= onset - 2 else 450), 50 if hour < half else 40
        arterial = {52033: "ART.", 50821: f"{ratio * percent / 100:.0f}"}
        _measure(rows, keys, at, hour, 10 * hour + 1, arterial | ({50816: f"{percent}"} if hour % 16 == 2 else {}))
        _measure(rows, keys, at, hour + 0.5, 10 * hour + 2, {52033: "VEN.", 50821: "35"})


def _irrigation(
    rows: dict[str, list[dict[str, Any]]], keys: dict[str, int], at: Callable[[float], str], hours: int
) -> None:
    """Add irrigation of the bladder: more comes out than goes in."""
    for hour in range(3, hours, 12):
        for item, volume in ((227488, 1000), (227489, 1100)):
            rows["icu/outputevents"].append(
                {**keys, "charttime": at(hour), "storetime": at(hour), "itemid": item, "value": volume, "valueuom": "mL"}
            )  # fmt: skip


def _infection(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    hours: int,
    onset: int | None,
    rng: np.random.Generator,
) -> None:
    """Add cultures and antibiotics around an onset; stays without one get at most one of the two, and all an eye ointment."""

    def culture(hour: float, timed: bool) -> None:
        rows["hosp/microbiologyevents"].append(
            {"microevent_id": len(rows["hosp/microbiologyevents"]) + 1, "subject_id": keys["subject_id"],
             "hadm_id": keys["hadm_id"], "micro_specimen_id": len(rows["hosp/microbiologyevents"]),
             "chartdate": at(hour)[:10] + " 00:00:00", "charttime": at(hour) if timed else "", "spec_itemid": 70012,
             "spec_type_desc": "BLOOD CULTURE", "test_seq": 1, "test_name": "Blood Culture, Routine"}
        )  # fmt: skip

    def drug(hour: float, name: str, route: str) -> None:
        rows["hosp/prescriptions"].append(
            {"subject_id": keys["subject_id"], "hadm_id": keys["hadm_id"],
             "pharmacy_id": len(rows["hosp/prescriptions"]), "starttime": at(hour), "stoptime": at(hour + 72),
             "drug_type": "MAIN", "drug": name, "route": route}
        )  # fmt: skip

    if onset is not None:
        culture(onset, timed=True)
        culture(onset + 5, timed=True)
        drug(onset + 2, "Vancomycin", "IV")
        drug(onset + 3, "Piperacillin-Tazobactam", "IV")
        drug(onset + 20, "Ciprofloxacin HCl", "PO/NG")
    elif rng.random() < 0.4:
        culture(hours / 2, timed=rng.random() < 0.5)
    elif rng.random() < 0.4:
        drug(hours / 2, "CefazoLIN", "IV")
    drug(2, "Erythromycin 0.5% Ophth Oint", "BOTH EYES")
    drug(1, "Acetaminophen", "PO/NG")
