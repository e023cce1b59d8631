"""MIMIC-IV: hourly vital signs and Sepsis-3 labels of ICU stays, read by DuckDB from the csv.gz tables.

The code reads releases 2.x and 3.x and the demo alike, by the columns in TABLES.

- Suspicion of infection: a systemic antibiotic within 72 h after a culture (time: the culture), or a culture within 24 h
  after an antibiotic (time: the antibiotic). A culture with a date alone counts from midnight.
- SOFA: scored every hour from the worst values of the last 24 h. A component without a value scores 0.
- Sepsis: SOFA >= 2 (baseline 0) at some hour of the stay from 48 h before to 24 h after a suspicion.

The settings `onset` and `label_hours_*` choose the time of the onset and the duration of the label.
"""

import csv
import gzip
import logging
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clai.datasets.fetch import Raw
from clai.datasets.recordings import Rows, write
from clai.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

logger = logging.getLogger(__name__)

# The columns that are read of each table; releases differ in the others.
TABLES = {
    "hosp/patients": "subject_id anchor_age anchor_year",
    "hosp/labevents": "subject_id charttime itemid valuenum",
    "hosp/microbiologyevents": "subject_id chartdate charttime",
    "hosp/prescriptions": "subject_id starttime drug route",
    "icu/icustays": "subject_id stay_id intime outtime",
    "icu/chartevents": "stay_id charttime itemid value valuenum",
    "icu/inputevents": "stay_id starttime endtime itemid rate rateuom patientweight statusdescription",
    "icu/outputevents": "stay_id charttime itemid value",
}
FILES = tuple(f"**/{table}.csv{ending}" for table in TABLES for ending in (".gz", ""))
EXPECTS = "the folder of MIMIC-IV (2.x, 3.x or the demo), itself or one above it, with hosp/ and icu/"

CSV = """delim = ',', quote = '"', escape = '"'"""

# Items of icu/chartevents for each vital sign; 223761 is in Fahrenheit.
VITALS = {
    "HR": (220045,),
    "O2Sat": (220277,),
    "Temp": (223761, 223762),
    "SBP": (220050, 225309, 220179),
    "MAP": (220052, 225312, 220181),
    "DBP": (220051, 225310, 220180),
    "Resp": (220210, 224690),
}
FAHRENHEIT = 223761
EYE, VERBAL, MOTOR = 220739, 223900, 223901
VENTILATOR_MODE, OXYGEN_DEVICE = 223849, 226732
PAO2, FIO2, PLATELETS, BILIRUBIN, CREATININE = 50821, 50816, 51265, 50885, 50912
NOREPINEPHRINE, EPINEPHRINE, DOPAMINE, DOBUTAMINE = 221906, 221289, 221662, 221653
# Foley, void, condom catheter, ileoconduit, suprapubic, nephrostomies, straight catheter, ureteral stents.
URINE = (226559, 226560, 226561, 226584, 226563, 226564, 226565, 226567, 226557, 226558)

# Stems of the names of systemic antibiotics, matched anywhere in the drug: generic names, and brands that occur alone.
ANTIBIOTICS = (
    "amikacin|amoxicillin|ampicillin|augmentin|azithromycin|aztreonam|bactrim|cef|cephalexin|chloramphenicol|cipro|"
    "clarithromycin|clindamycin|colisti|dalbavancin|daptomycin|dicloxacillin|doripenem|doxycycline|ertapenem|erythromycin|"
    "fidaxomicin|flagyl|fosfomycin|gentamicin|imipenem|levofloxacin|linezolid|meropenem|metronidazole|minocycline|"
    "moxifloxacin|nafcillin|nitrofurantoin|ofloxacin|oritavancin|oxacillin|penicillin|piperacillin|polymyxin|quinupristin|"
    "rifampin|streptomycin|sulfamethoxazole|sulfadiazine|tedizolid|telavancin|tetracycline|ticarcillin|tigecycline|"
    "tobramycin|trimethoprim|unasyn|vancomycin|zosyn"
)
SYSTEMIC_ROUTES = (
    "IV", "IV DRIP", "IV BOLUS", "IVPCA", "IVT", "IM", "PO", "PO/NG", "ORAL", "NG", "PB", "J TUBE", "G TUBE"
)  # fmt: skip
NOT_SYSTEMIC = "ophth|otic|cream|ointment|oint|gel|topical|desensitization|lock|enema|irrigation"
ONSETS = {
    "suspicion": "suspicion",
    "sofa": "sofa",
    "earliest": "least(suspicion, sofa)",
}


