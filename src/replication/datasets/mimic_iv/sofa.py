"""SOFA, the sepsis-related organ failure assessment, of every hour of a stay.

The thresholds are those of Vincent et al. (1996). Inputs and windows follow `sofa` in mimic-code
(https://github.com/MIT-LCP/mimic-code), the reference for MIMIC-IV; docs/data.md says where they differ.
"""

from typing import TYPE_CHECKING

from replication.datasets.mimic_iv.items import (
    ARTERIAL,
    BILIRUBIN,
    CHARTED_FIO2,
    CREATININE,
    DOPAMINE,
    EPINEPHRINE,
    EYE,
    FIO2,
    HEART_RATE,
    INTUBATED,
    MOTOR,
    NOREPINEPHRINE,
    PAO2,
    PLATELETS,
    SPECIMEN,
    VERBAL,
    VITALS,
)
from replication.datasets.mimic_iv.tables import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COMPONENTS = ("respiration", "coagulation", "liver", "circulation", "consciousness", "kidney")


def score_sofa(database: "DuckDBPyConnection") -> None:
    """Create the table `sofa`: stay_id, hour (from 0), each of COMPONENTS (0..4) and their sum sofa (0..24).

    A component is the worst of the last 24 h, and 0 without a value. Also creates `grid`: stay_id, hour from -24 to the last of
    the stay. Needs the tables of `read_events` and `find_ventilation`.
    """
    run(
        database,
        "CREATE TABLE grid AS "
        "SELECT stay_id, CAST(unnest(generate_series(-24, hours - 1)) AS INTEGER) AS hour FROM stays",
        "the stays",
    )
    _oxygenation(database)
    _coma_scale(database)
    _urine_a_day(database)
    run(
        database,
        f"""
        CREATE TABLE points AS
        SELECT stay_id, hour, 'respiration' AS part, CASE WHEN ratio < 100 AND ventilated THEN 4
            WHEN ratio < 200 AND ventilated THEN 3 WHEN ratio < 300 THEN 2 WHEN ratio < 400 THEN 1 ELSE 0 END AS score
            FROM oxygenation
        UNION ALL
        SELECT stay_id, hour, 'coagulation', CASE WHEN value < 20 THEN 4 WHEN value < 50 THEN 3 WHEN value < 100 THEN 2
            WHEN value < 150 THEN 1 ELSE 0 END FROM labs WHERE item = {PLATELETS}
        UNION ALL
        SELECT stay_id, hour, 'liver', CASE WHEN value >= 12 THEN 4 WHEN value >= 6 THEN 3 WHEN value >= 2 THEN 2
            WHEN value >= 1.2 THEN 1 ELSE 0 END FROM labs WHERE item = {BILIRUBIN}
        UNION ALL
        SELECT stay_id, hour, 'kidney', CASE WHEN value >= 5 THEN 4 WHEN value >= 3.5 THEN 3 WHEN value >= 2 THEN 2
            WHEN value >= 1.2 THEN 1 ELSE 0 END FROM labs WHERE item = {CREATININE}
        UNION ALL
        SELECT stay_id, hour, 'kidney', CASE WHEN volume < 200 THEN 4 WHEN volume < 500 THEN 3 ELSE 0 END FROM urine_a_day
        UNION ALL
        SELECT stay_id, hour, 'consciousness', CASE WHEN total < 6 THEN 4 WHEN total < 10 THEN 3 WHEN total < 13 THEN 2
            WHEN total < 15 THEN 1 ELSE 0 END FROM coma
        UNION ALL
        SELECT stay_id, hour, 'circulation', 1 FROM chart
            WHERE item IN ({", ".join(map(str, VITALS["MAP"]))}) AND value > 0 AND value < 70
        UNION ALL
        SELECT stay_id, unnest(generate_series(greatest(first_hour, -24), last_hour)), 'circulation',
            CASE WHEN item = {DOPAMINE} AND rate > 15 THEN 4 WHEN item = {DOPAMINE} AND rate > 5 THEN 3
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) AND rate > 0.1 THEN 4
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) THEN 3 ELSE 2 END FROM pressors;

        CREATE TABLE hourly AS
        SELECT g.stay_id, g.hour, {", ".join(f"max(score) FILTER (part = '{name}') AS {name}" for name in COMPONENTS)}
        FROM grid g LEFT JOIN points p USING (stay_id, hour) GROUP BY ALL;

        CREATE TABLE sofa AS
        SELECT *, {" + ".join(COMPONENTS)} AS sofa FROM (
            SELECT stay_id, hour, {", ".join(f"coalesce(max({name}) OVER w, 0) AS {name}" for name in COMPONENTS)}
            FROM hourly WINDOW w AS (PARTITION BY stay_id ORDER BY hour ROWS 23 PRECEDING)
        ) WHERE hour >= 0;
        """,
        "what SOFA is scored from",
    )


