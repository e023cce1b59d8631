"""psv and csv.gz of the sepsis sources: whatever a table holds, it gives rows of numbers and labels, or a message."""

import csv
import gzip
import io
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import strategies as st

from clailearn.errors import InputError
from replication.datasets.mimic_iv import tables
from replication.datasets.miniature import icu
from replication.datasets.prepared import load
from replication.datasets.sources import Raw, prepare
from support.damage import TEXTS, damaged, raw
from support.hostile import OUT, attack
from support.ward import CHALLENGE
from support.ward import MIMIC as WARD


def text_table(rows: list[list[str]]) -> bytes:
    return raw("".join("|".join(row) + "\n" for row in rows))


@st.composite
def altered_cells(draw: st.DrawFn, rows: list[list[str]]) -> list[list[str]]:
    """Return a table with a few cells replaced, and perhaps a row or a column left out or doubled."""
    table = [list(row) for row in rows]
    for _ in range(draw(st.integers(0, 3))):
        at, column = draw(st.integers(0, len(table) - 1)), draw(st.integers(0, len(table[0]) - 1))
        table[at][column] = draw(st.sampled_from(TEXTS))
    at, column = draw(st.integers(0, len(table) - 1)), draw(st.integers(0, len(table[0]) - 1))
    kind = draw(st.sampled_from(("as it is", "no row", "no column", "row twice", "column twice", "short row")))
    if kind == "no row":
        del table[at]
    elif kind == "row twice":
        table.insert(at, table[at])
    elif kind == "short row":
        table[at] = table[at][:column]
    elif kind != "as it is":
        times = 2 if kind == "column twice" else 0
        table = [[*row[:column], *times * row[column : column + 1], *row[column + 1 :]] for row in table]
    return table


# psv


def hours(septic: bool) -> list[list[str]]:
    """Return a record of Challenge 2019: its header and six hours."""
    names, rng = icu.HEADER.split("|"), np.random.default_rng(int(septic))
    rows = [names]
    for hour in range(6):
        known = {"ICULOS": str(hour + 1), "SepsisLabel": str(int(septic and hour > 2))}
        known |= {name: f"{40 + 20 * rng.random():.1f}" for name in ("HR", "O2Sat", "SBP", "MAP", "DBP", "Resp")}
        known["Temp"] = f"{36 + rng.random():.1f}"
        rows.append([known.get(name, "NaN") for name in names])
    return rows


RECORDS = {f"p{number:06d}.psv": text_table(hours(number % 2 == 0)) for number in range(1, 9)}
ONE_RECORD = st.one_of(altered_cells(hours(True)).map(text_table), damaged(RECORDS["p000002.psv"], head=300))


def sepsis(folder: Path, source: str, settings: Mapping[str, Any]) -> None:
    """Prepare recordings, and check that they are in order and labelled 0 or 1."""
    files = ({"file": "/", "checksum": "sha256-tree:"},)
    prepare(Raw("sepsis", source, "1", folder, files, "licence", "as provided", True), folder / OUT, settings, 0)
    data = load(folder / OUT)
    assert set(np.unique(data["y_all"])) <= {0, 1}
    assert np.isfinite(data["hours_all"]).all()
    assert not np.isinf(data["x_all"]).any()
    same = np.diff(data["groups_all"]) == 0
    assert (np.diff(data["hours_all"])[same] >= 0).all()


def test_psv_in_a_folder(tmp_path: Path) -> None:
    attack(
        tmp_path,
        ONE_RECORD.map(lambda content: RECORDS | {"p000002.psv": content}),
        lambda folder: sepsis(folder, "challenge2019", CHALLENGE),
        valid=RECORDS,
        named=("p000002.psv", "datasets.sepsis"),
        cases=1000,
    )


# The csv.gz tables of MIMIC-IV


def small_mimic() -> dict[str, list[list[str]]]:
    """Return the tables of the first stays of the miniature, as rows of cells."""
    with TemporaryDirectory() as temporary:
        written = icu.mimic_iv(Path(temporary), np.random.default_rng(0))
        whole = {
            p.relative_to(temporary).as_posix(): list(csv.reader(io.StringIO(gzip.decompress(p.read_bytes()).decode())))
            for p in written
        }
    stays = {"30000000", "30000043", "30000086", "30000129"}
    subjects = {"10000000", "10000037", "10000074", "10000111"}
    kept = {}
    for name, (header, *rows) in whole.items():
        key, values = ("stay_id", stays) if "stay_id" in header else ("subject_id", subjects)
        at = header.index(key)
        kept[name] = [header, *(row for row in rows if row[at] in values)]
    return kept


MIMIC = WARD | {
    "memory_gb": 0.5, "minimum_hours": 12, "maximum_hours": 336, "minimum_onset_hours": 7, "onset": "challenge2019",
}  # fmt: skip


def packed(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return gzip.compress(raw(text.getvalue()), 1, mtime=0)


def test_tables_of_mimic(tmp_path: Path) -> None:
    mimic = small_mimic()
    whole = {name: packed(rows) for name, rows in mimic.items()}
    used = {f"{table}.csv.gz": columns.split() for table, columns in tables.TABLES.items()}

    def one_table(name: str) -> st.SearchStrategy[dict[str, bytes]]:
        """Return the tables with one altered: its first rows, in the columns that are read."""
        header, *rows = mimic[name]
        cell = st.tuples(st.integers(0, len(rows) - 1), st.sampled_from(used[name]), st.sampled_from(TEXTS))

        def replaced(cells: list[tuple[int, str, str]]) -> bytes:
            table = [list(row) for row in rows]
            for row, column, value in cells:
                table[row][header.index(column)] = value
            return packed([header, *table])

        some = st.one_of(
            st.lists(cell, min_size=1, max_size=3).map(replaced),
            altered_cells([header, *rows[:30]]).map(packed),
            damaged(whole[name], head=40),
        )
        return some.map(lambda content: whole | {name: content})

    def parse(folder: Path) -> None:
        try:
            sepsis(folder, "mimic_iv", MIMIC)
        except InputError as error:
            if re.search(r"[13]0000\d{3}|21\d\d-", str(error)):
                raise AssertionError(f"the message shows the row of a patient: {error}") from None
            raise

    strategy = st.sampled_from(sorted(whole)).flatmap(one_table)
    attack(tmp_path, strategy, parse, valid=whole, named=("datasets.sepsis",), cases=200)
