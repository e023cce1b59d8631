"""Show test images beside the references that vote for and against their predicted class."""

from pathlib import Path

from clailearn.model import load
from replication.datasets import prepared
from replication.experiments.packing import vote_pictures
from replication.runs.run import start_job, use_threads

start_job(snakemake.log[0])
use_threads(snakemake.threads)
model = load(Path(snakemake.input.record).parent)
data = prepared.load(Path(snakemake.input.prepared).parent)
frame = vote_pictures(model, data, model.record["record"]["seed"])
# gzip writes the time into its header unless told not to
frame.to_csv(snakemake.output[0], index=False, float_format="%.5f", compression={"method": "gzip", "mtime": 0})
