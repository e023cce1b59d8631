"""A table of features becomes splits by group as it stands, and what cannot be learned from is named with its place."""

import bz2
import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import torch

from clailearn.errors import InputError
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain, prepare
from replication.models.items import splits_of
from replication.runs.run import RunId
from support.loopback import entry
from support.repository import SOURCES

SETTINGS: dict[str, Any] = {
    "title": "Wards", "label_column": "outcome", "classes": None, "group_column": "patient",
    "feature_columns": "all others", "test_share": 0.3, "validation_share": 0.3,
}  # fmt: skip


def wards() -> pd.DataFrame:
    """Six rows of each of ten patients, two of each outcome; the first feature tells the place of a row."""
    rng, n = np.random.default_rng(0), 60
    return pd.DataFrame(
        {
            "patient": [f"p{i // 6:02d}" for i in range(n)],
            "place": np.arange(n, dtype=float),
            "pulse": rng.normal(80, 9, n).round(2),
            "outcome": np.array(["well", "ill", "worse"])[np.arange(n) % 3],
        }
    )


def prepared(path: Path, out: Path, **changes: Any) -> Prepared:
    raw = obtain("wards", entry("feature_table", path=str(path)), SOURCES, out, False)
    prepare(raw, out, SETTINGS | changes, 0)
    return load(out)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    wards().to_csv(tmp_path / "wards.csv", index=False)
    return tmp_path / "wards.csv"


