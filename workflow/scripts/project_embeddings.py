"""Project test embeddings to two dimensions: t-SNE for both kernels, and the stages of the conditioning."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch

from clai.datasets import prepared
from clai.experiments.projections import stages, tsne
from clai.experiments.training import build_clai, conditions_of, inputs_of, load_embedded, load_parameters
from clai.runs.gather import run_name
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="tsne.samples")
settings = snakemake.params.settings
torch.set_num_threads(settings["threads"])
data = prepared.load(Path(snakemake.input.prepared).parent)
columns = ["model", "x", "y", "label"]
views, shown = [], pd.DataFrame(columns=["stage", "x", "y", "label"])
for path in snakemake.input.embedded:
    run = run_name(path)
    test = load_embedded(path)["test"]
    trained = build_clai(settings, run.model, inputs_of(data, settings), conditions_of(data.info), run.seed)
    load_parameters(Path(path).with_name("model.safetensors"), torch.nn.ModuleList(trained))
    kernel = trained.kernel
    views.append(tsne(kernel, test.z, test.y.numpy(), settings["tsne"], run.seed).assign(model=run.model))
    if run.model == "clai-m":
        before = data["x_test"].reshape(len(test.y), -1)
        shown = stages(kernel, test.z, before, test.y.numpy(), settings["stages"], run.seed)
# gzip writes the time into its header unless told not to
compression = {"method": "gzip", "mtime": 0}
projected = pd.concat(views)[columns] if views else pd.DataFrame(columns=columns)
projected.to_csv(snakemake.output.tsne, index=False, float_format="%.3f", compression=compression)
shown.to_csv(snakemake.output.stages, index=False, float_format="%.4f", compression=compression)
