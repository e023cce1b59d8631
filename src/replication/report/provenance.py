"""Provenance: the runs behind each number of a rendered output."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from clailearn.errors import InputError
from replication.report.evidence import owners
from replication.report.labels import names_of
from replication.runs.run import RUNS, RunId, records_of

Record = dict[str, Any]
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
    csv, sidecar = (output.parent / f"{output.stem}{form}" for form in (".csv", ".json"))
    try:
        frame, content = pd.read_csv(csv), json.loads(sidecar.read_text(encoding="utf-8"))
        evidence, runs = content["evidence"], [RunId.parse(run) for run in content["runs"]]
    except (OSError, ValueError, TypeError, KeyError) as error:  # pandas' own errors are ValueErrors
        raise InputError(
            f"{csv} or {sidecar}: cannot be read ({error}), expected both as they were rendered. Name a table, a figure or the "
            "page of claims, such as paper_figures/table1.tex, or render it again"
        ) from error
    texts = frame.astype(str).reindex(columns=list(wanted))
    chosen = frame[(texts == list(wanted.values())).all(axis=1)]
    if chosen.empty and wanted:
        raise InputError(f"{csv}: found no row with {dict(wanted)}; expected values of its columns {list(frame)}")
    lines, shown = [f"{output}: from results/{evidence}", content["caption"], ""], []
    for rows, behind in trace(chosen, content, records_behind(runs, Path("results", evidence))):
        filled = rows.dropna(axis=1, how="all").head(SHOWN)
        lines += filled.to_string(index=False, max_colwidth=60, float_format="%.6g").splitlines()
        lines += [f"({len(rows) - SHOWN} rows more)"] * (len(rows) > SHOWN)
        nothing = [
            "    no run of a model: counts of the data, the paper's text, not run, or a verdict (see claims.csv)"
        ]
        lines += [*([_line(record) for record in behind] or nothing), ""]
        shown += behind
    return "\n".join([*lines, *(_shared_parts(shown) if wanted else [])]).rstrip() + "\n"


def records_behind(runs: Sequence[RunId], root: Path) -> list[Record]:
    """Return the records of runs, in their order, from their evidence below `root`; raise InputError where it lacks one."""
    names = dict.fromkeys(run.name for run in runs)
    records = {record["run"]: record for name in names for record in records_of(root / name / "evidence")}
    for run in runs:
        if str(run) not in records:
            raise InputError(
                f"{root / run.name / 'evidence' / RUNS} has no record of {run}, which an output names; the output was made from "
                "other evidence. Render it again"
            )
    return [records[str(run)] for run in runs]


def told(records: Sequence[Mapping[str, Any]]) -> str:
    """Say which runs these are: seeds, folds, commits and processors."""
    seeds, folds = (sorted({run[key] for run in records if run[key] is not None}) for key in ("seed", "fold"))
    commits, machines = ({str(run[key]) for run in records} for key in ("commit", "hardware"))
    parts = {"seed": seeds, "fold": folds, "commit": sorted(commit[:8] for commit in commits), "on": sorted(machines)}
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in parts.items() if values)


def trace(
    frame: pd.DataFrame, content: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[tuple[pd.DataFrame, list[Record]]]:
    """Yield the rows of an output in groups that rest on the same runs, with the records of these.

    frame: the output's CSV. content: the JSON beside it. Dataset and model, or study and cell, tell rows apart, as far as the
    frame has such columns; a difference rests on the runs of `other`, too. A claim rests on the files of evidence that it names.
    """
    if "claims" in content:
        for row in frame.index:
            names = {Path(file).parent.parent.name for file in content["claims"][row]["files"]}
            yield frame.loc[[row]], [record for record in records if RunId.parse(record["run"]).name in names]
        return
    runs = [(record, RunId.parse(record["run"])) for record in records]
    for (name, cell, other), rows in owners(frame).groupby(["name", "cell", "other"], sort=False, dropna=False):
        of = [(record, run.cell) for record, run in runs if run.name == name]
        behind = [record for record, own in of if not isinstance(cell, str) or own == cell or other in names_of(own)]
        yield frame.loc[rows.index], behind


def _line(record: Mapping[str, Any]) -> str:
    evaluated = f"; evaluated at {_code(record['evaluation'])}" if record.get("evaluation") else ""
    return (
        f"    <- {record['run']}: {_code(record)}; {record['threads']} threads on {record['device']} ({record['hardware']}); "
        f"{record['wall_seconds']:,.0f} s; {record['peak_memory_mb']:,.0f} MiB{evaluated}; {record['command']}"
    )


def _code(record: Mapping[str, Any]) -> str:
    uncommitted = " with uncommitted changes" if record["dirty"] else ""
    return f"commit {record['commit'][:10]}{uncommitted}, settings {record['config_hash']}"


def _shared_parts(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the data, settings and versions of runs and evaluations as YAML, each once."""
    parts = [part for record in records for part in (record, record.get("evaluation", {}))]
    blocks = [
        {f"settings {part['config_hash']}" if key == "settings" else key: part[key]}
        for key in ("data", "settings", "versions")
        for part in parts
        if key in part
    ]
    return list(dict.fromkeys(yaml.safe_dump(block, default_flow_style=None, width=100) for block in blocks))
