"""Arrays of the user: the shape says what they hold, groups stay together, and what does not fit is refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clailearn.errors import InputError
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import Raw, prepare

N = 24
ENTRY: dict[str, Any] = {
    "title": "Own", "classes": ["rest", "task"], "channels": None, "units": "microvolt", "sampling_rate": 100,
    "test_share": 0.25, "validation_share": 0.25,
}  # fmt: skip
ARRAYS: dict[str, Any] = {
    "x": np.random.default_rng(0).normal(size=(N, 2, 50)), "y": np.arange(N) % 2, "groups": np.arange(N) // 3,
}  # fmt: skip


def read_arrays(folder: Path, arrays: dict[str, Any], **changes: Any) -> Prepared:
    prepare(raw_of(folder, arrays), folder / "out", ENTRY | changes, 0)
    return load(folder / "out")


def raw_of(folder: Path, arrays: dict[str, Any]) -> Raw:
    np.savez(folder / "own.npz", **{name: array for name, array in arrays.items() if array is not None})
    return Raw("own", "arrays", "1", folder / "own.npz", ({"file": "own.npz"},), "not stated", "as provided", False)


@pytest.mark.parametrize(
    ("x", "kind", "settings"),
    [
        (ARRAYS["x"], "signals", {"channels": ["C3", "C4"]}),
        ((ARRAYS["x"] + 1e6).astype(">f4"), "signals", {}),
        (np.arange(N * 18).reshape(N, 3, 3, 2).astype(np.uint8), "images", {"sampling_rate": None}),
        (ARRAYS["x"][:, 0].astype(np.float32), "features", {"sampling_rate": None}),
    ],
)
@pytest.mark.parametrize("groups", [ARRAYS["groups"], np.char.add("s", ARRAYS["groups"].astype(str)), None])
@pytest.mark.parametrize("names", [False, True])
def test_arrays_are_prepared_by_their_shape(
    tmp_path: Path, x: Any, kind: str, settings: dict[str, Any], groups: Any, names: bool
) -> None:
    y = np.array(["rest", "task"])[ARRAYS["y"]] if names else ARRAYS["y"]
    data = read_arrays(tmp_path, {"x": x, "y": y, "groups": groups}, **settings)
    assert data.info["kind"] == kind
    assert data.info["classes"] == ["rest", "task"]
    assert sum(part["n"] for part in data.info["splits"].values()) == N
    assert data["x_train"].dtype == (np.uint8 if kind == "images" else np.float32)
    rows = {part.tobytes(): k for k, part in enumerate(x.astype(data["x_train"].dtype))}
    taken = list[int]()
    for split in ("train", "val", "test"):
        found = [rows[np.asarray(part).tobytes()] for part in data[f"x_{split}"]]
        np.testing.assert_array_equal(data[f"y_{split}"], ARRAYS["y"][found])
        taken += found
        if groups is not None:
            np.testing.assert_array_equal(data[f"groups_{split}"], ARRAYS["groups"][found])
    assert sorted(taken) == list(range(N))


def test_samples_that_repeat_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    x = ARRAYS["x"][np.arange(N) // 2 * 2]
    assert read_arrays(tmp_path, ARRAYS | {"x": x, "groups": None}).info["repeated"] == [{"count": N // 2}]
    assert f"{N // 2} samples of x are there before, and may be in two splits" in caplog.text


def test_classes_that_the_entry_names_may_differ_in_capitals(tmp_path: Path) -> None:
    beats = np.array(["A", "a"])[ARRAYS["y"]]
    assert read_arrays(tmp_path, ARRAYS | {"y": beats}, classes=["A", "a"]).info["classes"] == ["A", "a"]


def test_classes_that_the_entry_does_not_name_are_those_found(tmp_path: Path) -> None:
    numbers = np.array(["10", " 9"])[ARRAYS["y"]]
    assert read_arrays(tmp_path, ARRAYS | {"y": numbers}, classes=None).info["classes"] == ["9", "10"]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (ARRAYS["y"], [1, 0]),
        (ARRAYS["y"].astype(str), ["1", "0"]),
        (ARRAYS["y"] * 2 - 1, [1, -1]),
        (ARRAYS["y"] == 1, [True, False]),
        (ARRAYS["y"] == 1, [1, 0]),
    ],
)
def test_numbers_and_truth_values_are_the_classes_that_the_entry_names_so(tmp_path: Path, y: Any, classes: Any) -> None:
    data = read_arrays(tmp_path, ARRAYS | {"y": y}, classes=classes)
    of_group = dict(zip(ARRAYS["groups"][::3], y[::3], strict=True))
    assert data["y_train"][::3].tolist() == [int(of_group[g] == classes[1]) for g in data["groups_train"][::3]]


def test_samples_without_groups_are_divided_by_the_seed(tmp_path: Path) -> None:
    for seed in (0, 1):
        prepare(raw_of(tmp_path, ARRAYS | {"groups": None}), tmp_path / f"{seed}", ENTRY, seed)
    first, second = (load(tmp_path / f"{seed}") for seed in (0, 1))
    for split in ("val", "test"):
        assert not np.array_equal(first[f"x_{split}"], second[f"x_{split}"])


def test_names_of_groups_with_underscores_are_no_numbers(tmp_path: Path) -> None:
    data = read_arrays(tmp_path, ARRAYS | {"groups": np.array(["1_12", "11_2", "3", "4"])[ARRAYS["groups"] % 4]})
    assert sum(part["subjects"] for part in data.info["splits"].values()) == 4


@pytest.mark.parametrize(
    ("arrays", "settings", "message"),
    [
        ({"y": None}, {}, "found the arrays x, groups, expected x, y"),
        ({"x": np.array([{}] * N, dtype=object)}, {}, r"cannot be read .*Object arrays cannot .*expected one \.npz"),
        ({"x": np.zeros((N, 5, 5), np.uint8)}, {}, r"found x as uint8 \(24, 5, 5\), expected images uint8 \(N, height"),
        ({"groups": np.array(["1", "1.0", "2", "3"])[ARRAYS["groups"] % 4]}, {}, "groups: found 1 and 1.0, expected one way"),
        ({"y": np.array(["rest", "Rest", "task"])[np.arange(N) % 3]}, {}, "y: found Rest and rest, expected one way"),
        ({"x": np.where(np.arange(N * 100).reshape(N, 2, 50) == 105, np.nan, 1)}, {}, r"found 'nan' in x at \(1, 0, 5\)"),
        ({"y": ARRAYS["y"][1:]}, {}, r"found y as int64 \(23,\) beside 24 samples"),
        ({"y": ARRAYS["y"] + 1}, {}, "found '2' in y at sample 1, .* one of rest, task, .* from 0 to 1"),
        ({"x": ARRAYS["x"] + 1e9}, {}, "found signals in x that float32 would round .* Subtract the mean"),
        ({"groups": np.where(ARRAYS["groups"] == 1, np.nan, 1)}, {}, "found groups as float64"),
        ({"groups": ARRAYS["groups"] // 4}, {}, "found 2 groups, expected at least 3"),
        ({"y": (ARRAYS["groups"] == 0).astype(int)}, {}, r"the \d groups for \w+: found none of 'task' among"),
        ({"x": ARRAYS["x"].swapaxes(1, 2)}, {"channels": None}, r"found 50 channels of 2 samples in x \(24, 50, 2\), expected"),
        ({}, {"classes": [1, "1"]}, "classes: found 1, 1, expected each name once"),
        ({}, {"channels": ["C3"]}, "found signals with 2 channels or features, but 1 names"),
        ({}, {"sampling_rate": None}, "found signals .* the `sampling_rate` None, .* a rate for signals alone"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, arrays: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"(own\.npz|datasets\.own): {message}"):
        read_arrays(tmp_path, ARRAYS | arrays, **settings)
    assert {p.name for p in tmp_path.iterdir()} == {"own.npz"}
