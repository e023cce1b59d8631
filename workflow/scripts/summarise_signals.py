"""Trace the latent signals of one stay, and what all stays say of claim 11."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from clai.datasets import prepared
from clai.experiments.latent_signals import choose_stay, latent_statistics, stay_signals
from clai.experiments.training import load_embedded
from clai.runs.gather import gather, run_name, test_rows
from clai.runs.jobs import start_job

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
settings = snakemake.params.settings["figure4"]
data = prepared.load(Path(snakemake.input.prepared).parent)
shown, statistics = [], {}
for path in [*snakemake.input.embedded, *snakemake.input.latent]:
    run = run_name(path)
    rows = test_rows(data.arrays, run.fold)
    recording, label = rows["groups"].to_numpy(), rows["y"].to_numpy()
    process = Path(path).suffix == ".npz"
    if process:
        latent = np.load(path, allow_pickle=False)
        signals, sd = latent["mean"][:, None], latent["sd"][:, None]
    else:
        signals, sd = load_embedded(path)["test"].z[0].double().numpy(), None
    found = latent_statistics(signals, recording, label)
    if process:
        found = {key: found[key] for key in ("roughness", "n_stays")}
    statistics[path] = pd.DataFrame({"quantity": list(found), "value": list(found.values())})
    if run.fold == 0 and run.seed == min(run_name(p).seed for p in snakemake.input.embedded):
        stay = recording == choose_stay(recording, label, settings)
        stay_sd = None if sd is None else sd[stay]
        frame = stay_signals(signals[stay], stay_sd, rows["hours"].to_numpy()[stay], label[stay])
        shown.append(frame.assign(model=run.model))
columns = ["model", "hour", "signal", "value", "sd", "event"]
pd.concat(shown)[columns].to_csv(snakemake.output.signals, index=False, float_format="%.5g")
gather(statistics, ["model", "seed", "fold", "quantity", "value"]).to_csv(snakemake.output.latent, index=False)
