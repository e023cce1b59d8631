"""The cohort: which stays are kept, and how many each rule leaves out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replication.datasets.mimic_iv.tables import count, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def leave_out(database: "DuckDBPyConnection", rules: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Delete stays by rules (reason, SQL condition) in order; return reason, count and number left for each."""
    exclusions = []
    for reason, rule in rules:
        dropped = count(database, f"SELECT count(*) FROM stays WHERE {rule}")
        run(database, f"DELETE FROM stays WHERE {rule}", "the stays")
        exclusions.append({"reason": reason, "count": dropped, "left": count(database, "SELECT count(*) FROM stays")})
    return exclusions


def select_stays(database: "DuckDBPyConnection", settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Create the table `stays`: subject_id, stay_id, intime, outtime, hours (of the stay, cut at `maximum_hours`).

    Returns the exclusions by each rule, as `leave_out` does.
    """
    run(
        database,
        """
        CREATE TABLE stays AS
        SELECT CAST(i.subject_id AS BIGINT) AS subject_id, CAST(i.stay_id AS BIGINT) AS stay_id,
            CAST(i.intime AS TIMESTAMP) AS intime, CAST(i.outtime AS TIMESTAMP) AS outtime,
            CAST(p.anchor_age AS INTEGER) + year(CAST(i.intime AS TIMESTAMP)) - CAST(p.anchor_year AS INTEGER) AS age,
            CAST(ceil(epoch(CAST(i.outtime AS TIMESTAMP) - CAST(i.intime AS TIMESTAMP)) / 3600) AS INTEGER) AS hours,
            row_number() OVER (PARTITION BY i.subject_id ORDER BY CAST(i.intime AS TIMESTAMP)) AS number
        FROM icustays i JOIN patients p ON CAST(i.subject_id AS BIGINT) = CAST(p.subject_id AS BIGINT)
        """,
        "icu/icustays and hosp/patients",
    )
    total = count(database, "SELECT count(*) FROM icustays")
    known = count(database, "SELECT count(*) FROM stays")
    exclusions = [
        {"reason": "stays of patients whom hosp/patients does not have", "count": total - known, "left": known}
    ]
    rules = [
        (f"stays of patients younger than {settings['minimum_age']} years", f"age < {settings['minimum_age']}"),
        ("stays without an end", "hours IS NULL"),
    ]
    if settings["first_stay_only"]:
        rules.append(("later stays of the same patient", "number > 1"))
    rules.append((f"stays shorter than {settings['minimum_hours']} hours", f"hours < {settings['minimum_hours']}"))
    exclusions += leave_out(database, rules)
    longest = settings["maximum_hours"]
    beyond = count(database, f"SELECT coalesce(sum(greatest(hours - {longest}, 0)), 0) FROM stays")
    exclusions.append({"reason": f"hours after hour {longest} of a stay", "count": beyond})
    run(database, f"UPDATE stays SET hours = least(hours, {longest})", "the stays")
    return exclusions


def select_cohort(database: "DuckDBPyConnection", settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Delete stays by onset, cohort and lack of vital signs; return the exclusions as `leave_out` does."""
    earliest = settings["minimum_onset_hours"]
    rules = [
        (
            f"stays with an onset before hour {earliest}",
            f"stay_id IN (SELECT stay_id FROM onsets WHERE onset < {earliest})",
        ),
        ("stays without a vital sign", "stay_id NOT IN (SELECT stay_id FROM vitals WHERE hour >= 0)"),
    ]
    if settings["cohort"] == "sepsis_only":
        rules.append(("stays without an onset of sepsis", "stay_id NOT IN (SELECT stay_id FROM onsets)"))
    return leave_out(database, rules)
