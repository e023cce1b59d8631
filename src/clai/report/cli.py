"""The command `clai`: the runs behind the numbers of a rendered output, and the settings of a run."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from clai.errors import InputError
from clai.report.evidence import run_dataset, run_model
from clai.runs.settings import effective_settings, load_settings, merge, read_yaml

KEYS = ("dataset", "model")
"""Columns of an output's CSV that say which runs its rows rest on."""
UNITS = ("seed", "fold")
"""Columns that narrow them down."""
FILES = "files"
"""Column of the claims that names their evidence files, separated by semicolons."""


class Traced(NamedTuple):
    """Rows of an output's CSV, the records of the runs that their numbers rest on, and evidence files without a record."""

    rows: pd.DataFrame
    runs: list[dict[str, Any]]
    unrecorded: Sequence[str] = ()


def beside(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The CSV and the JSON that lie beside any form of a rendered output; raises InputError if they do not."""
    files = path.with_suffix(".csv"), path.with_suffix(".json")
    for file in files:
        if not file.exists():
            raise InputError(
                f"{file} is missing: name a table, a figure or the page of claims, such as paper_figures/table1.tex, whose CSV "
                "and JSON lie beside it"
            )
    return pd.read_csv(files[0]), json.loads(files[1].read_text())


def trace(frame: pd.DataFrame, runs: Sequence[dict[str, Any]]) -> list[Traced]:
    """The rows of an output in groups that rest on the same runs.

    Rows are told apart by dataset, model, seed and fold, as far as there are such columns. Behind a claim, which names its
    evidence files, stand the runs of their folders; in any other output every run stands behind every row. A group without runs
    was computed from something else (class counts) or not at all.
    """
    if FILES in frame:
        return [_claim(frame.iloc[[row]], runs) for row in range(len(frame))]
    keys = [key for key in (*KEYS, *UNITS) if key in frame and frame[key].notna().any()]
    if "dataset" not in keys:
        return [Traced(frame, list(runs))]
    groups = []
    values: Any
    for values, rows in frame.groupby(keys, sort=False, dropna=False):
        wanted = {key: value for key, value in zip(keys, values, strict=True) if pd.notna(value)}
        groups.append(Traced(rows, [run for run in runs if _matches(run, wanted)]))
    return groups


def _claim(row: pd.DataFrame, runs: Sequence[dict[str, Any]]) -> Traced:
    folders = {file: Path(file).parent.parent.name for file in row[FILES].fillna("").item().split("; ") if file}
    behind = [run for run in runs if run_dataset(run) in folders.values()]
    recorded = {run_dataset(run) for run in behind}
    return Traced(row, behind, [file for file, folder in folders.items() if folder not in recorded])


def _matches(run: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    own = {"dataset": run_dataset(run), "model": run_model(run), **{unit: run[unit] for unit in UNITS}}
    return all(own[key] == value for key, value in wanted.items())


def describe(path: Path) -> str:
    """Each number of an output with the runs behind it, then their data, settings and versions."""
    frame, content = beside(path)
    lines = [f"{path}: from results/{content['evidence']}", content["caption"], ""]
    for rows, runs, unrecorded in trace(frame, content["runs"]):
        lines += [*_rows(rows), *(_run(run) for run in runs)]
        lines += [f"    <- {file}: no record of a run" for file in unrecorded]
        if not runs and not unrecorded:
            lines.append("    no run of a model: counts of the data, the paper's text, or not run")
        lines.append("")
    if "printed" in frame:
        lines += ["Column paper: what the paper prints, from workflow/config/printed_values.csv.", ""]
    lines += _common("data", {name: value for run in content["runs"] for name, value in run["data"].items()})
    for key, settings in content["settings"].items():
        lines += _common(f"settings {key}", settings)
    for versions in {json.dumps(run["versions"]): run["versions"] for run in content["runs"]}.values():
        lines += _common("versions", versions)
    return "\n".join(lines).rstrip() + "\n"


def _rows(rows: pd.DataFrame, shown: int = 40) -> list[str]:
    """The rows as they stand in the CSV; of many, such as the points of a scatter plot, the first few and their number."""
    filled = rows.dropna(axis=1, how="all")
    text = filled.head(shown).to_string(index=False, max_colwidth=60, float_format="%.6g").splitlines()
    return text if len(rows) <= shown else [*text, f"({len(rows) - shown} rows more)"]


def _run(run: Mapping[str, Any]) -> str:
    parts = [
        f"commit {run['commit'][:10]}{' with uncommitted changes' if run['dirty'] else ''}",
        f"settings {run['config_hash']}",
        f"seed {run['seed']}" + ("" if run["fold"] is None else f", fold {run['fold']}"),
        f"{run['threads']} threads on {run['device']} ({run['hardware']})",
        f"{run['wall_seconds']:,.0f} s",
        f"{run['peak_memory_mb']:,.0f} MiB",
    ]
    if run["pairs"]:
        parts.append(f"{run['pairs']:.3g} pairs")
    if own := run.get("evaluation"):
        changed = " with uncommitted changes" if own["dirty"] else ""
        parts.append(f"evaluated at commit {own['commit'][:10]}{changed}, settings {own['config_hash']}")
    return f"    <- {run['run']}: {'; '.join(parts)}; {run['command']}"


def _common(title: str, values: Mapping[str, Any]) -> list[str]:
    return [f"{title}:", *(f"    {key}: {json.dumps(value)}" for key, value in values.items()), ""] if values else []


def settings_text(repository: Path, name: str, model: str, configfiles: Sequence[Path] = (), mini: bool = False) -> str:
    """Return the effective settings of a run as YAML.

    Args:
        repository: folder that holds config.yaml.
        name: key of a dataset or a study.
        model: key of a model, or a cell of the study.
        configfiles: files of the user's own settings; later ones win.
        mini: whether to show the run on miniature data.

    Raises:
        InputError: a setting is wrong, or there is no such dataset, study, model or cell.
    """
    overrides = merge(*(read_yaml(file) for file in configfiles))
    shown = effective_settings(load_settings(repository, overrides, mini=mini), name, model)
    return str(yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command `clai`."""
    parser = argparse.ArgumentParser(prog="clai", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    provenance = commands.add_parser("provenance", help="the runs behind each number of a table or figure")
    provenance.add_argument("output", type=Path, help="e.g. paper_figures/table3.tex")
    settings = commands.add_parser("settings", help="the settings of a run, from all files of the configuration")
    settings.add_argument("name", metavar="dataset", help="a dataset or a study, e.g. cifar10")
    settings.add_argument("model", help="a model of the dataset or a cell of the study, e.g. clai-m")
    settings.add_argument("--configfile", type=Path, nargs="+", default=[], help="your own settings, as for Snakemake")
    settings.add_argument("--mini", action="store_true", help="the run on miniature data")
    parsed = parser.parse_args(arguments)
    try:
        if parsed.command == "settings":
            sys.stdout.write(settings_text(Path(), parsed.name, parsed.model, parsed.configfile, parsed.mini))
        else:
            sys.stdout.write(describe(parsed.output))
    except InputError as error:
        parser.exit(1, f"error: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