def _oxygenation(database: "DuckDBPyConnection") -> None:
    """Create `oxygenation`: stay_id, hour, ratio (PaO2 / FiO2, mmHg) and ventilated of each arterial blood gas.

    FiO2 is that of the same specimen, or else the latest charted one of at most four hours before; a fraction is turned into
    per cent.
    """
    per_cent = "CASE WHEN value > 0.2 AND value <= 1 THEN 100 * value WHEN value BETWEEN 20 AND 100 THEN value END"
    run(
        database,
        f"""
        CREATE TABLE oxygenation AS
        WITH gases AS (
            SELECT stay_id, specimen, max(time) AS time, max(hour) AS hour, max(value) FILTER (item = {PAO2}) AS pao2,
                max({per_cent}) FILTER (item = {FIO2}) AS fio2
            FROM labs WHERE item IN ({PAO2}, {FIO2}, {SPECIMEN}) GROUP BY stay_id, specimen
            HAVING max(text) = '{ARTERIAL}' AND max(value) FILTER (item = {PAO2}) IS NOT NULL
        ), charted AS (
            SELECT stay_id, time, max({per_cent}) AS fio2 FROM chart WHERE item = {CHARTED_FIO2}
            GROUP BY ALL HAVING max({per_cent}) IS NOT NULL
        ), breathed AS (
            SELECT g.stay_id, g.time, g.hour, g.pao2,
                coalesce(g.fio2, CASE WHEN g.time <= c.time + INTERVAL 4 HOUR THEN c.fio2 END) AS fio2
            FROM gases g ASOF LEFT JOIN charted c ON g.stay_id = c.stay_id AND g.time >= c.time
        )
        SELECT b.stay_id, b.hour, 100 * b.pao2 / b.fio2 AS ratio, coalesce(b.time <= v.until, false) AS ventilated
        FROM breathed b ASOF LEFT JOIN ventilation v ON b.stay_id = v.stay_id AND b.time >= v.begin
        WHERE b.fio2 IS NOT NULL
        """,
        "the blood gases in hosp/labevents",
    )


def _coma_scale(database: "DuckDBPyConnection") -> None:
    """Create `coma`: stay_id, hour, total (3..15) of the Glasgow coma scale at each time that a part of it was charted.

    A part that is missing is that of the time before, if less than six hours ago, or else counts as normal. Under a tube the
    scale counts as normal.
    """
    run(
        database,
        f"""
        CREATE TABLE coma AS
        WITH charted AS (
            SELECT stay_id, time, hour, max(value) FILTER (item = {EYE}) AS eye, max(value) FILTER (item = {MOTOR}) AS motor,
                max(CASE WHEN text = '{INTUBATED}' THEN 0 ELSE value END) FILTER (item = {VERBAL}) AS verbal
            FROM chart WHERE item IN ({EYE}, {VERBAL}, {MOTOR}) GROUP BY ALL
        ), neighbours AS (
            SELECT *, lag(time) OVER w > time - INTERVAL 6 HOUR AS recent, lag(eye) OVER w AS eye_before,
                lag(verbal) OVER w AS verbal_before, lag(motor) OVER w AS motor_before
            FROM charted WINDOW w AS (PARTITION BY stay_id ORDER BY time)
        )
        SELECT stay_id, hour, CASE WHEN verbal = 0 OR (verbal IS NULL AND recent AND verbal_before = 0) THEN 15
            WHEN recent AND coalesce(verbal_before, 1) > 0 THEN coalesce(eye, eye_before, 4)
                + coalesce(verbal, verbal_before, 5) + coalesce(motor, motor_before, 6)
            ELSE coalesce(eye, 4) + coalesce(verbal, 5) + coalesce(motor, 6) END AS total
        FROM neighbours
        """,
        "the coma scale in icu/chartevents",
    )


def _urine_a_day(database: "DuckDBPyConnection") -> None:
    """Create `urine_a_day`: stay_id, hour, volume (mL in 24 h) at each hour in which urine was charted.

    An entry is the urine since the one before; the first, since the first heart rate. The volume is that of the entries of the
    last 23 hours, turned into that of 24 hours by the time that they stand for, which must be 22 to 30 hours.
    """
    run(
        database,
        f"""
        CREATE TABLE urine_a_day AS
        WITH begins AS (
            SELECT stay_id, min(time) AS begin FROM chart WHERE item = {HEART_RATE} GROUP BY ALL
        ), entries AS (
            SELECT stay_id, hour, time, value,
                date_diff('minute', coalesce(lag(time) OVER (PARTITION BY stay_id ORDER BY time), begin), time) AS minutes
            FROM urine JOIN begins USING (stay_id)
        ), days AS (
            SELECT stay_id, hour, sum(value) OVER w AS volume, sum(minutes) OVER w / 60 AS hours
            FROM entries WINDOW w AS (PARTITION BY stay_id ORDER BY time RANGE BETWEEN INTERVAL 23 HOUR PRECEDING AND CURRENT ROW)
        )
        SELECT stay_id, hour, max(volume * 24 / hours) AS volume FROM days WHERE hours BETWEEN 22 AND 30 GROUP BY ALL
        """,
        "the urine in icu/outputevents",
    )
