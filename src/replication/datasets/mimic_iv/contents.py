"""What the tables have: whose patients, and how many stays have each ingredient of labels and variables."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clai.errors import InputError
from replication.datasets.fetch import Raw
from replication.datasets.mimic_iv.items import (
    BILIRUBIN,
    CHARTED_FIO2,
    CREATININE,
    EYE,
    FIO2,
    MOTOR,
    PAO2,
    PLATELETS,
    VERBAL,
    VITALS,
)
from replication.datasets.mimic_iv.tables import count, executing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEMO = "mimic-iv-demo"
DEMO_PATIENTS = "sha256:d8fbf1dba4534445e7c41921ec97fc2d9c8bb78a664700ede29884b0facf533e"
"""Checksum of the sorted subject_id of the demo's 100 patients, one a line."""


def patients_checksum(database: "DuckDBPyConnection") -> str:
    """Return `sha256:hex` of the sorted subject_id in hosp/patients, one a line."""
    with executing("hosp/patients"):
        rows = database.execute("SELECT CAST(subject_id AS BIGINT) AS id FROM patients ORDER BY id").fetchall()
    return "sha256:" + hashlib.sha256("".join(f"{row[0]}\n" for row in rows).encode()).hexdigest()


def check_patients(database: "DuckDBPyConnection", raw: Raw) -> None:
    """Raise InputError when the demo's patients pass for MIMIC-IV, or others, whose data are not open, for the demo's."""
    demo = patients_checksum(database) == DEMO_PATIENTS
    if demo and raw.access.startswith("credentialed"):
        raise InputError(
            f"datasets.{raw.dataset}.path: found the 100 patients of the open demo in {raw.path}, expected MIMIC-IV. Set "
            f"datasets.{DEMO}.path to this folder and run {DEMO}, or correct datasets.{raw.dataset}.path."
        )
    if not demo and raw.access.startswith("open"):
        raise InputError(
            f"datasets.{raw.dataset}.path: found other patients than the 100 of the open demo in {raw.path}, expected "
            "these alone, because the rows of others may not be passed on. Set datasets.mimic-iv.path to this folder and run "
            f"mimic-iv, or correct datasets.{raw.dataset}.path."
        )


def coverage(database: "DuckDBPyConnection") -> dict[str, int]:
    """Count the stays that have each ingredient of labels and variables at least once.

    Call after `read_events`, `find_ventilation` and `read_treatment`.
    """
    chart: dict[str, Sequence[int]] = {f"vital sign {name}": items for name, items in VITALS.items()}
    chart |= {"coma scale, eyes": (EYE,), "coma scale, speech": (VERBAL,), "coma scale, movement": (MOTOR,)}
    labs = {"PaO2": PAO2, "platelets": PLATELETS, "bilirubin": BILIRUBIN, "creatinine": CREATININE}
    sources = {
        name: f"(SELECT stay_id FROM chart WHERE item IN ({', '.join(map(str, items))}))"
        for name, items in chart.items()
    }
    sources |= {name: f"(SELECT stay_id FROM labs WHERE item = {item})" for name, item in labs.items()}
    sources |= {
        "FiO2": f"(SELECT stay_id FROM labs WHERE item = {FIO2} UNION ALL "
        f"SELECT stay_id FROM chart WHERE item = {CHARTED_FIO2})",
        "mechanical ventilation": "ventilation",
        "vasopressors": "pressors",
        "urine": "urine",
        "cultures": "(SELECT stay_id FROM stays WHERE subject_id IN (SELECT subject_id FROM cultures))",
        "antibiotics": "(SELECT stay_id FROM stays WHERE subject_id IN (SELECT subject_id FROM antibiotics))",
    }
    return {name: count(database, f"SELECT count(DISTINCT stay_id) FROM {rows}") for name, rows in sources.items()}


def flow_of(exclusions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the flow of the cohort (CONSORT): the number of all stays, then the number left after each rule."""
    steps = [item for item in exclusions if "left" in item]
    first = {"step": "ICU stays in the tables", "n": steps[0]["count"] + steps[0]["left"], "unit": "stays"}
    return [first] + [
        {"step": f"after leaving out {item['reason']}", "n": item["left"], "unit": "stays"} for item in steps
    ]
