"""Put the parts of the measurement of time and memory together, and their records into that of one run."""

import json
from pathlib import Path

import pandas as pd

from replication.runs.registry import BENCHMARK_TITLE, read_json
from replication.runs.run import start_job, write_records

start_job(snakemake.log[0])
output, miniature = snakemake.output, snakemake.params.miniature
parts = pd.concat([pd.read_csv(file) for file in snakemake.input.measured])
parts.to_csv(output.measured, index=False, float_format="%.6g")
records = [read_json(file) for file in snakemake.input.records]
together = {
    "hardware": "; ".join(dict.fromkeys(record["hardware"] for record in records)),
    "wall_seconds": round(sum(record["wall_seconds"] for record in records), 2),
    "cpu_seconds": round(sum(record["cpu_seconds"] for record in records), 2),
    "peak_memory_mb": max(record["peak_memory_mb"] for record in records),
    "command": f"snakemake {output.measured}",
}
write_records(Path(output.records), [records[0] | together])
title = BENCHMARK_TITLE + (" (miniature synthetic)" if miniature else "")
description = {"title": title, "miniature": miniature, "source": "random", "files": [], "licence": "generated"}
Path(output.description).write_text(json.dumps(description, indent=1, sort_keys=True) + "\n", encoding="utf-8")
