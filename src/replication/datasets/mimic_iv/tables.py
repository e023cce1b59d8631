"""The csv.gz tables of MIMIC-IV as views of a DuckDB database, the errors of its statements, and whose patients they have."""

import glob
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from clailearn.errors import InputError, kind_of
from replication.datasets.sources import Raw

# The columns that are read of each table; releases differ in the others.
TABLES = {
    "hosp/patients": "subject_id anchor_age anchor_year",
    "hosp/labevents": "subject_id specimen_id charttime itemid value valuenum",
    "hosp/microbiologyevents": "subject_id chartdate charttime",
    "hosp/prescriptions": "subject_id starttime stoptime drug route",
    "icu/icustays": "subject_id stay_id intime outtime",
    "icu/chartevents": "stay_id charttime itemid value valuenum",
    "icu/inputevents": "stay_id starttime endtime itemid rate rateuom patientweight statusdescription",
    "icu/outputevents": "stay_id charttime itemid value",
}
CSV = """delim = ',', quote = '"', escape = '"'"""
# Items of icu/chartevents for each vital sign; FAHRENHEIT is in degrees Fahrenheit.
VITALS = {
    "HR": (220045,),
    "O2Sat": (220277,),
    "Temp": (223761, 223762),
    "SBP": (220050, 225309, 220179),
    "MAP": (220052, 225312, 220181),
    "DBP": (220051, 225310, 220180),
    "Resp": (220210, 224690),
}
HEART_RATE, FAHRENHEIT = 220045, 223761
DEMO = "mimic-iv-demo"
DEMO_PATIENTS = "sha256:d8fbf1dba4534445e7c41921ec97fc2d9c8bb78a664700ede29884b0facf533e"
"""Checksum of the sorted subject_id of the demo's 100 patients, one a line."""


def locate(files: Sequence[Path]) -> dict[str, Path]:
    """Return the file of each table, the packed one of two; raise InputError for a missing table, or several copies of all."""
    root, *others = sorted({file.parent.parent for file in files})
    if beside := [other for other in others if not other.is_relative_to(root)]:
        raise InputError(f"found {len(beside) + 1} copies ({', '.join(map(str, (root, *beside)))}); set `path` to one")
    own = sorted(file for file in files if file.parent.parent == root)
    found = {f"{file.parent.name}/{file.name.partition('.')[0]}": file for file in own}
    if missing := [f"{table}.csv.gz" for table in TABLES if table not in found]:
        raise InputError(f"{root}: found no {', '.join(missing)}; expected MIMIC-IV with its folders hosp/ and icu/")
    return found


def header(path: Path) -> list[str]:
    """Return the column names of a table; raises InputError when it cannot be read."""
    import pandas as pd

    with path.open("rb") as file:
        head = file.read(64)
    if not head.strip() or head.lstrip()[:1] == b"<":  # Other contents are not shown.
        raise InputError(f"{path}: found {kind_of(head.strip())}, expected the table of MIMIC-IV. Replace the file.")
    try:
        return [str(name) for name in pd.read_csv(path, nrows=0, index_col=False)]
    except (ValueError, OSError, EOFError, zlib.error) as error:  # The text of an error may quote rows of patients.
        raise InputError(f"{path}: cannot be read as a table ({type(error).__name__}). Replace the file.") from None


def connect(files: Sequence[Path], scratch: Path, memory_gb: float) -> DuckDBPyConnection:
    """Open a database in `scratch` with a view on each table, named as its file, with text in every column."""
    database = duckdb.connect(str(scratch / "mimic.duckdb"))
    # With one thread the order of summation, and so the last bit of an hourly mean, does not vary.
    database.execute(f"SET memory_limit = '{memory_gb}GB'; SET threads = 1; SET temp_directory = '{scratch}/spill'")
    database.execute("""
        CREATE MACRO number(entry) AS CASE WHEN entry IS NULL THEN NULL
            WHEN isfinite(CAST(entry AS DOUBLE)) THEN CAST(entry AS DOUBLE) ELSE error('a number is not finite') END;
        CREATE MACRO hour_of(time, start) AS CAST(floor(epoch(CAST(time AS TIMESTAMP) - start) / 3600) AS INTEGER)
    """)
    for table, file in locate(files).items():
        columns = header(file)
        if missing := [name for name in TABLES[table].split() if name not in columns]:
            # Those that are there are not shown: without its header, a table begins with the row of a patient.
            found = f"found no column {', '.join(missing)} among {len(columns)}"
            raise InputError(f"{file}: {found}, expected the table of MIMIC-IV as distributed. Replace the file.")
        types = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': 'VARCHAR'" for name in columns)
        path = glob.escape(str(file)).replace("'", "''")
        with executing(str(file)):
            database.execute(f"""
                CREATE VIEW {table.partition("/")[2]} AS SELECT * FROM
                    read_csv('{path}', header = true, auto_detect = false, columns = {{{types}}}, {CSV})
            """)
    return database


@contextmanager
def executing(what: str) -> Iterator[None]:
    """Turn errors of the database into InputErrors, without its message, which quotes rows of patients."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        # The database reports a full disk as lack of memory, too.
        if re.search("No space left|max_temp_directory_size", text):
            found = "no room on the disk for the database, which is beside the prepared data"
            raise InputError(f"{what}: {found}. Free disk space there and run again; nothing was left.") from None
        if isinstance(error, duckdb.OutOfMemoryException):
            found = f"the database ran out of this memory at {what}"
            raise InputError(f"memory_gb: {found}. Raise it as far as the machine allows, and run again.") from None
        parts = [type(error).__name__]
        parts += re.findall(r"on Line: \d+|Expected Number of Columns: \d+ Found: \d+", text)
        parts += re.findall(r"Could not convert string|a number is not finite|not a valid", text)
        parts += re.findall(r"\bto (?:DOUBLE|INT\d+|BIGINT|TIMESTAMP)\b", text)[:1]
        found = f"found what is not a table of MIMIC-IV as distributed ({', '.join(dict.fromkeys(parts))})"
        raise InputError(f"{what}: {found}. Replace the file; its rows are not shown here.") from None


def count(database: DuckDBPyConnection, sql: str, what: str = "the stays and their events") -> int:
    """Return the one number that a query of `what` gives."""
    with executing(what):
        return int(database.execute(sql).fetchall()[0][0])


def texts(values: Sequence[int | str]) -> str:
    """Return the values as SQL texts, separated by commas."""
    return ", ".join(f"'{value}'" for value in values)


def patients_checksum(database: DuckDBPyConnection) -> str:
    with executing("hosp/patients"):
        rows = database.execute("SELECT CAST(subject_id AS BIGINT) AS id FROM patients ORDER BY id").fetchall()
    return "sha256:" + hashlib.sha256("".join(f"{row[0]}\n" for row in rows).encode()).hexdigest()


def check_patients(database: DuckDBPyConnection, raw: Raw) -> None:
    """Raise InputError when the demo's patients pass for MIMIC-IV, or others, whose data are not open, for the demo's."""
    demo = patients_checksum(database) == DEMO_PATIENTS
    if demo and raw.access.startswith("credentialed"):
        found, right = f"the 100 patients of the open demo in {raw.path}, expected MIMIC-IV", DEMO
    elif not demo and raw.access.startswith("open"):
        found, right = f"other patients than the 100 of the open demo in {raw.path}, expected these alone", "mimic-iv"
    else:
        return
    remedy = f"Set datasets.{right}.path to this folder and run {right}, or correct the path."
    raise InputError(f"datasets.{raw.dataset}.path: found {found}, as rows of MIMIC-IV may not be passed on. {remedy}")
