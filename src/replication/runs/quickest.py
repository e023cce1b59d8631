"""The quickest run of an evidence, by its records."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from replication.runs.identity import RunId
from replication.runs.record import read_records


def quickest_run(root: Path, datasets: Iterable[str], models: Sequence[str]) -> RunId | None:
    """Return the run with the least wall time, training and evaluation, of models that have several; None without any.

    Args:
        root: folder of the evidence, such as results/published.
        datasets: to choose among; those without records do not count.
        models: to choose among.
    """
    found: list[tuple[float, RunId]] = []
    for dataset in datasets:
        folder = root / dataset / "evidence"
        records = read_records(folder) if (folder / "runs.jsonl").exists() else []
        runs = [RunId.parse(record["run"]) for record in records]
        for run, record in zip(runs, records, strict=True):
            if run.model in models and sum(other.model == run.model for other in runs) > 1:
                seconds = record["wall_seconds"] + record.get("evaluation", {}).get("wall_seconds", 0.0)
                found.append((seconds, run))
    return min(found)[1] if found else None
