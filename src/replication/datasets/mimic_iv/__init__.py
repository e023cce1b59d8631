"""MIMIC-IV: hourly vital signs and Sepsis-3 labels of ICU stays, read by DuckDB from the csv.gz tables.

The code reads releases 2.x and 3.x and the demo alike, by the columns in `tables.TABLES`. The onset of sepsis in a stay is organ
failure, by SOFA (`sofa`), close to a suspicion of infection: an antibiotic and a culture close to each other (Seymour et al.
2016). The setting `onset` chooses the rule.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection

from clailearn.errors import InputError
from replication.datasets.mimic_iv import sofa, tables
from replication.datasets.mimic_iv.tables import VITALS, count, executing, texts
from replication.datasets.prepared import Writer
from replication.datasets.recordings import LABEL_HOURS_BEFORE, Rows, cohort_text, write
from replication.datasets.sources import Raw, Source

logger = logging.getLogger(__name__)

# Stems of the names of systemic antibiotics, matched anywhere in the drug: generic names, and brands that occur alone.
ANTIBIOTICS = (
    "amikacin|amoxicillin|ampicillin|augmentin|azithromycin|aztreonam|bactrim|cef|cephalexin|chloramphenicol|cipro|"
    "clarithromycin|clindamycin|colisti|dalbavancin|daptomycin|dicloxacillin|doripenem|doxycycline|ertapenem|erythromycin|"
    "fidaxomicin|flagyl|fosfomycin|gentamicin|imipenem|levofloxacin|linezolid|meropenem|metronidazole|minocycline|"
    "moxifloxacin|nafcillin|nitrofurantoin|ofloxacin|oritavancin|oxacillin|penicillin|piperacillin|polymyxin|quinupristin|"
    "rifampin|streptomycin|sulfamethoxazole|sulfadiazine|tedizolid|telavancin|tetracycline|ticarcillin|tigecycline|"
    "tobramycin|trimethoprim|unasyn|vancomycin|zosyn"
)
INTRAVENOUS_ROUTES = ("IV", "IV DRIP", "IV BOLUS", "IVPCA", "PB")
SYSTEMIC_ROUTES = (*INTRAVENOUS_ROUTES, "IVT", "IM", "PO", "PO/NG", "ORAL", "NG", "J TUBE", "G TUBE")
NOT_SYSTEMIC = "ophth|otic|cream|ointment|oint|gel|topical|desensitization|lock|enema|irrigation"
LONGEST_PAUSE = 24
"""Hours between two orders of antibiotics that continue one another: doses may lie a day apart."""


@dataclass(frozen=True)
class OnsetRule:
    """A definition of the onset of sepsis.

    before, after: hours around a suspicion within which SOFA counts. since: hours within which SOFA must have risen by two
    points; None for a rise from a baseline of 0. intravenous_hours: see `find_suspicions`. words: for descriptions of the data.
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


def leave_out(database: DuckDBPyConnection, rules: Mapping[str, str]) -> list[dict[str, Any]]:
    """Delete stays by rules in order, SQL conditions by their reason; return reason, count and number left for each."""
    exclusions = []
    for reason, rule in rules.items():
        dropped = count(database, f"DELETE FROM stays WHERE {rule}")  # which gives the number of deleted rows
        exclusions.append({"reason": reason, "count": dropped, "left": count(database, "SELECT count(*) FROM stays")})
    return exclusions


