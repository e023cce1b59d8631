"""Check the mathematics numerically and write the tidy table of what was found, with the record of the run."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from clai.experiments.theory import check_all
from clai.runs.identity import RunId
from clai.runs.jobs import start_job
from clai.runs.record import Recorder, write_records

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0])
made = snakemake.output
settings = {**snakemake.params.settings, "threads": snakemake.threads}
torch.set_num_threads(settings["threads"])
first = settings["seeds"][0]  # one run does all of them; there is no data
recorder = Recorder(RunId("theory", "checks", first), settings, {"files": []}, device="cpu")
checks = {name: settings[name] for name in ("parzen", "bound", "floor")}
check_all(checks, settings["seeds"]).to_csv(made.found, index=False)
record = recorder.finish(command=f"snakemake {made.found}")
write_records(Path(made.records).parent, [record])
