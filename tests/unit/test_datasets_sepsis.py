"""Sepsis sources: labels, ranges and folds, and what is known at an hour of a recording."""

import itertools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from clailearn.errors import InputError
from replication.datasets import recordings
from replication.datasets.files import matching
from replication.datasets.miniature import make
from replication.datasets.prepared import DEVELOPMENT, Prepared, load
from replication.datasets.sources import Raw, obtain, prepare
from support.loopback import entry
from support.ward import CHALLENGE

# Folds


def test_folds_share_the_positive_patients() -> None:
    rng = np.random.default_rng(0)
    patients = rng.integers(0, 60, 150)
    positive = rng.random(150) < 0.3
    folds = recordings.patient_folds(patients, positive, 4, seed=1)
    shares = [positive[folds == k].mean() for k in range(4)]
    assert max(shares) - min(shares) < 0.15


def hours_of(stays: list[tuple[int, int]]) -> recordings.Rows:
    """Recordings of (hours, first positive hour), each of another patient; none is positive where that hour never comes."""
    recording = np.repeat(np.arange(len(stays)), [hours for hours, _ in stays])
    hours = np.concatenate([np.arange(hours) for hours, _ in stays])
    y = (hours >= np.array([first for _, first in stays])[recording]).astype(np.int64)
    x = np.random.default_rng(0).normal(80, 9, (len(y), 1)).astype(np.float32)
    return recordings.Rows(x, y, recording, recording, hours.astype(np.float32))


@pytest.mark.parametrize(
    ("stays", "fold_of", "message"),
    [
        ([(20, 9), (20, 99)], None, "folds: found 1 patients with a positive hour and 1 without one, expected"),
        ([(20, 0), (30, 0)], None, "cohort: found none of 'no sepsis' among 50"),
        ([(20, 99), (30, 99)], None, "cohort: found none of 'sepsis' among 50"),
        ([(20, 0), (20, 0), (20, 9)], [0, 0, 1], "folds: the rows of fold 0: found none of 'no sepsis' among 40"),
        ([(20, 99), (20, 99), (20, 9)], [0, 0, 1], "folds: the rows of fold 0: found none of 'sepsis' among 40"),
        ([(9, 99), (9, 4), (9, 4)], [-1, 0, 1], "development_share: the rows of development patients: found none of 'sepsis'"),
    ],
)  # fmt: skip
def test_a_cohort_without_both_classes_in_all_parts_is_refused_with_its_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: Any, fold_of: list[int] | None, message: str
) -> None:
    settings = {"title": "MIMIC-IV", "cohort": "sepsis_only", "minimum_onset_hours": 6}
    settings |= {"folds": 2, "development_share": None, "variables": {"HR": [1, 299]}}
    counts = [(140, "ICU stays in the tables"), (52, "after leaving out stays under 12 hours"), (51, "with an onset")]
    flow = [{"step": step, "n": n, "unit": "stays"} for n, step in counts]
    rows = hours_of(stays)
    if fold_of is not None:  # drawn so, where -1 is for development
        drawn = np.array(fold_of)
        settings["development_share"] = 0.3 if (drawn < 0).any() else None
        monkeypatch.setattr("replication.datasets.recordings.patient_folds", lambda *_: drawn[drawn >= 0])
        monkeypatch.setattr("replication.datasets.recordings.draw_patients", lambda patients, *_: drawn[patients] < 0)
    raw = Raw("mimic-iv", "mimic_iv", "3.1", tmp_path, (), "", "", False)
    with pytest.raises(InputError, match=rf"datasets\.mimic-iv\.{message}") as refused:
        recordings.write(raw, tmp_path / "prepared", settings, 0, rows, flow=flow)
    assert "The cohort: 140 stays: ICU stays in the tables; 52 stays: after leaving out stays" in str(refused.value)
    assert not (tmp_path / "prepared").exists()


# Challenge 2019


def record(*rows: str, header: str = "HR|Temp|ICULOS|SepsisLabel") -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def test_a_record_is_parsed_with_its_own_hours() -> None:
    content = record("80|NaN|3|0", "81|36.5|4|1")
    rows = recordings.parse("p000007.psv", content, ["HR", "Temp"])
    for written in (b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"), content.replace(b"\n", b"\r")):
        np.testing.assert_array_equal(recordings.parse("p000007.psv", written, ["HR", "Temp"]).x, rows.x)
    np.testing.assert_array_equal(rows.recordings, [7, 7])
    np.testing.assert_array_equal(rows.hours, [3, 4])
    np.testing.assert_array_equal(rows.y, [0, 1])
    np.testing.assert_array_equal(rows.x, np.array([[80, np.nan], [81, 36.5]], dtype=np.float32))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (record("80|36|1"), "cannot be read .*4 names of 3 columns"),
        (record(), "found a header and no hour below it"),
        (record('80|"36|1|0', '80|36"|2|0'), "cannot be read .*could not convert"),
        (record("80|36|1|2"), "found a row without ICULOS from 1, or without SepsisLabel 0 or 1"),
        (record("80|36|1.5|0"), "found a row without ICULOS"),
        (record("80|1|0", header="HR|ICULOS|SepsisLabel"), ".*not one column each of Temp among HR, ICULOS"),
        (record("80|36|1|0|9", header="HR|Temp|ICULOS|SepsisLabel|HR"), ".*not one column each of HR among HR"),
    ],
)
def test_a_malformed_record_or_one_of_another_name_is_named(bad: bytes, message: str) -> None:
    with pytest.raises(InputError, match=rf"p000003\.psv: {message}"):
        recordings.parse("a.zip: p000003.psv", bad, ["HR", "Temp"])
    with pytest.raises(InputError, match="found another name than pNNNNNN"):
        recordings.parse("x.zip: p4.psv", record("80|36|1|0"), ["HR", "Temp"])


