"""Provenance: the runs behind each number of a rendered output."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from clai.errors import InputError
from replication.report.evidence import run_dataset, run_model
from replication.report.sidecars import records_behind, settings_by_hash
from replication.runs.identity import RunId

KEYS = ("dataset", "model")
"""Columns of an output's CSV that say which runs its rows rest on."""
UNITS = ("seed", "fold")
"""Columns that narrow these runs down."""
NO_RUN = "    no run of a model: counts of the data, the paper's text, or not run"

Read = TypeVar("Read")


class Traced(NamedTuple):
    """Rows of an output's CSV, the records of the runs behind them, and the evidence files without a record."""

    rows: pd.DataFrame
    records: list[dict[str, Any]]
    unrecorded: Sequence[str] = ()


def describe(path: Path) -> str:
    """Return each number of an output with the runs behind it, then their data, settings and versions.

    Args:
        path: any form of a rendered output, such as `paper_figures/table3.tex`.

    Raises:
        InputError: the CSV and JSON beside the output are missing, or the evidence lacks a run that the JSON names.
    """
    frame, content = read_beside(path)
    root = evidence_root(path, content["evidence"])
    records = records_behind(content["runs"], root)
    lines = [f"{path}: from results/{content['evidence']}", content["caption"], ""]
    traced = trace_claims(frame, content["claims"], records) if "claims" in content else trace(frame, records)
    for rows, behind, unrecorded in traced:
        lines += [*_rows(rows), *map(_run, behind)]
        lines += [f"    <- {file}: no record of a run" for file in unrecorded]
        if not behind and not unrecorded:
            lines.append(NO_RUN)
        lines.append("")
    if "printed" in frame:
        lines += ["Column printed: what the paper prints, from workflow/config/printed_values.csv.", ""]
    return "\n".join([*lines, *_common_parts(records)]).rstrip() + "\n"


