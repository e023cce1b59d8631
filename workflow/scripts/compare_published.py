"""Compare tracked verdicts with those of recomputed evidence, and gather all comparisons."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from replication.report.claims.judge import judge
from replication.report.evidence import Evidence
from replication.report.verify import verify_claims
from replication.runs.registry import read_json
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params = snakemake.input, snakemake.params
files = {
    Path(folder).parent.name: {path.name: pd.read_csv(path) for path in Path(folder).glob("*.csv")}
    for folder in sources.recomputed
}
evidence = replace(Evidence.of_files(Path(params.root), params.datasets, sources.evidence), recomputed=files)
tracked = read_json(params.verdicts)["claims"]
parts = [pd.read_csv(path, dtype={"published": str, "here": str}) for path in (*sources.numbers, *sources.models)]
verdicts = verify_claims(tracked, judge(evidence))
pd.concat([*parts, verdicts], ignore_index=True).to_csv(snakemake.output[0], index=False)
