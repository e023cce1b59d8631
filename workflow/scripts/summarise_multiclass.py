"""Compare all models of a dataset of samples, and project its test embeddings: t-SNE for both kernels, and stages."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replication.datasets import prepared
from replication.experiments.projections import project
from replication.metrics.comparisons import Predicted, compare_models
from replication.models.base import create
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
inputs, output, settings = snakemake.input, snakemake.output, snakemake.params.settings
data = prepared.load(Path(inputs.prepared).parent)
y = np.asarray(data["y_test"])
# The epochs of a sleeper resemble each other; images stand for themselves.
groups = np.asarray(data["groups_test"]) if "groups_test" in data.info["arrays"] else np.arange(len(y))
predicted: dict[str, dict[int, Predicted]] = {}
for path in inputs.predictions:
    run_id = RunId.parse(path)
    with np.load(path, allow_pickle=False) as arrays:
        predicted.setdefault(run_id.model, {})[run_id.seed] = Predicted(arrays["probability"], arrays["calibrated"])
compare_models(y, groups, predicted).to_csv(output.comparisons, index=False, float_format="%.6g")

embedded = [Path(path) for path in inputs.embedded]
runs = [Run.open(inputs.prepared, settings, RunId.parse(path)) for path in embedded]
tsne, stages = project(
    (run, create(run.model).load(run, path.with_name("model.safetensors")).kernel, load_embedded(path)["test"])
    for run, path in zip(runs, embedded, strict=True)
)
# gzip writes the time into its header unless told not to
compression = {"method": "gzip", "mtime": 0}
tsne.to_csv(output.tsne, index=False, float_format="%.3f", compression=compression)
stages.to_csv(output.stages, index=False, float_format="%.4f", compression=compression)