@pytest.mark.parametrize("again", [("80|36|2|0",), ("99|NaN|1|1", "80|36|3|0"), ("80|36|4|0",)])
def test_an_hour_that_repeats_or_lacks_is_refused(tmp_path: Path, again: tuple[str, ...]) -> None:
    with zipfile.ZipFile(tmp_path / "training_setA.zip", "w") as archive:
        archive.writestr("p000007.psv", record("80|36|1|0", "80|36|2|0", *again))
    with pytest.raises(InputError, match=r"p000007\.psv: found ICULOS [124] after [12], expected each hour once"):
        recordings.read([tmp_path / "training_setA.zip"], ["HR", "Temp"])


def challenge(folder: Path, out: Path, **changes: Any) -> Prepared:
    raw = obtain("challenge2019", entry("challenge2019"), folder / "sources.csv", folder, True)
    prepare(raw, out, CHALLENGE | changes, 0)
    return load(out)


@pytest.fixture(scope="module")
def challenge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("challenge")
    make("challenge2019", folder)
    return folder


def test_recordings_are_contiguous_with_hours_ascending_and_one_fold(challenge_folder: Path, tmp_path: Path) -> None:
    data = challenge(challenge_folder, tmp_path / "p")
    groups, hours = np.asarray(data["groups_all"]), np.asarray(data["hours_all"])
    same = groups[1:] == groups[:-1]
    assert same.sum() == len(groups) - len(np.unique(groups)), "contiguous"
    assert (np.diff(hours)[same] > 0).all()
    assert (np.diff(data["folds_all"])[same] == 0).all()
    np.testing.assert_array_equal(data["observed_all"], ~np.isnan(data["x_all"]))
    assert hours.min() == 1
    assert (hours[1:][~same] > 1).any(), "ICULOS does not always begin at 1"
    np.testing.assert_array_equal(data["patients_all"], groups)
    assert data.info["normalisation"] == {}, "each run computes its own, from its training rows"


def test_the_positive_cohort_leaves_out_and_counts_the_others(challenge_folder: Path, tmp_path: Path) -> None:
    whole = challenge(challenge_folder, tmp_path / "a")
    positive = challenge(challenge_folder, tmp_path / "b", cohort="sepsis_only")
    left_out = positive.info["exclusions"][0]
    assert left_out["reason"] == "recordings without a positive hour"
    kept = positive.info["splits"]["all"]
    assert kept["recordings"] + left_out["count"] == whole.info["splits"]["all"]["recordings"] == 120
    assert kept["counts"][1] == whole.info["splits"]["all"]["counts"][1]


def development_patients(data: Prepared) -> set[int]:
    return set(np.asarray(data["patients_all"])[np.asarray(data["folds_all"]) == DEVELOPMENT])


def test_development_patients_are_in_no_fold_and_of_both_kinds(challenge_folder: Path, tmp_path: Path) -> None:
    data = challenge(challenge_folder, tmp_path / "p", development_share=0.25)
    patients, folds, y = (np.asarray(data[f"{name}_all"]) for name in ("patients", "folds", "y"))
    drawn, septic = development_patients(data), set(patients[y == 1])
    assert not drawn & set(patients[folds >= 0])
    assert len(drawn & septic) == round(0.25 * len(septic))
    assert len(drawn - septic) == round(0.25 * (120 - len(septic)))
    assert set(folds) == {DEVELOPMENT, 0, 1}
    assert data.info["splits"]["development"]["recordings"] == len(drawn)
    assert "a share of 0.25" in data.info["split_rule"]
    assert not development_patients(challenge(challenge_folder, tmp_path / "none"))


def test_septic_development_patients_are_the_same_in_every_cohort(challenge_folder: Path, tmp_path: Path) -> None:
    """So no choice on them has seen a test patient of another cohort of the same source."""
    whole, septic = (
        development_patients(challenge(challenge_folder, tmp_path / cohort, development_share=0.25, cohort=cohort))
        for cohort in ("all", "sepsis_only")
    )
    assert septic < whole


