"""The open MIMIC-IV demo, where it is at hand: SOFA and sepsis held against mimic-code, the reference for MIMIC-IV.

mimic-code's numbers here come from its DuckDB concepts at commit 8bcbd190, with hours counted from the admission to the ICU.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from replication.datasets import mimic_iv
from replication.datasets.files import matching
from replication.datasets.mimic_iv.sofa import COMPONENTS
from replication.datasets.mimic_iv.tables import TABLES, connect
from replication.datasets.prepared import load
from replication.datasets.sources import obtain, prepare
from support.repository import REAL, REPOSITORY, SOURCES

EVERY_STAY = {"minimum_age": 0, "minimum_hours": 0, "maximum_hours": 10**6, "first_stay_only": False}
TEXT = ("respiration", "consciousness")
SEPTIC = 62
"""Stays that mimic-code finds septic."""
LEAST_EQUAL = dict(zip(COMPONENTS, (0.995, 0.995, 0.995, 0.985, 0.999, 0.98), strict=True))
"""Share of all hours; docs/data.md says what differs and why."""
THEIRS = dict(zip(COMPONENTS, ("respiration", "coagulation", "liver", "cardiovascular", "cns", "renal"), strict=True))
CONCEPTS = [
    "demographics/icustay_times", "demographics/weight_durations", "measurement/urine_output",
    "measurement/urine_output_rate", "measurement/bg", "measurement/chemistry", "measurement/complete_blood_count",
    "measurement/enzyme", "measurement/gcs", "measurement/oxygen_delivery", "measurement/ventilator_setting",
    "measurement/vitalsign", "medication/antibiotic", "medication/dobutamine", "medication/dopamine",
    "medication/epinephrine", "medication/norepinephrine", "treatment/ventilation", "score/sofa",
    "sepsis/suspicion_of_infection", "sepsis/sepsis3",
]  # fmt: skip
# Columns whose type the values may not tell.
TYPES = {
    "labevents": {"value": "VARCHAR", "valuenum": "DOUBLE"},
    "chartevents": {"value": "VARCHAR", "valuenum": "DOUBLE", "storetime": "TIMESTAMP"},
    "outputevents": {"value": "DOUBLE"},
    "inputevents": {"rate": "DOUBLE", "amount": "DOUBLE"},
    "prescriptions": {"drug": "VARCHAR", "route": "VARCHAR"},
    "microbiologyevents": {"chartdate": "TIMESTAMP", "charttime": "TIMESTAMP"},
}


def build_reference(checkout: Path, tables: Path, path: Path) -> None:
    """Write a database at `path` with mimic-code's tables in the schema mimiciv_derived.

    Its hours are those of this project, counted from the admission to the ICU, so that scores of the same hours compare.
    """
    with duckdb.connect(str(path)) as database:
        database.execute("SET threads = 1")
        for table in TABLES:
            schema, name = table.split("/")
            types = "".join(f", types = {TYPES[name]}" for _ in range(name in TYPES))
            source = f"read_csv('{tables / table}.csv.gz', header = true, sample_size = -1{types})"
            database.execute(f"CREATE SCHEMA IF NOT EXISTS mimiciv_{schema}")
            database.execute(f"CREATE TABLE mimiciv_{schema}.{name} AS SELECT * FROM {source}")
        database.execute("""
            CREATE SCHEMA mimiciv_derived;
            CREATE TABLE mimiciv_derived.icustay_hourly AS
            SELECT stay_id, CAST(hr AS BIGINT) AS hr, intime + INTERVAL (hr + 1) HOUR AS endtime FROM (
                SELECT stay_id, intime,
                    unnest(generate_series(-24, CAST(ceil(epoch(outtime - intime) / 3600) AS INT) - 1)) AS hr
                FROM mimiciv_icu.icustays
            )
        """)
        for concept in CONCEPTS:
            database.execute((checkout / "mimic-iv" / "concepts_duckdb" / f"{concept}.sql").read_text())


@pytest.fixture(scope="module")
def folder() -> Path:
    path = os.environ.get("CLAI_MIMIC_DEMO")
    if path is None:
        pytest.skip("set CLAI_MIMIC_DEMO to the folder of the MIMIC-IV demo 2.2")
    return Path(path)


@pytest.fixture(scope="module")
def labelled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(matching(folder, mimic_iv.SOURCE.files), tmp_path_factory.mktemp("demo"), 2) as database:
        mimic_iv.label(database, EVERY_STAY | {"onset": "sepsis3"})
        yield database


def all_of(database: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return [row[0] for row in database.execute(sql).fetchall()]


def text_is_there(database: duckdb.DuckDBPyConnection) -> bool:
    """Whether the copy has the text of every charted device, as the official one has."""
    return not all_of(database, "SELECT count(*) FROM chart WHERE item = 226732 AND text IS NULL")[0]


def test_each_hour_scores_as_by_mimic_code_and_all_its_septic_stays_are_found(
    folder: Path, labelled: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    checkout = os.environ.get("CLAI_MIMIC_CODE")
    if checkout is None:
        pytest.skip("set CLAI_MIMIC_CODE to a checkout of https://github.com/MIT-LCP/mimic-code")
    build_reference(Path(checkout), folder, tmp_path / "mimic_code.duckdb")
    labelled.execute(f"ATTACH '{tmp_path / 'mimic_code.duckdb'}' AS reference (READ_ONLY)")
    # The text of charted entries is exact for these stays in any copy.
    exact = """stay_id IN (SELECT CAST(stay_id AS BIGINT) FROM chartevents
        WHERE value IS NOT NULL AND try_cast(value AS DOUBLE) IS NULL)"""
    found = {}
    for component, theirs in (THEIRS | {"SOFA": "sofa"}).items():
        ours = " + ".join(f"s.{name}" for name in (COMPONENTS if component == "SOFA" else [component]))
        equal = []
        for stays in ("true", exact):
            equal += labelled.execute(f"""
                SELECT avg(CAST({ours} = r.{theirs}_24hours AS INTEGER))
                FROM (SELECT * FROM sofa WHERE {stays}) s
                JOIN reference.mimiciv_derived.sofa r ON s.stay_id = r.stay_id AND s.hour = r.hr
            """).fetchall()[0]
        found[component] = [f"{100 * share:.2f}" for share in equal]
        assert equal[0] >= LEAST_EQUAL.get(component, 0), f"{component}: {equal}"
        assert equal[1] >= (LEAST_EQUAL[component] if component in TEXT else 0.97), f"{component}: {equal}"
    if not text_is_there(labelled):  # The page has what a copy without the text of 80 patients gives.
        page = (REPOSITORY / "docs" / "data.md").read_text()
        rows = re.findall(
            r"^\| ([\w, ]+) \| ([\d., ]+) \|", page.partition("### Held against mimic-code")[2], re.MULTILINE
        )
        pairs = [pair for names, shares in rows for pair in zip(names.split(", "), shares.split(", "), strict=True)]
        assert dict(pairs) == {name: equal[0] for name, equal in found.items()}
    septic = set(all_of(labelled, "SELECT stay_id FROM reference.mimiciv_derived.sepsis3 WHERE sepsis3"))
    assert len(septic) == SEPTIC
    assert septic <= set(all_of(labelled, "SELECT stay_id FROM onsets"))


def test_its_entry_prepares_it_as_it_stands(folder: Path, tmp_path: Path) -> None:
    settings = REAL["datasets"]["mimic-iv-demo"] | {"path": str(folder)}
    raw = obtain("mimic-iv-demo", settings, SOURCES, tmp_path, False)
    prepare(raw, tmp_path / "prepared", settings, 0)
    info = load(tmp_path / "prepared").info
    assert (info["licence"], info["access"]) == ("ODbL-1.0", "open")
    assert info["flow"][0]["n"] == 140
    assert info["lacking"] == []
    assert all(count > 0 for fold in info["splits"].values() for count in fold["counts"])
