"""Verification: agreement where nothing was changed, and each change is found and named."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from replication.report.evidence import Evidence
from replication.report.verify import Agreement, compare, summary, verify_claims, verify_dataset, verify_model
from replication.runs.run import RunId
from support.predictions import write_predicted_evidence

EXPECTED = {"pathmnist": {"title": "PathMNIST", "needs": "a download"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_predicted_evidence(tmp_path / "published")


def verified(folder: Path) -> pd.DataFrame:
    return verify_dataset(evidence_of(folder), "pathmnist")[0]


def evidence_of(folder: Path) -> Evidence:
    return Evidence.found(folder.parents[1], EXPECTED)


def test_every_metric_and_interval_is_computed_again_and_agrees(folder: Path) -> None:
    numbers = verified(folder)
    assert set(numbers["agreement"]) <= {Agreement.EQUAL, Agreement.WITHIN}
    names = numbers.loc[numbers["source"] == "pathmnist/metrics.csv", "name"]
    published = pd.read_csv(folder / "metrics.csv")
    assert len(names) == (published["metric"] != "temperature").sum() > 0, "the temperature needs validation samples"
    exact = numbers["name"].str.contains("accuracy|f1|kappa") & numbers["source"].str.endswith("metrics.csv")
    assert (numbers.loc[exact, "agreement"] == Agreement.EQUAL).all()
    assert (numbers["source"] == "pathmnist/comparisons.csv").sum() == 7 * (6 + 2 * 6), "a pair and two models alone"
    assert "0 of which differ" in summary(numbers)


def test_a_changed_score_and_a_model_without_predictions_are_found(folder: Path) -> None:
    path = folder / "predictions_clai-m.parquet"
    frame = duckdb.read_parquet(str(path)).df()
    scores = [name for name in frame if name.startswith("score_")]
    frame.loc[0, scores] = np.roll(frame.loc[0, scores], 1)  # of one sample the class with the largest score changes
    duckdb.from_df(frame).write_parquet(str(path))
    (folder / "predictions_cross-entropy.parquet").unlink()
    numbers = verified(folder)
    different = set(numbers.loc[numbers["agreement"] == Agreement.DIFFERS, "name"])
    assert {"clai-m, 0, printed, population, accuracy", "cross-entropy, 0, accuracy"} <= different


def test_rows_that_the_published_metrics_have_lost_are_found(folder: Path) -> None:
    metrics = pd.read_csv(folder / "metrics.csv")
    metrics[metrics["cell"] != "cross-entropy"].to_csv(folder / "metrics.csv", index=False)
    lost = verified(folder).query("published == 'missing'")
    assert set(lost["agreement"]) == {Agreement.DIFFERS}
    assert lost["name"].str.startswith("cross-entropy, 0, ").any()


def test_a_changed_verdict_is_found_and_named() -> None:
    tracked = [{"id": "1", "outcome": "reproduced", "qualifier": "", "note": ""}]
    assert list(verify_claims(tracked, tracked)["agreement"]) == [Agreement.EQUAL]
    (row,) = verify_claims(tracked, [tracked[0] | {"qualifier": "on a substitute"}]).to_dict("records")
    found = "verdict 1", "reproduced, on a substitute", Agreement.DIFFERS
    assert (row["name"], row["here"], row["agreement"]) == found
    assert verify_claims(tracked, [])["here"].item() == "missing"


def test_nan_agrees_with_nan_alone() -> None:
    nan = float("nan")
    assert compare(nan, nan, 0) == Agreement.EQUAL
    assert compare(nan, 1.0, 1e9) == compare(1.0, nan, 1e9) == Agreement.DIFFERS


def test_a_published_model_must_have_its_accuracy_to_the_last_image(folder: Path) -> None:
    metrics = evidence_of(folder).metrics("pathmnist")
    run = RunId("pathmnist", "clai-m", 1)
    own = pd.read_csv(folder / "metrics.csv").query("cell == 'clai-m' and seed == 1")
    assert verify_model(run, metrics, own, same_precision=True)["agreement"].item() == Agreement.EQUAL
    own.loc[own["metric"] == "accuracy", "value"] += 2 / 3000
    assert verify_model(run, metrics, own, same_precision=True)["agreement"].item() == Agreement.DIFFERS
    assert verify_model(run, metrics, own, same_precision=False)["agreement"].item() == Agreement.WITHIN
