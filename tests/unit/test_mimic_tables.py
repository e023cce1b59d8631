"""Reading MIMIC-IV: rows and cohort, layouts of the folder, interruption, and tables that are not what they seem."""

import gzip
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clailearn.errors import InputError
from replication.datasets import mimic_iv
from replication.datasets.files import matching
from replication.datasets.mimic_iv import tables
from replication.datasets.mimic_iv.tables import connect, locate
from replication.datasets.miniature.icu import write_tables
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain, prepare
from support.loopback import entry
from support.repository import SOURCES
from support.ward import MIMIC, small_ward


def prepared(folder: Path, out: Path, dataset: str = "mimic-iv", **changes: Any) -> Prepared:
    raw = obtain(dataset, entry("mimic_iv", path=str(folder)), SOURCES, out, False)
    prepare(raw, out, MIMIC | changes, 0)
    return load(out)


def mimic(ward_rows: dict[str, Any], tmp_path: Path, **changes: Any) -> Prepared:
    write_tables(tmp_path / "mimic", ward_rows)
    return prepared(tmp_path / "mimic", tmp_path / "prepared", **changes)


def test_hourly_means_labels_and_fahrenheit(tmp_path: Path) -> None:
    ward = small_ward()
    ward.chart(1, 3.4, 220045, 103)  # with 83 in the same hour
    ward.chart(1, 4.4, 220045, 9999)
    data = mimic(ward.rows, tmp_path)
    x, y = np.asarray(data["x_all"]), np.asarray(data["y_all"])
    groups, hours = np.asarray(data["groups_all"]), np.asarray(data["hours_all"])
    first = groups == 101
    assert x[first][3, 0] == 93
    assert x[first][4, 0] == 84
    assert x[first][0, 2] == pytest.approx((98.7 - 32) / 1.8, abs=1e-4)
    assert np.isnan(x[first][1, 2])
    septic = hours[(groups == 106) & (y == 1)]
    assert list(septic) == list(range(14, 40)), "from six hours before SOFA rises at 20"
    assert not y[first].any()
    reasons = {e["reason"]: e["count"] for e in data.info["exclusions"]}
    assert reasons["values of HR outside 20 to 300"] == 1


