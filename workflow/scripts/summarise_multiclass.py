"""Compare all models of a dataset of samples, and project its test embeddings: t-SNE and stages of a model of CLaI."""

from pathlib import Path

import pandas as pd

from replication.datasets import prepared
from replication.experiments.predictions import by_model, read_runs, samples_of
from replication.experiments.projections import stages, tsne
from replication.metrics.comparisons import compare_models
from replication.models.base import create
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.columns import COLUMNS
from replication.runs.identity import RunId
from replication.runs.jobs import start_job

start_job(snakemake.log[0])
inputs, output, settings = snakemake.input, snakemake.output, snakemake.params.settings
data = prepared.load(Path(inputs.prepared).parent)
samples = samples_of(data)  # The epochs of a sleeper resemble each other; images stand for themselves.
runs = read_runs(inputs.predictions)
compared = by_model(runs, [run.model for run in runs])
compare_models(samples.y, samples.group, compared).to_csv(output.comparisons, index=False, float_format="%.6g")

frames = {name: pd.DataFrame(columns=COLUMNS[f"{name}.csv.gz"]) for name in ("tsne", "stages")}
for path in map(Path, inputs.embedded):
    run = Run.open(inputs.prepared, settings, RunId.parse(path))
    kernel, test = create(run.model).load(run, path.with_name("model.safetensors")).kernel, load_embedded(path)["test"]
    frames = {"tsne": tsne(run, kernel, test), "stages": stages(run, kernel, test)}
for name, digits in (("tsne", 3), ("stages", 4)):
    # gzip writes the time into its header unless told not to
    compression = {"method": "gzip", "mtime": 0}
    frames[name].to_csv(output[name], index=False, float_format=f"%.{digits}f", compression=compression)
