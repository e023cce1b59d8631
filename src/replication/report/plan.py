"""The runs that the evidence of this machine still needs, and their time as published records tell it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from replication.report.evidence import run_cell, run_name
from replication.runs.outputs import available, left_out, result_file
from replication.runs.registry import read_yaml
from replication.runs.run import RunId, records_of
from replication.runs.settings import runs_of_model, runs_of_study

PUBLISHED, REAL = "results/published", "results/real"
PROFILE = "profiles/slurm/config.yaml"


def runs_left(repository: Path, settings: Mapping[str, Any]) -> list[RunId]:
    """Return the runs that evidence=real asks for and that are not finished."""
    runs: list[RunId] = []
    for name in available(REAL, settings):
        if name in settings["studies"]:
            runs += runs_of_study(settings, name)
        elif name in settings["datasets"]:
            models = settings["datasets"][name]["models"]
            runs += [run for model in models for run in runs_of_model(settings, name, model)]
    return [run for run in runs if not (repository / REAL / str(run) / result_file(settings, run.name)).exists()]


def hours(record: Mapping[str, Any]) -> float:
    """Return the processor hours of a run and its evaluation."""
    return sum(part["cpu_seconds"] for part in (record, record.get("evaluation")) if part) / 3600


def plan_text(repository: Path, settings: Mapping[str, Any]) -> str:
    """Return the runs that are left and their hours, by the mean of the published runs of their model, as text."""
    left = runs_left(repository, settings)
    names = dict.fromkeys(run.name for run in left)
    folders = [repository / PUBLISHED / name / "evidence" for name in names]
    records = [record for folder in folders if folder.is_dir() for record in records_of(folder)]
    rows = [(run_name(record), run_cell(record), hours(record)) for record in records]
    known = pd.DataFrame(rows, columns=["name", "cell", "hours"])
    mean = known.groupby(["name", "cell"])["hours"].mean()
    frame = pd.DataFrame([(run.name, mean.get((run.name, run.cell))) for run in left], columns=["name", "hours"])
    by_name = frame.astype({"hours": float}).groupby("name", sort=False)["hours"]
    runs, known_time = by_name.size(), by_name.count()
    table = pd.DataFrame({"runs": runs, "core-hours": by_name.sum(), "of unknown time": runs - known_time})
    unknown = int(table["of unknown time"].sum())
    total = f"{len(left)} runs are left: {'at least ' if unknown else ''}{table['core-hours'].sum():.1f} core-hours"
    lines = [table.to_string(float_format="{:.1f}".format), ""] if left else []
    lines.append(f"{total} on machines like those of the published runs.")
    if unknown:
        lines.append(f"{unknown} of them have no published run of their model, and no time here.")
    lines.append("Preparation, controls, comparisons and the benchmark come on top.")
    lines += [f"Left out: {name}, which needs {settings['datasets'][name]['needs']}." for name in left_out(settings)]
    resources = read_yaml(repository / PROFILE)["default-resources"]
    if unset := [name for name in ("slurm_partition", "slurm_account") if name not in resources]:
        lines.append(f"{PROFILE} sets no {' and no '.join(unset)}: Slurm takes its defaults.")
    return "\n".join(lines) + "\n"