def test_zips_and_folders_give_the_same_rows_but_not_together(challenge_folder: Path, tmp_path: Path) -> None:
    archive = challenge_folder / "training_setA.zip"
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path)
    records = matching(tmp_path, ["**/p*.psv"])
    a, b = recordings.read([archive], ["HR", "Resp"]), recordings.read(records, ["HR", "Resp"])
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.recordings, b.recordings)
    with pytest.raises(InputError, match=r"record p000001\.psv appears twice"):
        recordings.read([archive, *records], ["HR", "Resp"])


@pytest.mark.parametrize(
    "damage",
    [lambda whole: whole[: len(whole) // 2], lambda whole: whole[:200] + bytes(200) + whole[400:]],
    ids=["cut short", "zeros within"],
)
def test_a_damaged_zip_is_named(challenge_folder: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "training_setA.zip"
    path.write_bytes(damage((challenge_folder / path.name).read_bytes()))
    with pytest.raises(InputError, match=r"training_setA\.zip"):
        recordings.read([path], ["HR", "Resp"])


# What is known at an hour

NAN = np.nan
X = np.array([[NAN, 6], [3, NAN], [NAN, NAN], [5, 10], [NAN, 2], [NAN, NAN], [1, NAN]], dtype=np.float32)
RECORDING, HOURS = np.repeat([7, 9], [4, 3]), np.array([1, 2, 3, 4, 5, 6, 7], dtype=np.float32)


def inputs(x: NDArray[np.float32]) -> pd.DataFrame:
    found = recordings.hourly_inputs(x, RECORDING, HOURS, [1.0, 2.0], [2.0, 4.0])
    return pd.DataFrame(found, columns=recordings.hourly_names(["a", "b"]))


def test_last_value_so_far_and_whether_and_when_it_was_measured() -> None:
    found = inputs(X)
    # Nothing is carried over from the recording before: its second one starts at the training mean.
    assert found["last value: a"].tolist() == [0, 1, 1, 2, 0, 0, 0]
    assert found["last value: b"].tolist() == [1, 1, 1, 2, 0, 0, 0]
    assert found["measured: a"].tolist() == [0, 1, 0, 1, 0, 0, 1]
    np.testing.assert_allclose(found["log hours since measured: a"] * 2, np.log1p([1, 0, 1, 0, 1, 2, 0]), rtol=1e-6)


def test_changes_and_the_hour() -> None:
    found = inputs(X)
    assert found["change over 1 h: a"].tolist() == [0, 1, 0, 1, 0, 0, 0]
    assert found["change over 8 h: a"].tolist() == [0, 1, 1, 2, 0, 0, 0]
    np.testing.assert_allclose(found["hour of the stay"], HOURS / 50 - 1, rtol=1e-6)
    np.testing.assert_allclose(found["log hour of the stay"], np.log1p(HOURS) - 3, rtol=1e-6)


def test_weighted_means_are_those_of_pandas() -> None:
    x = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
    found = inputs(x)
    value = pd.DataFrame((x - [1, 2]) / [2, 4])
    for (column, name), hours in itertools.product(enumerate("ab"), recordings.TIME_SCALES):
        running = value[column].groupby(RECORDING).ewm(alpha=1 - np.exp(-1 / hours), adjust=False)
        np.testing.assert_allclose(found[f"mean over {hours:g} h: {name}"], running.mean(), rtol=1e-4, atol=1e-5)
        deviation = running.std(bias=True)
        np.testing.assert_allclose(found[f"deviation over {hours:g} h: {name}"], deviation, rtol=1e-3, atol=1e-3)
    often = pd.Series([0.0, 1, 0, 1]).ewm(alpha=1 - np.exp(-1 / 2), adjust=False).mean()
    np.testing.assert_allclose(inputs(X)["share measured over 2 h: a"][:4], often, rtol=1e-5)


def test_impossible_values_are_cut() -> None:
    x = X.copy()
    x[1, 0], x[2, 0] = 1e9, -1e9
    last = inputs(x)["last value: a"]
    assert (last.min(), last.max()) == (-6, 6)


def test_limits_of_valid_values_are_valid() -> None:
    x = np.array([[20.0], [19.9], [300.0], [300.1]], dtype=np.float32)
    assert recordings.outside_to_missing(x, {"HR": (20, 300)})[0]["count"] == 2
    assert np.isnan(x[:, 0]).tolist() == [False, True, False, True]


def test_hours_after_two_weeks_count_as_the_last() -> None:
    found = recordings.hourly_inputs(X, RECORDING, HOURS + 334, [1.0, 2.0], [2.0, 4.0])
    np.testing.assert_allclose(found[:, -1], np.minimum(HOURS + 334, 336) / 50 - 1, rtol=1e-6)