def test_rows_keep_features_label_and_group_and_no_group_crosses_a_split(csv: Path, tmp_path: Path) -> None:
    data, table = prepared(csv, tmp_path / "out"), wards()
    assert (data.info["kind"], data.info["variables"]) == ("features", ["place", "pulse"])
    assert data.info["classes"] == ["ill", "well", "worse"]
    seen = []
    for split in ("train", "val", "test"):
        rows = data[f"x_{split}"][:, 0].astype(int)
        assert (np.diff(rows) > 0).all(), "in the order of the table"
        np.testing.assert_allclose(data[f"x_{split}"][:, 1], table["pulse"][rows], rtol=1e-6)
        assert [data.info["classes"][k] for k in data[f"y_{split}"]] == list(table["outcome"][rows])
        np.testing.assert_array_equal(data[f"groups_{split}"], rows // 6)
        seen.append(set(rows // 6))
        assert data.info["splits"][split]["groups"] == len(seen[-1])
    assert sum(map(len, seen)) == len(set.union(*seen)) == 10
    assert list(map(len, seen)) == [5, 2, 3]
    assert data.info["normalisation"].keys() == {"train"}
    np.testing.assert_allclose(data.info["normalisation"]["train"]["sd"], data["x_train"].std(0), rtol=1e-4)


def test_parquet_and_packed_csv_give_the_arrays_of_csv(csv: Path, tmp_path: Path) -> None:
    packed, parquet = tmp_path / "wards.csv.gz", tmp_path / "wards.parquet"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    duckdb.sql(f"COPY (SELECT * FROM read_csv('{csv}')) TO '{parquet}' (FORMAT parquet)")
    paths = [csv, packed, parquet]
    paths.append(Path(shutil.copy(parquet, tmp_path / "wards*.PARQUET")))  # a sign that stands for others in duckdb
    duckdb.sql(f"COPY (SELECT * FROM read_csv('{csv}') LIMIT 6) TO '{tmp_path}/wards2.PARQUET' (FORMAT parquet)")
    first, *others = (prepared(path, tmp_path / str(n)) for n, path in enumerate(paths))
    for data in others:
        assert data.info["arrays"] == first.info["arrays"]


@pytest.mark.parametrize("name", ["large.csv.gz", "large.parquet"])
def test_a_table_that_unpacks_to_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS a, 2 AS b, 'x' AS y FROM range(1000000)) TO '{tmp_path / name}'")
    monkeypatch.setattr("clailearn.limits.LARGEST_UNPACKED", 1000)
    with pytest.raises(InputError, match=rf"{name}: cannot be read \(ValueError: unpacks to .* expected at most"):
        prepared(tmp_path / name, tmp_path / "out")


def test_the_entry_chooses_columns_and_the_order_of_classes(csv: Path, tmp_path: Path) -> None:
    data = prepared(csv, tmp_path / "out", feature_columns=["pulse"], classes=["well", "ill", "worse"])
    assert data.info["variables"] == ["pulse"]
    assert data["x_train"].shape[1] == 1
    assert data.info["classes"] == ["well", "ill", "worse"]
    assert data["y_train"][:3].tolist() == [0, 1, 2]


def set_cell(row: int, column: str, value: object) -> str:
    """The table with another value in one cell."""
    table = wards().astype(object)
    table.loc[row, column] = value
    return table.to_csv(index=False)


TEXT = wards().to_csv(index=False)
DATES = 1_700_000_000_000 + 1000 * np.random.default_rng(0).permutation(len(wards()))  # which need 64 bits
HEADER, *ROWS = TEXT.splitlines()


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        (set_cell(7, "pulse", "high"), {}, "found 'high' in column 'pulse' at line 9, expected a finite number"),
        (set_cell(7, "pulse", ""), {}, "found nothing in column 'pulse' at line 9, expected a number"),
        (set_cell(7, "pulse", "1e300"), {}, r"found '1e\+300' in column 'pulse' at line 9"),
        (set_cell(3, "patient", None), {}, "found nothing in column 'patient' at line 5"),
        (set_cell(4, "outcome", "dead"), {"classes": ["well", "ill", "worse"]}, "'dead' in column 'outcome' at line 6"),
        ("\n".join([HEADER, *ROWS[:2], "", *ROWS[2:], ""]), {}, "at line 4"),
        (f"{TEXT}p09,1\n", {}, "at line 62"),
        ("\n".join([HEADER, *(f"{n},{row}" for n, row in enumerate(ROWS)), ""]), {}, "cannot be read"),
        ("\n".join([HEADER, ROWS[0], f"{ROWS[1]},1", *ROWS[2:], ""]), {}, "cannot be read"),
        (TEXT.replace("pulse", "place", 1), {}, "found columns 'place' twice"),
        (TEXT, {"feature_columns": ["pulse", "weight"]}, "found no column 'weight' among"),
        (TEXT, {"feature_columns": ["pulse", "outcome"]}, "'outcome' in two of"),
        (wards()[["patient", "outcome"]].to_csv(index=False), {}, "no column beside label and group"),
        (f"{HEADER}\n", {}, "found no row"),
        (wards().assign(outcome=["ill"] * 6 + ["well"] * 54).to_csv(index=False), {}, "found none of 'ill' among"),
        (wards().assign(outcome="well").to_csv(index=False), {}, "found none of another class than 'well'"),
        (set_cell(7, "outcome", " NaN"), {}, "found 'NaN' in column 'outcome' at line 9, expected a value"),
        ('note,' + HEADER + "\n" + "\n".join(f'"a\nb",{row}' for row in ROWS[:7]) + "\nc,,7,8,ill\n", {}, "at line 16"),
        (wards().to_csv(index=False, sep=";", decimal=","), {}, "found ';' between columns, expected ','. Save the table with"),
        (wards().to_csv(), {}, "found '', an index or identifier, expected features. Leave it out"),
        (set_cell(7, "patient", "p\0001"), {}, "column 'patient': found the text 'p.x001', expected one that can be printed"),
        (wards().assign(obs=np.arange(1, 61)).to_csv(index=False), {}, "found 'obs', an index or identifier"),
        (wards().assign(pulse=98.6, date=DATES).to_csv(index=False), {}, "x_train: 'pulse' has the same value"),
        (TEXT.encode("utf-16-le").decode(), {}, "found characters of two bytes, as in UTF-16, expected UTF-8"),
    ],
)  # fmt: skip
def test_an_unusable_table_is_refused_by_place(tmp_path: Path, text: str, changes: Any, message: str) -> None:
    path = tmp_path / "spoilt.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"(spoilt\.csv|datasets\.wards): .*{message}"):
        prepared(path, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_two_tables_is_refused(csv: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_bytes(csv.read_bytes())
    with pytest.raises(InputError, match=r"datasets\.wards\.path: found 2 files in .*, expected one"):
        prepared(tmp_path, tmp_path / "out")


def test_blanks_of_any_kind_around_labels_and_groups_do_not_count(tmp_path: Path) -> None:
    table, rng = wards(), np.random.default_rng(0)
    blanks = np.array(["", " ", "\t", "\u00a0", "\u200b", "\ufeff"])
    for name in ("patient", "outcome"):
        before, after = rng.choice(blanks, (2, len(table)))
        within = rng.choice(blanks[4:], len(table))
        table[name] = before + table[name].str[:1] + within + table[name].str[1:] + after
    table.to_csv(tmp_path / "blanks.csv", index=False)
    wards().to_csv(tmp_path / "wards.csv", index=False)
    data, plain = (prepared(tmp_path / f"{name}.csv", tmp_path / name) for name in ("blanks", "wards"))
    assert data.info["classes"] == ["ill", "well", "worse"]
    assert data.info["arrays"] == plain.info["arrays"]


def test_a_class_that_the_entry_names_is_not_missing(tmp_path: Path) -> None:
    wards().replace("well", "None").to_csv(tmp_path / "wards.csv", index=False)
    data = prepared(tmp_path / "wards.csv", tmp_path / "out", classes=["None", "ill", "worse"])
    assert data.info["splits"]["train"]["counts"][0] > 0


@pytest.mark.parametrize(("first", "step"), [(20240101, 1), (1_700_000_000_000, 1), (0, 1e-46)])
def test_numbers_are_standardised_before_they_are_narrowed(tmp_path: Path, first: int, step: float) -> None:
    wards().assign(place=first + step * np.arange(60)).to_csv(tmp_path / "wards.csv", index=False)
    data = prepared(tmp_path / "wards.csv", tmp_path / "out")
    settings = {"training": {"samples": None}, "normalise_test_separately": False}
    items = splits_of(data, settings, RunId("wards", "clai-m", 0), torch.device("cpu")).train
    batch = items.batch(torch.arange(len(items)), None)[0]
    assert batch.dtype == torch.float32
    assert len(batch[:, 0].unique()) == len(items)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "HTML page": lambda whole: b"<html>not found</html>",
    "cut short": lambda whole: whole[: len(whole) // 2],
    "a byte changed": lambda whole: whole[:40] + bytes([whole[40] ^ 255]) + whole[41:],
    "another encoding": lambda whole: "Größe".encode("utf-16"),
    "a workbook": lambda whole: b"PK\3\4\xff",
    "packed": bz2.compress,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_damaged_table_is_named(tmp_path: Path, suffix: str, damage: str) -> None:
    path = tmp_path / f"wards{suffix}"
    with duckdb.connect() as database:
        database.register("wards", wards())
        database.execute(f"COPY wards TO '{path}'")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(InputError, match=rf"wards{suffix}: (found|cannot be read) ") as refused:
        prepared(path, tmp_path / "out")
    assert damage != "packed" or "found a file packed by bzip2, expected one table" in str(refused.value)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
