"""MIMIC-IV: hourly vital signs and Sepsis-3 labels of ICU stays, read by DuckDB from the csv.gz tables.

The code reads releases 2.x and 3.x and the demo alike, by the columns in `tables.TABLES`. `sofa` and `onset` hold the
definition of sepsis, of which the setting `onset` chooses the rule.
"""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection

from clailearn.errors import InputError
from replication.datasets.mimic_iv import onset, sofa, tables
from replication.datasets.mimic_iv.tables import VITALS, count, executing
from replication.datasets.recordings import Rows, cohort_text, write
from replication.datasets.sources import Raw

logger = logging.getLogger(__name__)

FILES = tuple(f"**/{table}.csv{ending}" for table in tables.TABLES for ending in (".gz", ""))
EXPECTS = "the folder of MIMIC-IV (2.x, 3.x or the demo), itself or one above it, with hosp/ and icu/"


def label(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Create the tables stays, those of their events, sofa and onsets; return the exclusions of stays by each rule."""
    exclusions = onset.select_stays(database, settings)
    sofa.read_events(database)
    onset.read_treatment(database)
    sofa.find_ventilation(database)
    sofa.score_sofa(database)
    onset.find_onsets(database, settings["onset"])
    return exclusions


def average_vitals(database: DuckDBPyConnection, ranges: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Create the table `vitals`: stay_id, hour, variable, value, the mean of an hour; return how many values are out of range."""
    named = ", ".join(f"({item}, '{name}')" for name in ranges for item in VITALS[name])
    limits = ", ".join(f"('{name}', {low}, {high})" for name, (low, high) in ranges.items())
    with executing("the vital signs in icu/chartevents"):
        database.execute(f"""
        CREATE TABLE readings AS
        SELECT stay_id, hour, variable,
            CASE WHEN c.item = {tables.FAHRENHEIT} THEN (c.value - 32) / 1.8 ELSE c.value END AS reading
        FROM chart c JOIN (VALUES {named}) AS names(item, variable) ON c.item = names.item
        WHERE c.value IS NOT NULL;

        CREATE TABLE vitals AS
        SELECT stay_id, hour, variable, avg(reading) AS value
        FROM readings JOIN (VALUES {limits}) AS limits(variable, low, high) USING (variable)
        WHERE reading BETWEEN low AND high GROUP BY ALL
    """)
    return [
        {
            "reason": f"values of {name} outside {low:g} to {high:g}",
            "count": count(
                database,
                f"SELECT count(*) FROM readings WHERE variable = '{name}' AND NOT reading BETWEEN {low} AND {high}",
            ),
        }
        for name, (low, high) in ranges.items()
    ]


def hourly_rows(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> Rows:
    """Return every hour of every stay in `stays`, with its label."""
    names = list(settings["variables"])
    columns = ", ".join(f"max(v.value) FILTER (v.variable = '{name}') AS \"{name}\"" for name in names)
    sql = f"""
        SELECT s.subject_id, g.stay_id, g.hour,
            coalesce(g.hour >= o.onset - {settings["label_hours_before"]}, false) AS y, {columns}
        FROM grid g JOIN stays s USING (stay_id) LEFT JOIN onsets o USING (stay_id)
            LEFT JOIN vitals v ON v.stay_id = g.stay_id AND v.hour = g.hour
        WHERE g.hour >= 0 GROUP BY ALL ORDER BY g.stay_id, g.hour
    """
    with executing("the hours of the stays"):
        table = database.execute(sql).fetchnumpy()
    x = np.stack([np.ma.filled(np.ma.asarray(table[name], dtype=np.float32), np.nan) for name in names], axis=1)
    return Rows(
        x=x,
        y=np.asarray(table["y"]).astype(np.int64),
        recordings=np.asarray(table["stay_id"], dtype=np.int64),
        patients=np.asarray(table["subject_id"], dtype=np.int64),
        hours=np.asarray(table["hour"]).astype(np.float32),
    )


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Select the stays, average the vital signs by the hour, find the onsets and write the folds."""
    if unknown := [name for name in settings["variables"] if name not in VITALS]:
        raise InputError(f"datasets.{raw.dataset}.variables: {', '.join(unknown)} is none of {', '.join(VITALS)}")
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=f".{out_dir.name}-duckdb-", dir=out_dir.parent) as scratch,
        tables.connect(raw.path, Path(scratch), settings["memory_gb"]) as database,
    ):
        tables.check_patients(database, raw)
        exclusions = label(database, settings)
        if not count(database, "SELECT count(*) FROM stays"):
            flow = cohort_text(onset.flow_of(exclusions), settings)
            raise InputError(f"{raw.path}: found no stay that the settings admit, expected some. {flow}")
        covered = sofa.coverage(database)
        lacking = [name for name, stays in covered.items() if not stays]
        for name in lacking:
            logger.warning("%s: no stay has %s: the definition treats it as normal, or never met", raw.path, name)
        outside = average_vitals(database, settings["variables"])
        if lacking and not count(database, "SELECT count(*) FROM onsets"):
            raise InputError(f"{raw.path}: found no onset of sepsis; the tables have no {', no '.join(lacking)}")
        exclusions += onset.select_cohort(database, settings) + outside
        rows = hourly_rows(database, settings)
    rule = (
        f"1 from {settings['label_hours_before']} hours before the onset of sepsis ({onset.RULES[settings['onset']].words}, "
        "time: earliest) to the end of the stay"
    )
    extra = {
        "flow": onset.flow_of(exclusions),
        "coverage": covered,
        "lacking": lacking,
        "label_hours_before": settings["label_hours_before"],
    }
    write(raw, out_dir, settings, seed, rows, exclusions, rule, extra)