def read_beside(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the CSV and the JSON beside any form of a rendered output; raise InputError if one is missing or damaged."""
    files = path.with_suffix(".csv"), path.with_suffix(".json")
    for file in files:
        if not file.exists():
            raise InputError(
                f"{file} is missing: name a table, a figure or the page of claims, such as paper_figures/table1.tex, whose CSV "
                "and JSON lie beside it"
            )
    return _read(files[0], pd.read_csv), _read(files[1], _content)


def _read(file: Path, read: Callable[[Path], Read]) -> Read:
    """Return what `read` makes of a file beside an output; raise InputError where the file is damaged."""
    try:
        return read(file)
    except (OSError, ValueError, RecursionError) as error:  # pandas' own errors are ValueErrors
        raise InputError(
            f"{file}: cannot be read ({error}), expected it as it was rendered. Render it again"
        ) from error


def _content(file: Path) -> dict[str, Any]:
    """Return the JSON beside an output; raise ValueError where it is not as `replication.report.sidecars.sidecar` makes it."""
    content = json.loads(file.read_text(encoding="utf-8"))
    kinds = {"caption": str, "evidence": str, "runs": list}
    if not isinstance(content, dict) or not all(isinstance(content.get(key), kind) for key, kind in kinds.items()):
        raise ValueError(f"no object with the keys {', '.join(kinds)}")
    for run in content["runs"]:
        if not isinstance(run, str):
            raise ValueError(f"{run} names no run")
        RunId.parse(run)  # raises ValueError, too
    return content


def evidence_root(path: Path, evidence: str) -> Path:
    """Return the folder `results/<evidence>` of the repository that holds an output; raise InputError if there is none."""
    for folder in path.resolve().parents:
        if (folder / "results" / evidence).is_dir():
            return folder / "results" / evidence
    raise InputError(
        f"{path} was made from results/{evidence}, which none of the folders above it has; expected the evidence beside the "
        "output's folder. Compute it again, or name an output whose evidence is there"
    )


def trace(frame: pd.DataFrame, records: Sequence[dict[str, Any]]) -> list[Traced]:
    """Return the rows of an output in groups that rest on the same runs.

    Dataset, model, seed and fold tell rows apart, as far as the frame has such columns. Without a column `dataset`, every row
    rests on all runs. A group without runs was computed from something else, such as class counts, or not at all.

    Args:
        frame: the output's CSV.
        records: of all runs that the output rests on.
    """
    keys = [key for key in (*KEYS, *UNITS) if key in frame and frame[key].notna().any()]
    if "dataset" not in keys:
        return [Traced(frame, list(records))]
    groups = []
    values: Any
    for values, rows in frame.groupby(keys, sort=False, dropna=False):
        wanted = {key: value for key, value in zip(keys, values, strict=True) if pd.notna(value)}
        groups.append(Traced(rows, [record for record in records if _matches(record, wanted)]))
    return groups


def trace_claims(
    frame: pd.DataFrame, claims: Sequence[Mapping[str, Any]], records: Sequence[dict[str, Any]]
) -> list[Traced]:
    """Return each claim with the runs of the evidence files that it names.

    Args:
        frame: claims.csv, a row for each of `claims`.
        claims: as claims.json has them.
        records: of all runs that the claims rest on.
    """
    traced = []
    for row, claim in enumerate(claims):
        datasets = {file: Path(file).parent.parent.name for file in claim["files"]}
        behind = [record for record in records if run_dataset(record) in datasets.values()]
        recorded = {run_dataset(record) for record in behind}
        unrecorded = [file for file, dataset in datasets.items() if dataset not in recorded]
        traced.append(Traced(frame.iloc[[row]], behind, unrecorded))
    return traced


def _matches(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    identity = {"dataset": run_dataset(record), "model": run_model(record), **{unit: record[unit] for unit in UNITS}}
    return all(identity[key] == value for key, value in wanted.items())


def _rows(rows: pd.DataFrame, shown: int = 40) -> list[str]:
    """Return the rows as text; of many, such as the points of a scatter plot, the first few and the number of the rest."""
    filled = rows.dropna(axis=1, how="all")
    text = filled.head(shown).to_string(index=False, max_colwidth=60, float_format="%.6g").splitlines()
    return text if len(rows) <= shown else [*text, f"({len(rows) - shown} rows more)"]


def _run(record: Mapping[str, Any]) -> str:
    """Return a run record as one line."""
    parts = [
        _code(record),
        f"seed {record['seed']}" + ("" if record["fold"] is None else f", fold {record['fold']}"),
        f"{record['threads']} threads on {record['device']} ({record['hardware']})",
        f"{record['wall_seconds']:,.0f} s",
        f"{record['peak_memory_mb']:,.0f} MiB",
    ]
    if record["pairs"]:
        parts.append(f"{record['pairs']:.3g} pairs")
    if evaluation := record.get("evaluation"):
        parts.append(f"evaluated at {_code(evaluation)}")
    return f"    <- {record['run']}: {'; '.join(parts)}; {record['command']}"


def _code(record: Mapping[str, Any]) -> str:
    """Return the commit and settings of a run or of its evaluation."""
    uncommitted = " with uncommitted changes" if record["dirty"] else ""
    return f"commit {record['commit'][:10]}{uncommitted}, settings {record['config_hash']}"


def _common_parts(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the data, settings and versions of runs as lines, each once."""
    lines = _block("data", {file: checksum for record in records for file, checksum in record["data"].items()})
    for key, settings in settings_by_hash(records).items():
        lines += _block(f"settings {key}", settings)
    for versions in _distinct(record["versions"] for record in records):
        lines += _block("versions", versions)
    return lines


def _distinct(values: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _block(title: str, values: Mapping[str, Any]) -> list[str]:
    return [f"{title}:", *(f"    {key}: {json.dumps(value)}" for key, value in values.items()), ""] if values else []
