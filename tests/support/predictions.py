"""Predictions as evaluations leave them, and evidence made from them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from replication.experiments.predictions import Samples, measure_predictions, save_predictions, save_samples
from replication.metrics.intervals import Fitted, Predictions, compare_models
from replication.runs.run import COLUMNS, RunId, gather

TEMPERATURE = 0.4


def multiclass(model: str = "clai-m", seeds: int = 2) -> tuple[Samples, dict[RunId, Predictions]]:
    """Samples of four classes, and the scores of each seed, calibrated by TEMPERATURE."""
    rng = np.random.default_rng(len(model))
    y = np.random.default_rng(1).integers(0, 4, 3000)
    runs = {}
    for seed in range(seeds):
        score = (rng.normal(size=(len(y), 4)) + 2 * np.eye(4)[y]).astype(np.float32) / 4
        parts = (score, softmax(score, axis=1), softmax(score / TEMPERATURE, axis=1))
        single = [part.astype(np.float32) for part in parts]
        runs[RunId("pathmnist", model, seed)] = Predictions(*single, calibration=Fitted(TEMPERATURE))
    return Samples(y, np.arange(len(y))), runs


def recordings() -> tuple[Samples, dict[RunId, Predictions]]:
    """Stays in two folds, a tenth of them septic, and log-odds whose noise the hours of a stay share."""
    rng, stays, hours = np.random.default_rng(0), 240, 30
    stay = np.repeat(np.arange(stays), hours)
    y = ((stay % 10 == 0) & (np.tile(np.arange(hours), stays) >= hours // 2)).astype(np.int64)
    fold = (stay // 10) % 2
    runs = {}
    for number in (0, 1):
        rows = fold == number
        score = (2 * y - 3 + rng.normal(size=stays)[stay] + 0.3 * rng.normal(size=len(y))).astype(np.float32)[rows]
        fitted = Fitted(slope=0.8, intercept=-0.5)
        calibrated = expit(fitted.slope * score + fitted.intercept).astype(np.float32)
        parts = (score, expit(score), calibrated, fitted)
        runs[RunId("challenge2019", "clai-m", 0, number)] = Predictions(*parts)
    return Samples(y, stay, stay, fold), runs


def write_predicted_evidence(root: Path, of_clai_m: int = 3) -> Path:
    """Write evidence of two models on four classes below `root` with metrics, comparisons and predictions; return its folder.

    Args:
        of_clai_m: number of runs of CLaI-M. There are three of cross-entropy.
    """
    folder = root / "pathmnist" / "evidence"
    folder.mkdir(parents=True)
    description = {
        "title": "PathMNIST", "licence": "CC-BY-4.0", "kind": "images", "classes": list("abcd"), "miniature": False,
        "splits": {"train": {"counts": [1, 2, 3, 4]}, "test": {"counts": [750] * 4}},
    }  # fmt: skip
    (folder / "dataset.json").write_text(json.dumps(description))
    tables, both = {}, {}
    for model, seeds in (("clai-m", of_clai_m), ("cross-entropy", 3)):
        samples, runs = multiclass(model, seeds)
        save_samples(folder / "samples.parquet", samples)
        save_predictions(folder / f"predictions_{model}.parquet", runs)
        both[model] = {run.seed: part for run, part in runs.items()}
        for run, part in runs.items():
            metrics = measure_predictions(samples.y, part, recordings=False) | {"temperature": TEMPERATURE}
            reading = {"rule": "printed", "shares": "population"} if model == "clai-m" else {"rule": "", "shares": ""}
            rows = reading | {"metric": list(metrics), "value": list(metrics.values())}
            tables[str(run)] = pd.DataFrame(rows)
    gather(tables, COLUMNS["metrics.csv"]).to_csv(folder / "metrics.csv", index=False)
    comparisons = compare_models(samples.y, samples.group, both, draws=60)
    comparisons.to_csv(folder / "comparisons.csv", index=False, float_format="%.6g")
    return folder
