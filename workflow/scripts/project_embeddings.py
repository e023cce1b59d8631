"""Project the test embeddings of a dataset of samples: t-SNE and stages of a model of CLaI."""

from pathlib import Path

import pandas as pd

from replication.experiments.latent import stages, tsne
from replication.models.base import create
from replication.models.embedding import load_embedded
from replication.models.run import Run
from replication.runs.run import COLUMNS, start_job

start_job(snakemake.log[0])
inputs, output = snakemake.input, snakemake.output
frames = {name: pd.DataFrame(columns=COLUMNS[f"{name}.csv.gz"]) for name in ("tsne", "stages")}
for path in map(Path, inputs.embedded):
    run = Run.for_job(snakemake, path)
    kernel, test = create(run.model).load(run, path.with_name("model.safetensors")).kernel, load_embedded(path)["test"]
    frames = {"tsne": tsne(run, kernel, test), "stages": stages(run, kernel, test)}
for name, digits in (("tsne", 3), ("stages", 4)):
    # gzip writes the time into its header unless told not to
    compression = {"method": "gzip", "mtime": 0}
    frames[name].to_csv(output[name], index=False, float_format=f"%.{digits}f", compression=compression)