def select_stays(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Create the table `stays`: subject_id, stay_id, intime, outtime, hours (cut at `maximum_hours`); return the exclusions."""
    for table, key in (("hosp/patients", "subject_id"), ("icu/icustays", "stay_id")):
        rows = f"count(*) - count(DISTINCT CAST({key} AS BIGINT)) FROM {table.partition('/')[2]}"
        if repeated := count(database, f"SELECT {rows}", table):
            raise InputError(f"{table}: found {repeated} rows whose {key} is missing or repeats, expected each once.")
    with executing("icu/icustays and hosp/patients"):
        database.execute("""
        CREATE TABLE stays AS
        SELECT CAST(i.subject_id AS BIGINT) AS subject_id, CAST(i.stay_id AS BIGINT) AS stay_id,
            CAST(i.intime AS TIMESTAMP) AS intime, CAST(i.outtime AS TIMESTAMP) AS outtime,
            CAST(p.anchor_age AS INTEGER) + year(CAST(i.intime AS TIMESTAMP)) - CAST(p.anchor_year AS INTEGER) AS age,
            CAST(ceil(epoch(CAST(i.outtime AS TIMESTAMP) - CAST(i.intime AS TIMESTAMP)) / 3600) AS INTEGER) AS hours,
            row_number() OVER (PARTITION BY i.subject_id ORDER BY CAST(i.intime AS TIMESTAMP)) AS number
        FROM icustays i JOIN patients p ON CAST(i.subject_id AS BIGINT) = CAST(p.subject_id AS BIGINT)
        """)
    total = count(database, "SELECT count(*) FROM icustays")
    known = count(database, "SELECT count(*) FROM stays")
    if ageless := count(database, "SELECT count(*) FROM stays WHERE age IS NULL AND intime IS NOT NULL"):
        raise InputError(f"hosp/patients: found {ageless} stays without an age, expected anchor_age and anchor_year.")
    unknown = {"reason": "stays of patients whom hosp/patients does not have", "count": total - known, "left": known}
    youngest, least, longest = (settings[name] for name in ("minimum_age", "minimum_hours", "maximum_hours"))
    rules = {
        f"stays of patients younger than {youngest} years": f"age < {youngest}",
        "stays without an end": "hours IS NULL",
        **({"later stays of the same patient": "number > 1"} if settings["first_stay_only"] else {}),
        f"stays shorter than {least} hours": f"hours < {least}",
    }
    exclusions = [unknown, *leave_out(database, rules)]
    beyond = count(database, f"SELECT coalesce(sum(greatest(hours - {longest}, 0)), 0) FROM stays")
    exclusions.append({"reason": f"hours after hour {longest} of a stay", "count": beyond})
    with executing("the stays"):
        database.execute(f"UPDATE stays SET hours = least(hours, {longest})")
    return exclusions


def select_cohort(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Delete stays by onset, cohort and lack of vital signs; return the exclusions as `leave_out` does."""
    earliest = settings["minimum_onset_hours"]
    early = f"stay_id IN (SELECT stay_id FROM onsets WHERE onset < {earliest})"
    rules = {f"stays with an onset before hour {earliest}": early}
    rules["stays without a vital sign"] = """stay_id NOT IN
        (SELECT stay_id FROM vitals v JOIN stays s USING (stay_id) WHERE v.hour >= 0 AND v.hour < s.hours)"""
    if settings["cohort"] == "sepsis_only":
        rules["stays without an onset of sepsis"] = "stay_id NOT IN (SELECT stay_id FROM onsets)"
    return leave_out(database, rules)


def flow_of(exclusions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the flow of the cohort (CONSORT): the number of all stays, then the number left after each rule."""
    steps = [item for item in exclusions if "left" in item]
    left = {"ICU stays in the tables": steps[0]["count"] + steps[0]["left"]}
    left |= {f"after leaving out {item['reason']}": item["left"] for item in steps}
    return [{"step": step, "n": n, "unit": "stays"} for step, n in left.items()]


def read_treatment(database: DuckDBPyConnection) -> None:
    """Create the tables antibiotics (subject_id, time, stop, intravenous) and cultures (subject_id, time).

    Antibiotics are orders of systemic ones; `stop` is not before `time`. A culture with a date alone counts from midnight.
    """
    with executing("hosp/prescriptions.csv.gz"):
        database.execute(f"""
        CREATE TABLE antibiotics AS
        SELECT DISTINCT CAST(p.subject_id AS BIGINT) AS subject_id, CAST(p.starttime AS TIMESTAMP) AS time,
            greatest(CAST(p.starttime AS TIMESTAMP), CAST(p.stoptime AS TIMESTAMP)) AS stop,
            upper(p.route) IN ({texts(INTRAVENOUS_ROUTES)}) AS intravenous
        FROM prescriptions p
        WHERE p.starttime IS NOT NULL AND upper(p.route) IN ({texts(SYSTEMIC_ROUTES)})
            AND regexp_matches(lower(p.drug), '{ANTIBIOTICS}') AND NOT regexp_matches(lower(p.drug), '{NOT_SYSTEMIC}')
        """)
    with executing("hosp/microbiologyevents.csv.gz"):
        database.execute("""
        CREATE TABLE cultures AS
        SELECT DISTINCT CAST(subject_id AS BIGINT) AS subject_id,
            coalesce(CAST(charttime AS TIMESTAMP), CAST(chartdate AS TIMESTAMP)) AS time
        FROM microbiologyevents
        """)


def find_suspicions(database: DuckDBPyConnection, intravenous_hours: int | None) -> None:
    """Create the table `suspicions`: subject_id, time.

    An antibiotic within 72 h after a culture is a suspicion at the time of the culture; a culture within 24 h after an
    antibiotic is one at the time of the antibiotic. An antibiotic counts only if intravenous ones continue for
    `intravenous_hours` from its start, as ordered; None for all systemic antibiotics.
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
    with executing("cultures and antibiotics"):
        database.execute(f"""
        CREATE TABLE suspicions AS
        WITH counted AS (SELECT * FROM {counted})
        SELECT DISTINCT subject_id, time FROM (
            SELECT c.subject_id, c.time FROM cultures c JOIN counted a ON a.subject_id = c.subject_id
                AND a.time BETWEEN c.time AND c.time + INTERVAL 72 HOUR
            UNION ALL
            SELECT a.subject_id, a.time FROM counted a JOIN cultures c ON a.subject_id = c.subject_id
                AND c.time > a.time AND c.time <= a.time + INTERVAL 24 HOUR
        )
        """)


def find_onsets(database: DuckDBPyConnection, rule: str) -> None:
    """Create the table `onsets`: stay_id and the hours (negative before the stay) of onset, suspicion and SOFA.

    The suspicion is the first that SOFA confirms. The onset is the earlier of the two, as in Challenge 2019.
    """
    chosen = RULES[rule]
    find_suspicions(database, chosen.intravenous_hours)
    failing = "SELECT stay_id, hour FROM sofa WHERE sofa >= 2"
    if chosen.since is not None:
        failing = f"""SELECT stay_id, hour FROM sofa
            QUALIFY sofa >= 2 + min(sofa) OVER (PARTITION BY stay_id ORDER BY hour ROWS {chosen.since} PRECEDING)"""
    with executing("cultures, antibiotics and SOFA"):
        database.execute(f"""
        CREATE TABLE onsets AS
        SELECT stay_id, min(least(suspicion, sofa)) AS onset, min(suspicion) AS suspicion, min(sofa) AS sofa FROM (
            SELECT s.stay_id, s.hours, u.suspicion, min(f.hour) AS sofa
            FROM stays s
            JOIN (
                SELECT t.stay_id, hour_of(p.time, t.intime) AS suspicion
                FROM suspicions p JOIN stays t USING (subject_id)
            ) u USING (stay_id)
            JOIN ({failing}) f ON f.stay_id = s.stay_id
                AND f.hour BETWEEN u.suspicion - {chosen.before} AND u.suspicion + {chosen.after}
            GROUP BY ALL
        ) WHERE least(suspicion, sofa) < hours GROUP BY stay_id
        """)


def label(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Create the tables stays, those of their events, sofa and onsets; return the exclusions of stays by each rule."""
    exclusions = select_stays(database, settings)
    sofa.read_events(database)
    read_treatment(database)
    sofa.find_ventilation(database)
    sofa.score_sofa(database)
    find_onsets(database, settings["onset"])
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
    exclusions = []
    for name, (low, high) in ranges.items():
        outside = f"readings WHERE variable = '{name}' AND NOT reading BETWEEN {low} AND {high}"
        dropped = count(database, f"SELECT count(*) FROM {outside}")
        exclusions.append({"reason": f"values of {name} outside {low:g} to {high:g}", "count": dropped})
    return exclusions


def hourly_rows(database: DuckDBPyConnection, settings: Mapping[str, Any]) -> Rows:
    """Return every hour of every stay in `stays`, with its label."""
    names = list(settings["variables"])
    columns = ", ".join(f"max(v.value) FILTER (v.variable = '{name}') AS \"{name}\"" for name in names)
    sql = f"""
        SELECT s.subject_id, g.stay_id, g.hour,
            coalesce(g.hour >= o.onset - {LABEL_HOURS_BEFORE}, false) AS y, {columns}
        FROM grid g JOIN stays s USING (stay_id) LEFT JOIN onsets o USING (stay_id)
            LEFT JOIN vitals v ON v.stay_id = g.stay_id AND v.hour = g.hour
        WHERE g.hour >= 0 GROUP BY ALL ORDER BY g.stay_id, g.hour
    """
    with executing("the hours of the stays"):
        table = database.execute(sql).df()
    y, recordings, patients = (table[name].to_numpy(np.int64) for name in ("y", "stay_id", "subject_id"))
    return Rows(table[names].to_numpy(np.float32), y, recordings, patients, table["hour"].to_numpy(np.float32))


def prepare(raw: Raw, writer: Writer, settings: Mapping[str, Any], seed: int) -> None:
    """Select the stays, average the vital signs by the hour, find the onsets and write the folds."""
    if unknown := [name for name in settings["variables"] if name not in VITALS]:
        raise InputError(f"datasets.{raw.dataset}.variables: {', '.join(unknown)} is none of {', '.join(VITALS)}")
    with tables.connect(raw.find(), writer.scratch(), settings["memory_gb"]) as database:
        tables.check_patients(database, raw)
        exclusions = label(database, settings)
        if not count(database, "SELECT count(*) FROM stays"):
            flow = cohort_text(flow_of(exclusions), settings)
            raise InputError(f"{raw.path}: found no stay that the settings admit, expected some. {flow}")
        covered = sofa.coverage(database)
        lacking = [name for name, stays in covered.items() if not stays]
        for name in lacking:
            logger.warning("%s: no stay has %s: the definition treats it as normal, or never met", raw.path, name)
        outside = average_vitals(database, settings["variables"])
        if lacking and not count(database, "SELECT count(*) FROM onsets"):
            raise InputError(f"{raw.path}: found no onset of sepsis; the tables have no {', no '.join(lacking)}")
        exclusions += select_cohort(database, settings) + outside
        rows = hourly_rows(database, settings)
    hours, words = LABEL_HOURS_BEFORE, RULES[settings["onset"]].words
    rule = f"1 from {hours} hours before the onset of sepsis ({words}, time: earliest) to the end of the stay"
    extra = {"label_rule": rule, "label_hours_before": hours, "coverage": covered, "lacking": lacking}
    write(raw, writer, settings, seed, rows, **extra, exclusions=exclusions, flow=flow_of(exclusions))


SOURCE = Source(
    files=tuple(f"**/{table}.csv{ending}" for table in tables.TABLES for ending in (".gz", "")),
    expects="the folder of MIMIC-IV (2.x, 3.x or the demo), itself or one above it, with hosp/ and icu/",
    prepare=prepare,
)
