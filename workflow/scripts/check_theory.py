"""Check the mathematics numerically; write the tidy table of results and the record of the run."""

from pathlib import Path

from replication.experiments.simulations import check_all
from replication.runs.registry import SEEDS
from replication.runs.run import Recorder, RunId, start_job, use_threads, write_records

start_job(snakemake.log[0])
output, settings = snakemake.output, {**snakemake.params.settings, "threads": snakemake.threads}
use_threads(settings["threads"])
# One run checks with all seeds. It has no data.
seeds = SEEDS[:1] if settings["miniature"] else SEEDS
recorder = Recorder(RunId("theory", "checks", seeds[0]), settings, {"files": []}, device="cpu")
check_all(seeds).to_csv(output.found, index=False)
write_records(Path(output.records), [recorder.finish(command=f"snakemake {output.found}")])
