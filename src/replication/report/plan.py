"""The runs that the evidence of this machine still needs, and their time as published records tell it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from clai.errors import InputError
from replication.runs.identity import RunId
from replication.runs.record import read_records
from replication.runs.settings import load_settings, merge, read_yaml, runs_of_model, runs_of_study

PUBLISHED, REAL = Path("results/published"), Path("results/real")


class Work(NamedTuple):
    """The runs of a dataset or study: their number, how many are done, and the core-minutes of the others.

    `unknown` runs are in no published record; `core_minutes` leaves them out.
    """

    name: str
    runs: int
    done: int
    core_minutes: float
    unknown: int


def core_seconds(record: Mapping[str, Any]) -> float:
    """Return the processor time of a run and of its evaluation; where it was not recorded, wall time times threads."""
    jobs = [record, *([record["evaluation"]] if "evaluation" in record else [])]
    return sum(
        float(job["cpu_seconds"]) if "cpu_seconds" in job else float(job["wall_seconds"]) * record.get("threads", 1)
        for job in jobs
        if "wall_seconds" in job
    )


def planned(settings: Mapping[str, Any]) -> dict[str, list[RunId]]:
    """Return by dataset or study the runs that `run` and `run_studies` ask for."""
    datasets = {
        name: [run for model in settings["datasets"][name]["models"] for run in runs_of_model(settings, name, model)]
        for name in settings["run"]
    }
    studies = {
        name: runs_of_study(settings, name)
        for name in settings["run_studies"]
        if settings["studies"][name]["dataset"] in datasets
    }
    return datasets | studies


def work(name: str, runs: Iterable[RunId], repository: Path) -> Work:
    """Return what the runs of a dataset or study take, from the mean of published runs of the same model or cell."""
    measured: defaultdict[str, list[float]] = defaultdict(list)
    evidence = repository / PUBLISHED / name / "evidence"
    for record in read_records(evidence) if evidence.exists() else []:
        measured[RunId.parse(record["run"]).model].append(core_seconds(record))
    wanted = list(runs)
    left = [run for run in wanted if not (repository / REAL / str(run) / "metrics.csv").exists()]
    known = [run for run in left if measured[run.model]]
    seconds = sum(sum(measured[run.model]) / len(measured[run.model]) for run in known)
    return Work(name, len(wanted), len(wanted) - len(left), seconds / 60, len(left) - len(known))


def time_left(found: Work) -> str:
    """Return the core-minutes that are left as text: a lower bound where runs have no record, unknown where none has one."""
    left = found.runs - found.done
    if found.unknown and found.unknown == left:
        return "unknown"
    return f"{'at least ' if found.unknown else ''}{found.core_minutes:.1f}"


def plan_text(repository: Path, configfiles: Iterable[Path], cores: int) -> str:
    """Return the plan as text.

    Args:
        repository: folder that holds config.yaml and the results.
        configfiles: the user's own settings, as for Snakemake.
        cores: that share the work.

    Raises:
        InputError: a setting is wrong, or `cores` is not positive.
    """
    if cores < 1:
        raise InputError(f"--cores: found {cores}, expected a number from 1")
    settings = load_settings(repository, merge(*(read_yaml(file) for file in configfiles)))
    works = [work(name, runs, repository) for name, runs in planned(settings).items()]
    table = pd.DataFrame(works, columns=Work._fields).assign(core_minutes=[time_left(w) for w in works])
    table = table.set_axis(["", "runs", "done", "core-minutes left", "runs without a record"], axis=1)
    hours, unknown = sum(w.core_minutes for w in works) / 60, sum(w.unknown for w in works)
    bound = "At least " if unknown else ""
    lines = [
        table.to_string(index=False),
        "",
        f"{bound}{hours:.1f} core-hours: {hours / cores:.1f} hours on {cores} cores like those of the published runs.",
    ]
    if unknown:
        lines.append(f"This is a lower bound: {unknown} runs have no published record, and no time here.")
    lines.append("Preparation, figures, comparisons and the benchmark come on top.")
    return "\n".join(lines) + "\n"
