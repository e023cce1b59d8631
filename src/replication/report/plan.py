"""The runs that the evidence of this machine still needs, and their time as tracked records tell it."""

import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.report.evidence import run_cell, run_name
from replication.runs.outputs import available, left_out, result_file, runs_of_models
from replication.runs.registry import MODELS, read_json
from replication.runs.run import RunId, records_of
from replication.runs.settings import runs_of_study

PUBLISHED = "results/published"
COSTS = "paper_figures/afternoon_costs.csv"
"""The tracked cost of the runs of an afternoon, whose own records are not tracked."""


def runs_of(settings: Mapping[str, Any]) -> list[RunId]:
    """Return the runs that this use of the pipeline asks for."""
    runs: list[RunId] = []
    for name in available(f"results/{settings['use']}", settings):
        if name in settings["studies"]:
            runs += runs_of_study(settings, name)
        elif name in settings["datasets"]:
            runs += runs_of_models(settings, name, MODELS)
    return runs


def runs_left(repository: Path, settings: Mapping[str, Any]) -> list[RunId]:
    """Return those of them that are not finished."""
    results = repository / "results" / settings["use"]
    return [run for run in runs_of(settings) if not (results / str(run) / result_file(settings, run.name)).exists()]


def hours(record: Mapping[str, Any]) -> float:
    """Return the processor hours of a run and its evaluation."""
    return sum(part["cpu_seconds"] for part in (record, record.get("evaluation")) if part) / 3600


def costs(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return by name and cell the number of runs, and the mean processor hours of one."""
    rows = [(run_name(record), run_cell(record), hours(record)) for record in records]
    frame = pd.DataFrame(rows, columns=["name", "cell", "hours"])
    return frame.groupby(["name", "cell"], sort=False)["hours"].agg(runs="size", hours="mean").reset_index()


def _known(repository: Path, settings: Mapping[str, Any], names: Iterable[str]) -> pd.DataFrame:
    """Return the tracked costs of the runs of these names; those of a GPU say nothing of a processor's time."""
    if settings["use"] == "afternoon" and (repository / COSTS).exists():
        return pd.read_csv(repository / COSTS)
    folders = [repository / PUBLISHED / name / "evidence" for name in names]
    records = (record for folder in folders if folder.is_dir() for record in records_of(folder))
    return costs(record for record in records if record["device"] == "cpu")


def _left(repository: Path, settings: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Return by name the runs that are left and their hours, by the mean of the tracked runs of their model; and their sum.

    Hours are those of this machine once it has finished runs: the tracked ones times the ratio of both in these.
    """
    every, left = runs_of(settings), runs_left(repository, settings)
    known = _known(repository, settings, dict.fromkeys(run.name for run in every))
    cells = zip(known["name"], known["cell"], strict=True)
    mean = dict(zip(cells, known["hours"].astype(float), strict=True))
    scale = _scale(repository / "results" / settings["use"], [run for run in every if run not in left], mean)
    rows = [(run.name, mean.get((run.name, run.cell), np.nan) * (scale or 1)) for run in left]
    frame = pd.DataFrame(rows, columns=["name", "hours"])
    by_name = frame.groupby("name", sort=False)["hours"]
    runs, known_time = by_name.size(), by_name.count()
    table = pd.DataFrame({"runs": runs, "core-hours": by_name.sum(), "of unknown time": runs - known_time})
    unknown = int(table["of unknown time"].sum())
    machine = "this machine" if scale else "machines like those of the tracked runs"
    total = f"{len(left)} runs are left: {'at least ' if unknown else ''}{table['core-hours'].sum():.1f} core-hours"
    return table, f"{total} on {machine}."


def plan_text(repository: Path, settings: Mapping[str, Any]) -> str:
    """Return the runs that are left and their hours as text, and what is left out."""
    table, total = _left(repository, settings)
    unknown = int(table["of unknown time"].sum())
    lines = [*([table.to_string(float_format="{:.1f}".format), ""] if len(table) else []), total]
    if unknown:
        lines.append(f"{unknown} of them have no tracked run of their model, and no time here.")
    lines.append("Preparation, controls, comparisons and the benchmark come on top.")
    lines += [f"Left out: {name}, which needs {settings['datasets'][name]['needs']}." for name in left_out(settings)]
    return "\n".join(lines) + "\n"


def tell_hourly(repository: Path, settings: Mapping[str, Any], seconds: float = 3600) -> threading.Event:
    """Say on standard error each hour how many runs and hours are left, until the event that is returned, or the process ends."""
    end = threading.Event()

    def tell() -> None:
        while not end.wait(seconds):
            print(_left(repository, settings)[1], file=sys.stderr)

    threading.Thread(target=tell, daemon=True).start()
    return end


def _scale(results: Path, finished: Sequence[RunId], mean: Mapping[tuple[str, str], float]) -> float | None:
    """Return how many times as long as the tracked runs those took that this machine has finished, if there are any."""
    took = expected = 0.0
    for run in finished:
        files = [results / str(run) / name for name in ("run.json", "evaluation.json")]
        if files[0].exists() and (run.name, run.cell) in mean:
            records = [read_json(file) for file in files if file.exists()]
            if records[0]["device"] == "cpu":
                took += sum(map(hours, records))
                expected += mean[run.name, run.cell]
    return took / expected if expected else None
