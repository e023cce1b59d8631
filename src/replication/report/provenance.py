"""Provenance: the runs behind each number of a rendered output."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clailearn.errors import InputError
from replication.report.evidence import run_name
from replication.runs.run import RUNS, RunId, records_of

KEYS = ("dataset", "model", "seed", "fold")
"""Columns of an output's CSV that say which runs its rows rest on."""
SHOWN = 40
"""Rows of a group that are printed; of a scatter plot there are thousands."""


def describe(output: Path, wanted: Mapping[str, str]) -> str:
    """Return rows of an output, each group of them with its runs.

    Args:
        output: any form of it, such as `paper_figures/table3.tex`.
        wanted: by column of the CSV the value of the rows to show, whose runs then come with data, settings and versions;
            empty for all rows.

    Raises:
        InputError: the CSV and JSON beside the output are missing or damaged, the evidence lacks a run that the JSON names, or
            no row has the values.
    """
    csv, sidecar = output.with_suffix(".csv"), output.with_suffix(".json")
    try:
        frame, content = pd.read_csv(csv), json.loads(sidecar.read_text(encoding="utf-8"))
        evidence, runs = content["evidence"], [RunId.parse(run) for run in content["runs"]]
    except (OSError, ValueError, TypeError, KeyError) as error:  # pandas' own errors are ValueErrors
        raise InputError(
            f"{csv} or {sidecar}: cannot be read ({error}), expected both as they were rendered. Name a table, a figure or the "
            "page of claims, such as paper_figures/table1.tex, or render it again"
        ) from error
    root = _root(output, evidence)
    records = records_behind(runs, root)
    lines = [f"{output}: from results/{evidence}", content["caption"], ""]
    behind: list[dict[str, Any]] = []
    for rows, of_rows in trace(frame, content, records):
        texts = rows.astype(str).reindex(columns=list(wanted))
        shown = rows[(texts == list(wanted.values())).all(axis=1)]
        if len(shown):
            filled = shown.dropna(axis=1, how="all").head(SHOWN)
            lines += filled.to_string(index=False, max_colwidth=60, float_format="%.6g").splitlines()
            lines += [f"({len(shown) - SHOWN} rows more)"] * (len(shown) > SHOWN)
            lines += [*map(_run, of_rows)] or [
                "    no run of a model: counts of the data, the paper's text, or not run"
            ]
            lines.append("")
            behind += of_rows
    if wanted and len(lines) == 3:
        raise InputError(f"{csv}: found no row with {dict(wanted)}; expected values of its columns {list(frame)}")
    return "\n".join([*lines, *(_common_parts(behind) if wanted else [])]).rstrip() + "\n"


def _root(output: Path, evidence: str) -> Path:
    """Return the folder `results/<evidence>` of the repository that holds an output; raise InputError if there is none."""
    for folder in output.resolve().parents:
        if (folder / "results" / evidence).is_dir():
            return folder / "results" / evidence
    raise InputError(
        f"{output} was made from results/{evidence}, which none of the folders above it has; expected the evidence beside the "
        "output's folder. Compute it again, or name an output whose evidence is there"
    )


def records_behind(runs: Sequence[RunId], root: Path) -> list[dict[str, Any]]:
    """Return the records of runs, in their order, from the folder of their evidence, such as `results/published`.

    Raises:
        InputError: the evidence has no record of a run.
    """
    folders = {run.name: root / run.name / "evidence" for run in runs}
    records = {record["run"]: record for folder in folders.values() for record in records_of(folder)}
    for run in runs:
        if str(run) not in records:
            raise InputError(
                f"{folders[run.name] / RUNS} has no record of {run}, which an output names; the output was made from other "
                "evidence. Render it again"
            )
    return [records[str(run)] for run in runs]


def trace(
    frame: pd.DataFrame, content: Mapping[str, Any], records: Sequence[dict[str, Any]]
) -> list[tuple[pd.DataFrame, list[dict[str, Any]]]]:
    """Return the rows of an output in groups that rest on the same runs, with the records of these.

    Dataset, model, seed and fold tell rows apart, as far as the frame has such columns. Without a column `dataset`, every row
    rests on all runs. A claim rests on the runs of the evidence files that it names.

    Args:
        frame: the output's CSV.
        content: the JSON beside it.
        records: of all runs that the output rests on.
    """
    if "claims" in content:
        folders = [{Path(file).parent.parent.name for file in claim["files"]} for claim in content["claims"]]
        return [
            (frame.iloc[[row]], [record for record in records if run_name(record) in names])
            for row, names in enumerate(folders)
        ]
    keys = [key for key in KEYS if key in frame and frame[key].notna().any()]
    if "dataset" not in keys:
        return [(frame, list(records))]
    groups = []
    values: Any
    for values, rows in frame.groupby(keys, sort=False, dropna=False):
        known = {key: value for key, value in zip(keys, values, strict=True) if pd.notna(value)}
        of_rows = [record for record in records if known.items() <= _named(record).items()]
        groups.append((rows, of_rows))
    return groups


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what names a run, by the columns of an output."""
    run = RunId.parse(record["run"])
    return {"dataset": run.name, "model": run.cell, "seed": run.seed, "fold": run.fold}


def _run(record: Mapping[str, Any]) -> str:
    """Return a run record as one line."""
    evaluated = f"; evaluated at {_code(record['evaluation'])}" if record.get("evaluation") else ""
    return (
        f"    <- {record['run']}: {_code(record)}; {record['threads']} threads on {record['device']} ({record['hardware']}); "
        f"{record['wall_seconds']:,.0f} s; {record['peak_memory_mb']:,.0f} MiB{evaluated}; {record['command']}"
    )


def _code(record: Mapping[str, Any]) -> str:
    """Return the commit and settings of a run or of its evaluation."""
    uncommitted = " with uncommitted changes" if record["dirty"] else ""
    return f"commit {record['commit'][:10]}{uncommitted}, settings {record['config_hash']}"


def _common_parts(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the data, settings and versions of runs as lines, each once."""
    blocks: dict[str, Mapping[str, Any]] = {}
    for record in records:
        blocks[f"data {json.dumps(record['data'])}"] = record["data"]
        for part in (record, record.get("evaluation", {})):
            if "settings" in part:
                blocks[f"settings {part['config_hash']}"] = part["settings"]
        blocks[f"versions {json.dumps(record['versions'])}"] = record["versions"]
    lines = []
    for title, values in sorted(blocks.items()):
        named = title if title.startswith("settings") else title.split()[0]
        lines += [f"{named}:", *(f"    {key}: {json.dumps(value)}" for key, value in values.items()), ""]
    return lines