def locate(folder: Path) -> dict[str, Path]:
    """Return the file of each table, packed or unpacked, in `folder` or in the one folder below it with hosp/ and icu/.

    Raises InputError naming the missing tables, or the folders when there are several.
    """
    roots = [folder] if (folder / "hosp").is_dir() else sorted({p.parent for p in folder.glob("**/hosp") if p.is_dir()})
    if len(roots) > 1:
        raise InputError(
            f"{folder}: found {len(roots)} copies ({', '.join(map(str, roots))}); set `path` to one of them"
        )
    root = roots[0] if roots else folder
    files, missing = {}, []
    for table in TABLES:
        paths = [p for p in (root / f"{table}.csv.gz", root / f"{table}.csv") if p.is_file()]
        if paths:
            files[table] = paths[0]
        else:
            missing.append(f"{table}.csv.gz")
    if missing:
        raise InputError(f"{root}: found no {', '.join(missing)}; expected MIMIC-IV with its folders hosp/ and icu/")
    return files


def header(path: Path) -> list[str]:
    """Return the column names of a table; raises InputError when it cannot be read."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
            return next(csv.reader([stream.readline(2**16)]), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as a table ({type(error).__name__}). Replace the file.") from None


def connect(folder: Path, scratch: Path, memory_gb: float) -> "DuckDBPyConnection":
    """Open a database in `scratch` with a view on each table, named as its file, with text in every column.

    Raises InputError naming a missing table or column.
    """
    import duckdb

    database = duckdb.connect(str(scratch / "mimic.duckdb"))
    # With one thread the order of summation, and so the last bit of an hourly mean, does not vary.
    database.execute(f"SET memory_limit = '{memory_gb}GB'; SET threads = 1; SET temp_directory = '{scratch}/spill'")
    database.execute("""
        CREATE MACRO number(entry) AS CASE WHEN entry IS NULL THEN NULL
            WHEN isfinite(CAST(entry AS DOUBLE)) THEN CAST(entry AS DOUBLE) ELSE error('a number is not finite') END
    """)
    for table, file in locate(folder).items():
        columns = header(file)
        if missing := [name for name in TABLES[table].split() if name not in columns]:
            raise InputError(f"{file}: found no column {', '.join(missing)} among {', '.join(columns)}")
        types = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': 'VARCHAR'" for name in columns)
        path = str(file).replace("'", "''")
        run(
            database,
            f"CREATE VIEW {table.partition('/')[2]} AS SELECT * FROM "
            f"read_csv('{path}', header = true, auto_detect = false, columns = {{{types}}}, {CSV})",
            path,
        )
    return database


class MemoryLimitError(InputError):
    """The database reached its `memory_gb`; the message continues one that begins with this key."""


@contextmanager
def executing(what: str) -> Iterator[None]:
    """Turn errors of the database within the block into InputErrors that name what it read, and say what to do.

    Only kind, line and counts of the database's message are kept, because it quotes rows of patients.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        # The database reports a full disk as lack of memory, too.
        if re.search("No space left|max_temp_directory_size", text):
            raise InputError(
                f"{what}: no room on the disk for the database, which is beside the prepared data. Free disk space there and run "
                "again; nothing was left behind."
            ) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryLimitError(
                f"the database ran out of this memory at {what}. Raise it as far as the machine allows, and run again."
            ) from None
        parts = [type(error).__name__]
        parts += re.findall(r"on Line: \d+|Expected Number of Columns: \d+ Found: \d+", text)
        parts += re.findall(r"Could not convert string|a number is not finite|not a valid", text)
        parts += [
            f"to {kind}"
            for kind in re.findall(r"(?:to|format.*?) (DOUBLE|INT\d+|BIGINT|TIMESTAMP|timestamp)\b", text)[:1]
        ]
        raise InputError(
            f"{what}: found what is not a table of MIMIC-IV as distributed ({', '.join(dict.fromkeys(parts))}). Replace the "
            "file; its rows are not shown here."
        ) from None


@contextmanager
def naming_memory(dataset: str, memory_gb: float) -> Iterator[None]:
    """Put the key and its value before the message of a MemoryLimitError within the block."""
    try:
        yield
    except MemoryLimitError as error:
        raise InputError(f"datasets.{dataset}.memory_gb: found {memory_gb}; {error}") from None


