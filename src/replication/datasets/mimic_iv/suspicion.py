"""Suspicion of infection: an antibiotic and a culture close to each other (Seymour et al. 2016)."""

from typing import TYPE_CHECKING

from replication.datasets.mimic_iv.items import ANTIBIOTICS, INTRAVENOUS_ROUTES, NOT_SYSTEMIC, SYSTEMIC_ROUTES
from replication.datasets.mimic_iv.tables import run, texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LONGEST_PAUSE = 24
"""Hours between two orders of antibiotics that continue one another: doses may lie a day apart."""


def read_treatment(database: "DuckDBPyConnection") -> None:
    """Create the tables antibiotics (subject_id, time, stop, intravenous) and cultures (subject_id, time).

    Antibiotics are orders of systemic ones; `stop` is not before `time`. A culture with a date alone counts from midnight.
    """
    run(
        database,
        f"""
        CREATE TABLE antibiotics AS
        SELECT DISTINCT CAST(p.subject_id AS BIGINT) AS subject_id, CAST(p.starttime AS TIMESTAMP) AS time,
            greatest(CAST(p.starttime AS TIMESTAMP), CAST(p.stoptime AS TIMESTAMP)) AS stop,
            upper(p.route) IN ({texts(INTRAVENOUS_ROUTES)}) AS intravenous
        FROM prescriptions p
        WHERE p.starttime IS NOT NULL AND upper(p.route) IN ({texts(SYSTEMIC_ROUTES)})
            AND regexp_matches(lower(p.drug), '{ANTIBIOTICS}') AND NOT regexp_matches(lower(p.drug), '{NOT_SYSTEMIC}')
        """,
        "hosp/prescriptions.csv.gz",
    )
    run(
        database,
        """
        CREATE TABLE cultures AS
        SELECT DISTINCT CAST(subject_id AS BIGINT) AS subject_id,
            coalesce(CAST(charttime AS TIMESTAMP), CAST(chartdate AS TIMESTAMP)) AS time
        FROM microbiologyevents
        """,
        "hosp/microbiologyevents.csv.gz",
    )


def find_suspicions(database: "DuckDBPyConnection", intravenous_hours: int | None) -> None:
    """Create the table `suspicions`: subject_id, time.

    An antibiotic within 72 h after a culture is a suspicion at the time of the culture; a culture within 24 h after an
    antibiotic is one at the time of the antibiotic.

    intravenous_hours: an antibiotic counts only if intravenous ones continue for so long from its start, as ordered; None for
    all systemic antibiotics.
    """
    counted = "antibiotics"
    if intravenous_hours is not None:
        counted = f"""(
            SELECT subject_id, time FROM (
                SELECT subject_id, time, max(stop) OVER (PARTITION BY subject_id, course) AS until FROM (
                    SELECT *, sum(first) OVER (PARTITION BY subject_id ORDER BY time, stop ROWS UNBOUNDED PRECEDING) AS course
                    FROM (
                        SELECT *, CASE WHEN time <= INTERVAL {LONGEST_PAUSE} HOUR + max(stop) OVER (PARTITION BY subject_id
                            ORDER BY time, stop ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS first
                        FROM antibiotics WHERE intravenous
                    )
                )
            ) WHERE until >= time + INTERVAL {intravenous_hours} HOUR
        )"""
    run(
        database,
        f"""
        CREATE TABLE suspicions AS
        WITH counted AS (SELECT * FROM {counted})
        SELECT DISTINCT subject_id, time FROM (
            SELECT c.subject_id, c.time FROM cultures c JOIN counted a ON a.subject_id = c.subject_id
                AND a.time BETWEEN c.time AND c.time + INTERVAL 72 HOUR
            UNION ALL
            SELECT a.subject_id, a.time FROM counted a JOIN cultures c ON a.subject_id = c.subject_id
                AND c.time > a.time AND c.time <= a.time + INTERVAL 24 HOUR
        )
        """,
        "cultures and antibiotics",
    )