def test_cohort_rules_leave_out_and_count_step_by_step(tmp_path: Path) -> None:
    ward = small_ward()
    ward.stay(20, age=17)
    ward.stay(21, hours=4)
    ward.stay(22, patient=1, begin=500)
    ward.stay(23, hours=120)
    ward.stay(24)  # an onset in the first hour
    ward.lab(24, 0.5, 51265, 80)
    ward.culture(24, 0.5)
    ward.drug(24, 2)
    ward.rows["icu/icustays"].append(ward.rows["icu/icustays"][0] | {"subject_id": 999, "stay_id": 1099})
    data = mimic(ward.rows, tmp_path, cohort="sepsis_only")
    reasons = {e["reason"]: e["count"] for e in data.info["exclusions"]}
    assert reasons["stays of patients younger than 18 years"] == 1
    assert reasons["stays shorter than 6 hours"] == 1
    assert reasons["later stays of the same patient"] == 1
    assert reasons["hours after hour 100 of a stay"] == 20
    assert reasons["stays with an onset before hour 2"] == 1
    flow = [(step["step"], step["n"]) for step in data.info["flow"]]
    assert flow[0] == ("ICU stays in the tables", 14)
    assert flow[1] == ("after leaving out stays of patients whom hosp/patients does not have", 13)
    assert [n for _, n in flow] == sorted([n for _, n in flow], reverse=True)
    assert flow[-1] == ("after leaving out stays without an onset of sepsis", 4)
    assert flow[0][1] - sum(e["count"] for e in data.info["exclusions"] if "left" in e) == 4
    assert set(np.unique(data["groups_all"])) == {105, 106, 107, 108}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows["hosp/patients"].append(rows["hosp/patients"][2]), "hosp/patients: found 1 rows whose subject_id"),
        (lambda rows: rows["hosp/patients"][2].update(anchor_age=""), "hosp/patients: found 1 stays without an age"),
        (lambda rows: rows["icu/icustays"].extend(2 * rows["icu/icustays"][:1]), "icu/icustays: found 2 rows whose stay_id"),
        (lambda rows: [row.update(outtime="") for row in rows["icu/icustays"]], "found no stay .* stays without an end"),
        (lambda rows: [row.update(anchor_age=9) for row in rows["hosp/patients"]], "found no stay .* younger than 18"),
    ],
)  # fmt: skip
def test_repetitions_and_empty_cohorts_are_refused(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    ward = small_ward()
    change(ward.rows)
    with pytest.raises(InputError, match=message):
        mimic(ward.rows, tmp_path)


# Layouts


@pytest.fixture
def small_tables(tmp_path: Path) -> Path:
    write_tables(tmp_path / "whole", small_ward().rows)
    return tmp_path / "whole"


def test_releases_and_the_demo_are_read_alike(small_tables: Path, tmp_path: Path) -> None:
    """Packed, with other ends of lines, and unpacked as the demo's folder, also from the one above."""
    older, demo = tmp_path / "mimic-iv-2.2", tmp_path / "above" / "mimic-iv-clinical-database-demo-2.2"
    for path in sorted(small_tables.rglob("*.csv.gz")):
        name = path.relative_to(small_tables)
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        for target in (older / name, demo / name.with_suffix("")):
            target.parent.mkdir(parents=True, exist_ok=True)
            table.to_csv(target, index=False, lineterminator="\r\n")
    (demo / "demo_subject_id.csv").write_text("subject_id\n1\n")
    (demo / "hosp" / "d_labitems.csv").write_text("itemid,label\n")
    whole = prepared(small_tables, tmp_path / "a")
    for folder in (older, demo, demo.parent):
        assert prepared(folder, tmp_path / f"p{folder.name}").info["arrays"] == whole.info["arrays"]
    inner = [demo / "mimic-iv-2.2" / file.relative_to(older) for file in older.rglob("*.gz")]
    assert {file.parent.parent for file in locate([*demo.glob("*/*.csv"), *inner]).values()} == {demo}
    with pytest.raises(InputError, match="found 3 copies"):
        locate(matching(tmp_path, mimic_iv.SOURCE.files))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    files = [file for file in write_tables(tmp_path, {}) if file.name != "labevents.csv.gz"]
    with pytest.raises(InputError, match=r"found no hosp/labevents\.csv\.gz"):
        connect(files, tmp_path, 1)


def test_what_the_definition_needs_and_the_tables_lack_is_named(tmp_path: Path) -> None:
    ward = small_ward()
    data = mimic(ward.rows, tmp_path)
    assert {"PaO2", "urine", "vasopressors", "coma scale, eyes", "mechanical ventilation"} <= set(data.info["lacking"])
    assert not {"platelets", "cultures", "antibiotics", "vital sign HR"} & set(data.info["lacking"])
    assert data.info["coverage"]["platelets"] == 8
    assert data.info["coverage"]["cultures"] == 4
    ward.rows["hosp/prescriptions"] = []
    with pytest.raises(InputError, match=r"found no onset of sepsis; the tables have no .*antibiotics"):
        mimic(ward.rows, tmp_path / "b")


def test_the_demo_and_mimic_iv_do_not_pass_for_each_other(
    small_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo's rows may be passed on, those of MIMIC-IV may not."""
    with pytest.raises(InputError, match=r"datasets\.mimic-iv-demo\.path: found other patients than the 100"):
        prepared(small_tables, tmp_path / "a", "mimic-iv-demo")
    with connect([*small_tables.rglob("*.gz")], tmp_path, 1) as database:
        monkeypatch.setattr(tables, "DEMO_PATIENTS", tables.patients_checksum(database))
    with pytest.raises(InputError, match=r"datasets\.mimic-iv\.path: found the 100 patients .* run mimic-iv-demo"):
        prepared(small_tables, tmp_path / "b")
    prepared(small_tables, tmp_path / "c", "mimic-iv-demo")


# Interrupted attempts


def test_what_a_killed_attempt_left_is_removed(small_tables: Path, tmp_path: Path) -> None:
    """Temporary folders hold rows of patients."""
    for name in (".prepared-k1ll_d00", "other"):
        (tmp_path / "out" / name / "scratch" / "spill").mkdir(parents=True)
    prepared(small_tables, tmp_path / "out" / "prepared")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"prepared", "other"}


# Tables that are not what they seem

SECRET = "10009999"


def text(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    """A change of a packed table."""
    return lambda packed: gzip.compress(change(gzip.decompress(packed).decode()).encode())


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("icu/chartevents", text(lambda t: t.replace("valuenum", "wert", 1)), "found no column valuenum among"),
        ("icu/chartevents", text(lambda t: t + f"{SECRET},1,101\n"), r"chartevents.*Line: \d+"),
        ("icu/chartevents", text(lambda t: t.replace(",80,80,", f",80,x {SECRET},", 1)), "chartevents.*not convert.*DOUBLE"),
        ("hosp/labevents", text(lambda t: t.replace(",80,80,", ",80,nan,", 1)), "labevents.*a number is not finite"),
        ("icu/icustays", text(lambda t: t.replace("\n1,", f"\nx{SECRET},", 1)), "icustays"),
        ("hosp/labevents", lambda _: b"", r"labevents\.csv\.gz: found an empty file, expected the table of MIMIC-IV"),
        ("icu/chartevents", lambda packed: packed[:-400], "chartevents"),
    ],
)  # fmt: skip
def test_tables_that_are_not_as_distributed_are_refused_without_showing_a_row(
    small_tables: Path, tmp_path: Path, table: str, change: Callable[[bytes], bytes], message: str
) -> None:
    path = small_tables / f"{table}.csv.gz"
    before = path.read_bytes()
    path.write_bytes(change(before))
    assert path.read_bytes() != before
    with pytest.raises(InputError, match=message) as raised:
        prepared(small_tables, tmp_path / "p")
    assert SECRET not in "".join(traceback.format_exception(raised.value)), "a row of a patient reached the message"
    assert not (tmp_path / "p").exists()


def test_too_little_memory_names_the_key_to_raise_and_blames_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^datasets\.mimic-iv: memory_gb: .*ran out.*Raise it") as raised:
        mimic(small_ward().rows, tmp_path, memory_gb=0.003)
    assert "distributed" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["mimic"]


def test_no_statement_shows_rows_when_it_fails(small_tables: Path, tmp_path: Path) -> None:
    """Not only where files are read: what is made of them fails with their values, too."""
    with connect([*small_tables.rglob("*.gz")], tmp_path, 1) as database:
        database.execute(f"CREATE TABLE chart AS SELECT 1 AS stay_id, 1 AS hour, 220045 AS item, 'x{SECRET}' AS value")
        with pytest.raises(InputError, match="vital signs") as raised:
            mimic_iv.average_vitals(database, {"HR": [20, 300]})
    assert SECRET not in "".join(traceback.format_exception(raised.value))