def run(database: "DuckDBPyConnection", sql: str, what: str) -> None:
    """Execute SQL that reads `what`; raises InputError as `executing` does."""
    with executing(what):
        database.execute(sql)


def _count(database: "DuckDBPyConnection", sql: str) -> int:
    """Return the one number that a query gives."""
    with executing("the stays and their events"):
        row = database.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def leave_out(database: "DuckDBPyConnection", rules: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Delete stays by rules (reason, SQL condition) in order; return reason, count and number left for each."""
    exclusions = []
    for reason, rule in rules:
        count = _count(database, f"SELECT count(*) FROM stays WHERE {rule}")
        run(database, f"DELETE FROM stays WHERE {rule}", "the stays")
        exclusions.append({"reason": reason, "count": count, "left": _count(database, "SELECT count(*) FROM stays")})
    return exclusions


def flow_of(exclusions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the flow of the cohort (CONSORT): the number of all stays, then the number left after each rule."""
    steps = [item for item in exclusions if "left" in item]
    first = {"step": "ICU stays in the tables", "n": steps[0]["count"] + steps[0]["left"], "unit": "stays"}
    return [first] + [
        {"step": f"after leaving out {item['reason']}", "n": item["left"], "unit": "stays"} for item in steps
    ]


def coverage(database: "DuckDBPyConnection") -> dict[str, int]:
    """Count the stays that have each ingredient of labels and variables at least once.

    Call after `read_events`. The ingredients are kinds of charted and laboratory items, and the other tables.
    """
    chart = {f"vital sign {name}": items for name, items in VITALS.items()}
    chart |= {"coma scale, eyes": (EYE,), "coma scale, speech": (VERBAL,), "coma scale, movement": (MOTOR,)}
    chart |= {"mechanical ventilation": (VENTILATOR_MODE, OXYGEN_DEVICE)}
    labs = {"PaO2": PAO2, "FiO2": FIO2, "platelets": PLATELETS, "bilirubin": BILIRUBIN, "creatinine": CREATININE}
    of_stays = "SELECT count(DISTINCT stay_id) FROM"
    stays_with = {
        name: _count(database, f"{of_stays} chart WHERE item IN ({', '.join(map(str, items))})")
        for name, items in chart.items()
    }
    stays_with |= {name: _count(database, f"{of_stays} labs WHERE item = {item}") for name, item in labs.items()}
    stays_with |= {
        "vasopressors": _count(database, f"{of_stays} pressors"),
        "urine": _count(database, f"{of_stays} urine"),
    }
    for name in ("cultures", "antibiotics"):
        stays_with[name] = _count(database, f"{of_stays} stays WHERE subject_id IN (SELECT subject_id FROM {name})")
    return stays_with


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
    total = _count(database, "SELECT count(*) FROM icustays")
    known = _count(database, "SELECT count(*) FROM stays")
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
    beyond = _count(database, f"SELECT coalesce(sum(greatest(hours - {longest}, 0)), 0) FROM stays")
    exclusions.append({"reason": f"hours after hour {longest} of a stay", "count": beyond})
    run(database, f"UPDATE stays SET hours = least(hours, {longest})", "the stays")
    return exclusions


def read_events(database: "DuckDBPyConnection") -> None:
    """Create the tables chart, labs, pressors, urine, antibiotics and cultures with the events of `stays`.

    Times become hours since the start of the stay. labs begins 24 h before it.
    """
    items = [item for vital in VITALS.values() for item in vital]
    charted = _texts([*items, EYE, VERBAL, MOTOR, VENTILATOR_MODE, OXYGEN_DEVICE])
    logger.info("reading icu/chartevents")
    run(
        database,
        f"""
        CREATE TABLE chart AS
        SELECT s.stay_id, CAST(floor(epoch(CAST(c.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            CAST(c.itemid AS INTEGER) AS item, number(c.valuenum) AS value, c.value AS text
        FROM chartevents c JOIN stays s ON CAST(c.stay_id AS BIGINT) = s.stay_id
        WHERE c.itemid IN ({charted})
        """,
        "icu/chartevents.csv.gz",
    )
    logger.info("reading hosp/labevents")
    run(
        database,
        f"""
        CREATE TABLE labs AS
        SELECT s.stay_id, CAST(l.charttime AS TIMESTAMP) AS time,
            CAST(floor(epoch(CAST(l.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            CAST(l.itemid AS INTEGER) AS item, number(l.valuenum) AS value
        FROM (SELECT * FROM labevents
              WHERE itemid IN ({_texts([PAO2, FIO2, PLATELETS, BILIRUBIN, CREATININE])}) AND valuenum IS NOT NULL) l
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
        WHERE i.itemid IN ({_texts([NOREPINEPHRINE, EPINEPHRINE, DOPAMINE, DOBUTAMINE])})
            AND number(i.rate) > 0 AND coalesce(i.statusdescription, '') <> 'Rewritten'
        """,
        "icu/inputevents.csv.gz",
    )
    run(
        database,
        f"""
        CREATE TABLE urine AS
        SELECT s.stay_id, CAST(floor(epoch(CAST(o.charttime AS TIMESTAMP) - s.intime) / 3600) AS INTEGER) AS hour,
            sum(number(o.value)) AS value
        FROM outputevents o JOIN stays s ON CAST(o.stay_id AS BIGINT) = s.stay_id
        WHERE o.itemid IN ({_texts(URINE)}) GROUP BY ALL
        """,
        "icu/outputevents.csv.gz",
    )
    run(
        database,
        f"""
        CREATE TABLE antibiotics AS
        SELECT DISTINCT CAST(subject_id AS BIGINT) AS subject_id, CAST(starttime AS TIMESTAMP) AS time
        FROM prescriptions
        WHERE starttime IS NOT NULL AND upper(route) IN ({_texts(SYSTEMIC_ROUTES)})
            AND regexp_matches(lower(drug), '{ANTIBIOTICS}') AND NOT regexp_matches(lower(drug), '{NOT_SYSTEMIC}')
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


def _texts(values: Sequence[int | str]) -> str:
    """Return the values as SQL texts, separated by commas."""
    return ", ".join(f"'{value}'" for value in values)


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
            "count": _count(
                database,
                f"SELECT count(*) FROM readings WHERE variable = '{name}' AND NOT reading BETWEEN {low} AND {high}",
            ),
        }
        for name, (low, high) in ranges.items()
    ]


def score_sofa(database: "DuckDBPyConnection") -> None:
    """Create the table `sofa`: stay_id, hour (from 0), sofa (0..24), from the worst values of the last 24 h.

    The thresholds are those of Vincent et al. (1996).
    """
    run(
        database,
        f"""
        CREATE TABLE grid AS
        SELECT stay_id, CAST(unnest(generate_series(-24, hours - 1)) AS INTEGER) AS hour FROM stays;

        CREATE TABLE ventilated AS
        SELECT DISTINCT stay_id, hour FROM chart
        WHERE item = {VENTILATOR_MODE} OR (item = {OXYGEN_DEVICE} AND text = 'Endotracheal tube');

        -- The latest FiO2 of at most four hours before belongs to a PaO2; a fraction is turned into per cent.
        CREATE TABLE ratios AS
        SELECT o.stay_id, o.hour, 100 * o.value / f.percent AS ratio,
            EXISTS (SELECT 1 FROM ventilated v
                WHERE v.stay_id = o.stay_id AND v.hour BETWEEN o.hour - 4 AND o.hour) AS vent
        FROM (SELECT * FROM labs WHERE item = {PAO2}) o
        ASOF JOIN (
            SELECT stay_id, time, CASE WHEN value <= 1 THEN 100 * value ELSE value END AS percent
            FROM labs WHERE item = {FIO2} AND (value BETWEEN 0.2 AND 1 OR value BETWEEN 20 AND 100)
        ) f ON o.stay_id = f.stay_id AND o.time >= f.time
        WHERE o.time <= f.time + INTERVAL 4 HOUR;

        CREATE TABLE points AS
        SELECT stay_id, hour, 'respiration' AS part, CASE WHEN ratio < 100 AND vent THEN 4
            WHEN ratio < 200 AND vent THEN 3 WHEN ratio < 300 THEN 2 WHEN ratio < 400 THEN 1 ELSE 0 END AS score FROM
            ratios UNION ALL
        SELECT stay_id, hour, 'coagulation', CASE WHEN value < 20 THEN 4 WHEN value < 50 THEN 3 WHEN value < 100 THEN 2
            WHEN value < 150 THEN 1 ELSE 0 END FROM labs WHERE item = {PLATELETS}
        UNION ALL
        SELECT stay_id, hour, 'liver', CASE WHEN value >= 12 THEN 4 WHEN value >= 6 THEN 3 WHEN value >= 2 THEN 2
            WHEN value >= 1.2 THEN 1 ELSE 0 END FROM labs WHERE item = {BILIRUBIN}
        UNION ALL
        SELECT stay_id, hour, 'kidney', CASE WHEN value >= 5 THEN 4 WHEN value >= 3.5 THEN 3 WHEN value >= 2 THEN 2
            WHEN value >= 1.2 THEN 1 ELSE 0 END FROM labs WHERE item = {CREATININE}
        UNION ALL
        SELECT stay_id, hour, 'circulation', 1 FROM chart
            WHERE item IN ({", ".join(map(str, VITALS["MAP"]))}) AND value > 0 AND value < 70
        UNION ALL
        SELECT stay_id, unnest(generate_series(greatest(first_hour, -24), last_hour)), 'circulation',
            CASE WHEN item = {DOPAMINE} AND rate > 15 THEN 4 WHEN item = {DOPAMINE} AND rate > 5 THEN 3
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) AND rate > 0.1 THEN 4
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) THEN 3 ELSE 2 END FROM pressors;

        CREATE TABLE coma AS
        SELECT stay_id, hour, min(value) FILTER (item = {EYE}) AS eye, min(value) FILTER (item = {MOTOR}) AS motor,
            min(CASE WHEN text = 'No Response-ETT' THEN 0 ELSE value END) FILTER (item = {VERBAL}) AS verbal
        FROM chart WHERE item IN ({EYE}, {VERBAL}, {MOTOR}) GROUP BY ALL;

        -- A part of the coma scale holds for six hours; under a tube (verbal 0) the scale counts as normal.
        CREATE TABLE consciousness AS
        SELECT stay_id, hour, CASE WHEN verbal = 0 THEN 15
            ELSE coalesce(eye, 4) + coalesce(verbal, 5) + coalesce(motor, 6) END AS total
        FROM (
            SELECT g.stay_id, g.hour, last_value(eye IGNORE NULLS) OVER w AS eye,
                last_value(verbal IGNORE NULLS) OVER w AS verbal, last_value(motor IGNORE NULLS) OVER w AS motor
            FROM grid g LEFT JOIN coma c USING (stay_id, hour)
            WINDOW w AS (PARTITION BY g.stay_id ORDER BY g.hour ROWS 5 PRECEDING)
        );

        CREATE TABLE hourly AS
        SELECT g.stay_id, g.hour, max(score) FILTER (part = 'respiration') AS respiration,
            max(score) FILTER (part = 'coagulation') AS coagulation, max(score) FILTER (part = 'liver') AS liver,
            max(score) FILTER (part = 'circulation') AS circulation, max(score) FILTER (part = 'kidney') AS kidney
        FROM grid g LEFT JOIN points p USING (stay_id, hour) GROUP BY ALL;

        CREATE TABLE sofa AS
        SELECT * FROM (
            SELECT h.stay_id, h.hour,
                coalesce(max(respiration) OVER w, 0) + coalesce(max(coagulation) OVER w, 0)
                + coalesce(max(liver) OVER w, 0) + coalesce(max(circulation) OVER w, 0)
                + max(CASE WHEN total < 6 THEN 4 WHEN total < 10 THEN 3 WHEN total < 13 THEN 2 WHEN total < 15 THEN 1
                    ELSE 0 END) OVER w
                + greatest(coalesce(max(kidney) OVER w, 0), CASE WHEN h.hour < 23 THEN 0 WHEN sum(u.value) OVER w < 200
                    THEN 4 WHEN sum(u.value) OVER w < 500 THEN 3 ELSE 0 END) AS sofa
            FROM hourly h JOIN consciousness c USING (stay_id, hour) LEFT JOIN urine u USING (stay_id, hour)
            WINDOW w AS (PARTITION BY h.stay_id ORDER BY h.hour ROWS 23 PRECEDING)
        ) WHERE hour >= 0;
    """,
        "what SOFA is scored from",
    )


def find_onsets(database: "DuckDBPyConnection", onset: str) -> None:
    """Create the table `onsets`: stay_id, onset (hour of the stay, negative before it); only stays with sepsis have a row.

    onset: a key of ONSETS. Where SOFA confirms several suspicions, the earliest onset counts.
    """
    run(
        database,
        f"""
        CREATE TABLE suspicions AS
        SELECT DISTINCT subject_id, time FROM (
            SELECT c.subject_id, c.time FROM cultures c JOIN antibiotics a ON a.subject_id = c.subject_id
                AND a.time BETWEEN c.time AND c.time + INTERVAL 72 HOUR
            UNION ALL
            SELECT a.subject_id, a.time FROM antibiotics a JOIN cultures c ON a.subject_id = c.subject_id
                AND c.time > a.time AND c.time <= a.time + INTERVAL 24 HOUR
        );

        CREATE TABLE onsets AS
        SELECT stay_id, min({ONSETS[onset]}) AS onset FROM (
            SELECT s.stay_id, s.hours, u.suspicion, min(f.hour) AS sofa
            FROM stays s
            JOIN (
                SELECT t.stay_id, CAST(floor(epoch(p.time - t.intime) / 3600) AS INTEGER) AS suspicion
                FROM suspicions p JOIN stays t USING (subject_id)
            ) u USING (stay_id)
            JOIN sofa f ON f.stay_id = s.stay_id AND f.sofa >= 2
                AND f.hour BETWEEN u.suspicion - 48 AND u.suspicion + 24
            GROUP BY ALL
        ) WHERE {ONSETS[onset]} < hours GROUP BY stay_id;
    """,
        "cultures, antibiotics and SOFA",
    )


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


def hourly_rows(database: "DuckDBPyConnection", settings: Mapping[str, Any]) -> Rows:
    """Return every hour of every stay in `stays`, with its label."""
    names = list(settings["variables"])
    columns = ", ".join(f"max(v.value) FILTER (v.variable = '{name}') AS \"{name}\"" for name in names)
    after = settings["label_hours_after"]
    until = "" if after is None else f" AND g.hour <= o.onset + {after}"
    sql = f"""
        SELECT s.subject_id, g.stay_id, g.hour,
            coalesce(g.hour >= o.onset - {settings["label_hours_before"]}{until}, false) AS y, {columns}
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
    """Select the stays, average the vital signs by the hour, find the onsets and write the folds.

    Raises InputError for an unknown `onset`, a variable without items, a table that is missing or malformed, and when
    memory or disk space runs out.
    """
    if settings["onset"] not in ONSETS:
        raise InputError(
            f"datasets.{raw.dataset}.onset: found '{settings['onset']}', expected one of {', '.join(ONSETS)}"
        )
    if unknown := [name for name in settings["variables"] if name not in VITALS]:
        raise InputError(f"datasets.{raw.dataset}.variables: {', '.join(unknown)} is none of {', '.join(VITALS)}")
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    with (
        naming_memory(raw.dataset, settings["memory_gb"]),
        tempfile.TemporaryDirectory(prefix=f".{out_dir.name}-duckdb-", dir=out_dir.parent) as scratch,
        connect(raw.path, Path(scratch), settings["memory_gb"]) as database,
    ):
        exclusions = select_stays(database, settings)
        read_events(database)
        covered = coverage(database)
        lacking = [name for name, stays in covered.items() if not stays]
        for name in lacking:
            logger.warning("%s: no stay has %s: the definition treats it as normal, or never met", raw.path, name)
        outside = average_vitals(database, settings["variables"])
        score_sofa(database)
        find_onsets(database, settings["onset"])
        if lacking and not _count(database, "SELECT count(*) FROM onsets"):
            raise InputError(f"{raw.path}: found no onset of sepsis; the tables have no {', no '.join(lacking)}")
        exclusions += select_cohort(database, settings) + outside
        rows = hourly_rows(database, settings)
    after = settings["label_hours_after"]
    end = "the end of the stay" if after is None else f"{after} hours after it"
    rule = (
        f"1 from {settings['label_hours_before']} hours before the onset of sepsis (Sepsis-3, time: "
        f"{settings['onset']}) to {end}"
    )
    extra = {
        "flow": flow_of(exclusions),
        "coverage": covered,
        "lacking": lacking,
        "label_hours_before": settings["label_hours_before"],
    }
    write(raw, out_dir, settings, seed, rows, exclusions, rule, extra)
