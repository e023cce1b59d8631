"""What was charted, measured and given in each stay: the tables that labels and variables are made of."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replication.datasets.mimic_iv.items import (
    BILIRUBIN,
    CHARTED_FIO2,
    CREATININE,
    DOBUTAMINE,
    DOPAMINE,
    EPINEPHRINE,
    EYE,
    FAHRENHEIT,
    FIO2,
    HAMILTON_MODE,
    IRRIGANT_AND_URINE_OUT,
    IRRIGANT_IN,
    MOTOR,
    NOREPINEPHRINE,
    OXYGEN_DEVICE,
    PAO2,
    PLATELETS,
    SPECIMEN,
    URINE,
    VENTILATOR_MODE,
    VERBAL,
    VITALS,
)
from replication.datasets.mimic_iv.tables import count, run, texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

logger = logging.getLogger(__name__)

# Charted items whose text is read; the numbers of the others suffice.
_WITH_TEXT = (VERBAL, VENTILATOR_MODE, HAMILTON_MODE, OXYGEN_DEVICE)


def read_events(database: "DuckDBPyConnection") -> None:
    """Create the tables chart, labs, pressors and urine with the events of `stays`.

    `hour` is the hour of the stay, negative before it. labs begins 24 h before the stay, and also has what was measured
    outside the ICU.
    """
    vitals = [item for vital in VITALS.values() for item in vital]
    logger.info("reading icu/chartevents")
    run(
        database,
        f"""
        CREATE TABLE chart AS
        SELECT s.stay_id, CAST(c.charttime AS TIMESTAMP) AS time,
            CAST(floor(epoch(CAST(c.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            CAST(c.itemid AS INTEGER) AS item, number(c.valuenum) AS value,
            CASE WHEN c.itemid IN ({texts(_WITH_TEXT)}) THEN trim(c.value) END AS text
        FROM chartevents c JOIN stays s ON CAST(c.stay_id AS BIGINT) = s.stay_id
        WHERE c.itemid IN ({texts([*vitals, EYE, MOTOR, CHARTED_FIO2, *_WITH_TEXT])})
        """,
        "icu/chartevents.csv.gz",
    )
    logger.info("reading hosp/labevents")
    run(
        database,
        f"""
        CREATE TABLE labs AS
        SELECT s.stay_id, CAST(l.specimen_id AS BIGINT) AS specimen, CAST(l.charttime AS TIMESTAMP) AS time,
            CAST(floor(epoch(CAST(l.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            CAST(l.itemid AS INTEGER) AS item, number(l.valuenum) AS value,
            CASE WHEN l.itemid = '{SPECIMEN}' THEN l.value END AS text
        FROM (SELECT * FROM labevents
              WHERE itemid IN ({texts([PAO2, FIO2, PLATELETS, BILIRUBIN, CREATININE])}) AND valuenum IS NOT NULL
                  OR itemid = '{SPECIMEN}') l
        JOIN stays s ON CAST(l.subject_id AS BIGINT) = s.subject_id
            AND CAST(l.charttime AS TIMESTAMP) BETWEEN s.intime - INTERVAL 24 HOUR AND s.outtime
        """,
        "hosp/labevents.csv.gz",
    )
    run(
        database,
        f"""
        CREATE TABLE pressors AS
        SELECT s.stay_id, CAST(i.itemid AS INTEGER) AS item,
            CAST(floor(epoch(CAST(i.starttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS first_hour,
            CAST(floor(epoch(CAST(i.endtime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS last_hour,
            number(i.rate) * CASE i.rateuom WHEN 'mg/kg/min' THEN 1000
                WHEN 'mcg/min' THEN 1 / nullif(number(i.patientweight), 0) ELSE 1 END AS rate
        FROM inputevents i JOIN stays s ON CAST(i.stay_id AS BIGINT) = s.stay_id
        WHERE i.itemid IN ({texts([NOREPINEPHRINE, EPINEPHRINE, DOPAMINE, DOBUTAMINE])})
            AND number(i.rate) > 0 AND coalesce(i.statusdescription, '') <> 'Rewritten'
        """,
        "icu/inputevents.csv.gz",
    )
    run(
        database,
        f"""
        CREATE TABLE urine AS
        SELECT s.stay_id, CAST(o.charttime AS TIMESTAMP) AS time,
            CAST(floor(epoch(CAST(o.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            sum(CASE WHEN o.itemid = '{IRRIGANT_IN}' THEN -abs(number(o.value)) ELSE number(o.value) END) AS value
        FROM outputevents o JOIN stays s ON CAST(o.stay_id AS BIGINT) = s.stay_id
        WHERE o.itemid IN ({texts([*URINE, IRRIGANT_IN, IRRIGANT_AND_URINE_OUT])}) GROUP BY ALL
        """,
        "icu/outputevents.csv.gz",
    )


def average_vitals(database: "DuckDBPyConnection", ranges: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Create the table `vitals`: stay_id, hour, variable, value, the mean of the measurements of an hour.

    ranges: lowest and highest value by variable; measurements outside do not count. Returns their number by variable.
    """
    named = ", ".join(f"({item}, '{name}')" for name in ranges for item in VITALS[name])
    limits = ", ".join(f"('{name}', {low}, {high})" for name, (low, high) in ranges.items())
    run(
        database,
        f"""
        CREATE TABLE readings AS
        SELECT stay_id, hour, variable,
            CASE WHEN c.item = {FAHRENHEIT} THEN (c.value - 32) / 1.8 ELSE c.value END AS reading
        FROM chart c JOIN (VALUES {named}) AS names(item, variable) ON c.item = names.item
        WHERE c.value IS NOT NULL
    """,
        "the vital signs in icu/chartevents",
    )
    run(
        database,
        f"""
        CREATE TABLE vitals AS
        SELECT stay_id, hour, variable, avg(reading) AS value
        FROM readings JOIN (VALUES {limits}) AS limits(variable, low, high) USING (variable)
        WHERE reading BETWEEN low AND high GROUP BY ALL
    """,
        "the vital signs in icu/chartevents",
    )
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
