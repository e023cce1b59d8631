"""What is known at an hour of a recording."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.datasets.recordings import hourly_inputs, hourly_names

NAN = np.nan
X = np.array([[NAN, 6], [3, NAN], [NAN, NAN], [5, 10], [NAN, 2], [NAN, NAN], [1, NAN]], dtype=np.float32)
RECORDING, HOURS = np.repeat([7, 9], [4, 3]), np.array([1, 2, 3, 4, 5, 6, 7], dtype=np.float32)


def inputs(x: NDArray[np.float32]) -> pd.DataFrame:
    found = hourly_inputs(x, RECORDING, HOURS, [1.0, 2.0], [2.0, 4.0])
    return pd.DataFrame(found, columns=hourly_names(["a", "b"]))


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
    for column, name in enumerate("ab"):
        running = value[column].groupby(RECORDING).ewm(alpha=1 - np.exp(-1 / 2), adjust=False)
        np.testing.assert_allclose(found[f"mean over 2 h: {name}"], running.mean(), rtol=1e-4, atol=1e-5)
        deviation = running.std(bias=True)
        np.testing.assert_allclose(found[f"deviation over 2 h: {name}"], deviation, rtol=1e-3, atol=1e-3)
    often = pd.Series([0.0, 1, 0, 1]).ewm(alpha=1 - np.exp(-1 / 2), adjust=False).mean()
    np.testing.assert_allclose(inputs(X)["share measured over 2 h: a"][:4], often, rtol=1e-5)


def test_impossible_values_are_cut() -> None:
    x = X.copy()
    x[1, 0] = 1e9
    assert inputs(x)["last value: a"].max() == 6
