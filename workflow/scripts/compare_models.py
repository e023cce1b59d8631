"""Differences between all models of a multiclass dataset, from the predictions of all runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replication.datasets import prepared
from replication.metrics.comparisons import Predicted, compare_models
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
data = prepared.load(Path(snakemake.input.prepared).parent)
y = np.asarray(data["y_test"])
# The epochs of a sleeper resemble each other; images stand for themselves.
groups = np.asarray(data["groups_test"]) if "groups_test" in data.info["arrays"] else np.arange(len(y))
runs: dict[str, dict[int, Predicted]] = {}
for path in snakemake.input.predictions:
    run = RunId.parse(path)
    with np.load(path, allow_pickle=False) as arrays:
        runs.setdefault(run.model, {})[run.seed] = Predicted(arrays["probability"], arrays["calibrated"])
comparisons = compare_models(y, groups, runs)
comparisons.to_csv(snakemake.output[0], index=False, float_format="%.6g")
