"""Published predictions: what rounding keeps exactly, what it may change, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from clailearn.calibration import positive_probability
from clailearn.errors import InputError
from replication.experiments.predictions import (
    Samples,
    gather_predictions,
    load_predictions,
    load_samples,
    save_predictions,
    save_samples,
    shared_witnesses,
)
from replication.metrics.classification import binary_metrics, sample_metrics
from replication.metrics.intervals import Fitted, Predictions
from replication.runs.run import RunId
from support.predictions import TEMPERATURE, multiclass, recordings


def stored(folder: Path, samples: Samples, runs: dict[RunId, Predictions], classes: int) -> list[Predictions]:
    """What the files hold after both were written and read."""
    save_samples(folder / "samples.parquet", samples)
    save_predictions(folder / "predictions_clai-m.parquet", runs)
    read = load_samples(folder / "samples.parquet")
    assert np.array_equal(read.y, samples.y)
    assert np.array_equal(read.group, samples.group)
    found = list(load_predictions(folder / "predictions_clai-m.parquet", read, classes))
    assert [name for name, _ in found] == [run.replicate for run in runs]
    return [predictions for _, predictions in found]


def test_classes_are_exact_and_areas_within_a_hundredth_of_a_percent(tmp_path: Path) -> None:
    samples, runs = multiclass()
    for given, kept in zip(runs.values(), stored(tmp_path, samples, runs, 4), strict=True):
        assert np.array_equal(given.score.argmax(1), kept.score.argmax(1))
        before, after = (sample_metrics(samples.y, p, p) for p in (given.probability, kept.probability))
        for metric in ("accuracy", "precision", "f1", "macro_f1", "kappa"):
            assert before[metric] == after[metric]
        assert after["roc_auc"] == pytest.approx(before["roc_auc"], abs=5e-5)
        assert after["ece"] == pytest.approx(before["ece"], abs=5e-4)
        assert np.allclose(kept.calibrated, softmax(given.score / TEMPERATURE, axis=1), atol=2e-3)


def test_f1_is_exact_and_precision_keeps_its_digits(tmp_path: Path) -> None:
    samples, runs = recordings()
    for (run, given), kept in zip(runs.items(), stored(tmp_path, samples, runs, 2), strict=True):
        y = samples.y[samples.rows(run.fold)]
        assert np.array_equal(given.score > 0, kept.score > 0)
        assert kept.calibration == given.calibration
        before, after = (binary_metrics(y, p.score, p.probability, p.calibrated, threshold=0) for p in (given, kept))
        assert before["f1"] == after["f1"]
        for metric in ("auroc", "auprc", "ece", "ece_calibrated", "ece_positive_rate", "brier", "brier_calibrated"):
            assert after[metric] == pytest.approx(before[metric], abs=5e-4)
        assert after["auprc"] == pytest.approx(before["auprc"], abs=1e-4)


def test_predictions_of_other_samples_are_refused(tmp_path: Path) -> None:
    samples, runs = recordings()
    stored(tmp_path, samples, runs, 2)
    fewer = Samples(samples.y[1:], samples.group[1:], samples.recording[1:], samples.fold[1:])  # type: ignore[index]
    with pytest.raises(InputError, match=r"predictions_clai-m\.parquet: found \d+ rows of seed0/fold0, not \d+"):
        list(load_predictions(tmp_path / "predictions_clai-m.parquet", fewer, 2))


def test_files_of_runs_gather_to_the_file_of_all_runs(tmp_path: Path) -> None:
    for number, (_, runs) in enumerate((multiclass(), recordings())):
        sources = [tmp_path / f"{number}-{n}.parquet" for n in range(len(runs))]
        for path, (run, given) in zip(sources, runs.items(), strict=True):
            save_predictions(path, {run: given})
        gather_predictions(tmp_path / "gathered.parquet", sources)
        save_predictions(tmp_path / "whole.parquet", runs)
        assert (tmp_path / "gathered.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_seeds_share_the_witnesses_that_both_name(tmp_path: Path) -> None:
    score, samples = np.zeros((2, 3), dtype=np.float32), Samples(np.array([0, 1]), np.arange(2))
    runs = {
        RunId("study", "full", seed): Predictions(score, score, score, Fitted(1.0), np.array(witnesses))
        for seed, witnesses in enumerate(([[1, 2], [3, 4]], [[2, 1], [5, 6]], [[7, 1], [4, 3]]))
    }
    kept = stored(tmp_path, samples, runs, 3)
    row = shared_witnesses("full", kept)
    assert row is not None
    assert row["value"].tolist() == pytest.approx([(2 / 4 + 3 / 4 + 1 / 4) / 3])
    assert row[["cell", "samples", "seeds"]].to_numpy().tolist() == [["full", 2, 3]]
    assert shared_witnesses("full", kept[:1]) is None


def test_votes_at_and_beyond_one_stay_finite(tmp_path: Path) -> None:
    assert positive_probability(np.array([1 + 1e-7, -1 - 1e-7])).tolist() == [1, 0]
    votes = np.array([-1 - 1e-7, 0.5, 1.0])
    given = Predictions(votes, votes, votes, Fitted(slope=1.0, intercept=0.0, vote=True))
    save_predictions(tmp_path / "p.parquet", {RunId("data", "clai-m", 0): given})
    ((_, found),) = load_predictions(tmp_path / "p.parquet", Samples(np.array([0, 1, 1]), np.arange(3)), 2)
    assert found.score == pytest.approx(votes, abs=1e-5)
