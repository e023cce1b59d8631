"""The onset of sepsis: organ failure, by SOFA, close to a suspicion of infection."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from replication.datasets.mimic_iv.suspicion import find_suspicions
from replication.datasets.mimic_iv.tables import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class OnsetRule:
    """A definition of the onset of sepsis.

    before, after: hours around a suspicion within which SOFA counts. since: hours within which SOFA must have risen by two
    points; None for two points or more, a rise from a baseline of 0. intravenous_hours: see `find_suspicions`. words: for
    descriptions of the data.
    """

    before: int
    after: int
    since: int | None
    intravenous_hours: int | None
    words: str


RULES = {
    # Singer et al. (2016), with the windows of Seymour et al. (2016), as in mimic-code.
    "sepsis3": OnsetRule(48, 24, None, None, "Sepsis-3"),
    # Reyna et al. (2019).
    "challenge2019": OnsetRule(24, 12, 24, 72, "Sepsis-3 as in Challenge 2019"),
}
TIMES = {
    "suspicion": "suspicion",
    "sofa": "sofa",
    "earliest": "least(suspicion, sofa)",
}
"""The time of the onset, by value of the setting `onset_time`."""


def find_onsets(database: "DuckDBPyConnection", rule: str, time: str) -> None:
    """Create the table `onsets`: stay_id, onset (hour of the stay, negative before it); only stays with sepsis have a row.

    rule: a key of RULES. time: a key of TIMES. Where SOFA confirms several suspicions, the earliest onset counts.
    """
    chosen = RULES[rule]
    find_suspicions(database, chosen.intravenous_hours)
    failing = "SELECT stay_id, hour FROM sofa WHERE sofa >= 2"
    if chosen.since is not None:
        failing = f"""SELECT stay_id, hour FROM sofa
            QUALIFY sofa >= 2 + min(sofa) OVER (PARTITION BY stay_id ORDER BY hour ROWS {chosen.since} PRECEDING)"""
    run(
        database,
        f"""
        CREATE TABLE onsets AS
        SELECT stay_id, min({TIMES[time]}) AS onset FROM (
            SELECT s.stay_id, s.hours, u.suspicion, min(f.hour) AS sofa
            FROM stays s
            JOIN (
                SELECT t.stay_id, CAST(floor(epoch(p.time - t.intime) / 3600) AS INTEGER) AS suspicion
                FROM suspicions p JOIN stays t USING (subject_id)
            ) u USING (stay_id)
            JOIN ({failing}) f ON f.stay_id = s.stay_id
                AND f.hour BETWEEN u.suspicion - {chosen.before} AND u.suspicion + {chosen.after}
            GROUP BY ALL
        ) WHERE {TIMES[time]} < hours GROUP BY stay_id
        """,
        "cultures, antibiotics and SOFA",
    )
