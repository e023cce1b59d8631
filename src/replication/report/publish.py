"""Publication: finished runs become tracked evidence, and what is published stays.

A dataset or study without published evidence is published whole, a dataset with its packed models. Otherwise the runs are added
that the published evidence lacks: their rows, records and predictions. A study need not be finished: its tables say how many runs
they rest on. Comparisons between models are computed again where a model has further runs. All other rows stay as they are, byte
for byte. A name is replaced whole on demand.
"""

import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clailearn.errors import InputError
from clailearn.published_model import load
from replication.experiments.predictions import add_runs
from replication.report.evidence import Evidence
from replication.report.patients import is_open, read_description, withheld
from replication.report.verify import recompute
from replication.runs.outputs import evidence_files, prediction_files, published_models
from replication.runs.registry import BENCHMARK, THEORY
from replication.runs.run import (
    DESCRIPTION,
    EVALUATIONS,
    RUNS,
    SAMPLES,
    RunId,
    describe,
    gather_files,
    predictions_of,
    read_records,
    records_of,
    write_records,
)
from replication.runs.settings import data_of, runs_of_study, training_samples

LARGEST = {".parquet": 5 * 2**20, ".safetensors": 4 * 2**20}
"""Largest sizes of tracked files in bytes: predictions of a model (3 MB for a million hours), and weights with references."""
LARGEST_TABLE = 2 * 2**20
"""Largest size of every other file: git keeps every version of it."""
_COMPARISONS, _INTERVALS = "comparisons.csv", "intervals.csv"
_PAIR = ["model", "other", "metric"]
_KEY = ["model", "seed", "fold"]
"""Columns that say which run a row is of; a table without folds has no last one."""


def publish(
    what: Sequence[str], source: Path, target: Path, settings: Mapping[str, Any], replace: Sequence[str] = ()
) -> list[str]:
    """Publish datasets and studies.

    Args:
        what: names of datasets and studies.
        source: folder of the evidence to publish, such as results/real.
        target: folder of the published evidence.
        replace: names whose published evidence is replaced whole.

    Returns:
        The changed files, relative to `target`.

    Raises:
        InputError: what was asked for is unfinished, was made with uncommitted changes, or belongs to other data than the
            published runs. Nothing has been changed then.
    """
    files: dict[Path, Path] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in dict.fromkeys([*what, *replace]):
            here, published = source / name / "evidence", target / name / "evidence"
            unfinished = name in settings["studies"] and not (here / RUNS).exists()
            if name in replace or not (published.is_dir() or unfinished):
                files |= _whole(name, source, settings)
                continue
            if unfinished:
                here = _gather_finished(name, source, settings, Path(temporary, "study", name, "evidence"))
            merged = here
            if published.is_dir():
                merged = Path(temporary, target.name, name, "evidence")
                shutil.copytree(published, merged)
                _add(here, merged)
            files |= {file.relative_to(merged.parents[1]): file for file in sorted(merged.iterdir())}
        changed = {place for place, file in files.items() if not _same(file, target / place)}
        folders = {place.parent for place in changed}
        promote({place: file for place, file in files.items() if place.parent in folders}, target)
    return sorted(map(str, changed))


def _whole(name: str, source: Path, settings: Mapping[str, Any]) -> dict[Path, Path]:
    """Return the files of all evidence and models of a name by their places; raise InputError where one is not computed yet."""
    known = [*settings["datasets"], *settings["studies"], BENCHMARK, THEORY]
    if name not in known:
        raise InputError(f"found no dataset and no study {name}, expected one of {', '.join(known)}")
    files = [*evidence_files(str(source), name, settings), *prediction_files(str(source), name, settings)]
    files += [file for file in published_models(str(source), settings) if Path(file).parts[-4] == name]
    return {file.relative_to(source): _existing(file) for file in map(Path, files)}


def _gather_finished(name: str, source: Path, settings: Mapping[str, Any], folder: Path) -> Path:
    """Gather the finished runs of a study that is not finished in `folder`, and return it."""
    runs = [source / str(run) for run in runs_of_study(settings, name)]
    finished = [run for run in runs if (run / "metrics.csv").exists()]
    if not finished:
        raise InputError(
            f"{source / name}: found no finished run, expected some. Compute one: snakemake {runs[0]}/metrics.csv"
        )
    folder.mkdir(parents=True)
    for file in ("metrics.csv", "history.csv"):
        gather_files([run / file for run in finished], file, study=True).to_csv(folder / file, index=False)
    write_records(folder / RUNS, [json.loads((run / "run.json").read_text()) for run in finished])
    prepared = source / data_of(settings, name) / "prepared" / DESCRIPTION
    (folder / DESCRIPTION).write_text(describe(prepared, training_samples(settings, name)))
    return folder


def _existing(file: Path) -> Path:
    if file.is_symlink() or not file.is_file():
        state = "a link" if file.is_symlink() else "no file"
        raise InputError(f"{file}: found {state}, expected a file of evidence. Compute it: snakemake {file}")
    return file


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.read_bytes() == other.read_bytes()


def _add(here: Path, evidence: Path) -> None:
    """Add to a copy of published evidence the runs that it lacks of the evidence `here`, and compare their models again."""
    known = {record["run"] for record in read_records(evidence / RUNS)}
    new = [record["run"] for record in read_records(_existing(here / RUNS)) if record["run"] not in known]
    runs = list(map(RunId.parse, new))
    if not runs:
        return
    replace_all = f"Replace all: --replace {evidence.parent.name}"
    if read_description(here / DESCRIPTION).get("arrays") != read_description(evidence / DESCRIPTION).get("arrays"):
        raise InputError(f"{here / DESCRIPTION}: found other arrays than the published ones. {replace_all}")
    if (evidence / _INTERVALS).exists():
        raise InputError(f"{runs[0]}: intervals over patients need all runs. {replace_all}")
    for source in sorted(here.glob("*.csv")):
        _add_rows(source, evidence / source.name, runs)
    for file in (RUNS, EVALUATIONS):
        sources = [folder / file for folder in (here, evidence) if (folder / file).exists()]
        if sources:  # of two records of a run the published one stays
            records = {record["run"]: record for path in sources for record in read_records(path)}
            write_records(evidence / file, records.values())
    models = {run.cell for run in runs}
    for model in sorted(models) if (evidence / SAMPLES).exists() else []:
        file, replicates = predictions_of(model), {run.replicate for run in runs if run.cell == model}
        add_runs(evidence / file, _existing(here / file), replicates)
    if (evidence / _COMPARISONS).exists():
        _compare_again(models, evidence)


def _add_rows(source: Path, path: Path, runs: Sequence[RunId]) -> None:
    """Add the rows of these runs to a published table; they are read as text, so that writing them again changes no number."""
    table = _text(source)
    further = table[
        _keys(table).isin([(run.cell, str(run.seed), "" if run.fold is None else str(run.fold)) for run in runs])
    ]
    if path.exists() and not further.empty:
        published = _text(path)
        further = further.reindex(columns=published.columns, fill_value="")
        pd.concat([published, further]).to_csv(path, index=False)


def _keys(table: pd.DataFrame) -> pd.MultiIndex:
    """Return which run each row is of."""
    return pd.MultiIndex.from_frame(table.rename(columns={"cell": "model"}).reindex(columns=_KEY, fill_value=""))


def _text(source: Path | io.StringIO) -> pd.DataFrame:
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def _compare_again(models: set[str], evidence: Path) -> None:
    """Compute the comparisons of these models from their predictions, in place of the published ones."""
    name, path = evidence.parent.name, evidence / _COMPARISONS
    found = Evidence.found(evidence.parents[1], {name: {"title": name, "needs": ""}})
    computed = _text(io.StringIO(recompute(found, name)[_COMPARISONS].to_csv(index=False, float_format="%.6g")))
    published = _text(path)
    if missing := models - set(published["model"]) - set(published["other"]):
        raise InputError(f"{path.name}: found no rows of {', '.join(sorted(missing))}. Replace all: --replace {name}")
    concerned = computed["model"].isin(models) | computed["other"].isin(models)
    table = published.set_index(_PAIR)
    table.update(computed[concerned].set_index(_PAIR))
    table.reset_index().to_csv(path, index=False)


def promote(files: Mapping[Path, Path], target: Path) -> None:
    """Copy files of evidence and of packed models to their places below `target`, whose folders are replaced whole.

    What shows single patients stays out unless the licence of their data is open.

    Raises:
        InputError: a run was made with uncommitted changes, or a file is a link or too large. Nothing has been copied then.
    """
    kept = {place: file for place, file in files.items() if not withheld(_existing(file))}
    for file in kept.values():
        largest = LARGEST.get(file.suffix, LARGEST_TABLE)
        if file.stat().st_size > largest:
            raise InputError(
                f"{file} has {file.stat().st_size} bytes, more than the {largest} of a tracked file: show less"
            )
    for place, folder in {place.parent: file.parent for place, file in kept.items()}.items():
        if place.parent.name != "models":
            _refuse_uncommitted(records_of(folder), folder / RUNS)
            continue
        record = load(folder).record
        _refuse_uncommitted([record["record"] | {"run": record["run"]}], folder)
        if record["data"]["kind"] == "recordings" and not is_open(record["data"]["licence"]):
            kept = {other: file for other, file in kept.items() if other.parent != place}
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        for place, file in kept.items():
            new = Path(temporary, place)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, new)
        for folder in sorted({place.parent for place in kept}):  # all is written and checked; git has what they replace
            shutil.rmtree(target / folder, ignore_errors=True)
            (target / folder).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(temporary, folder), target / folder)


def _refuse_uncommitted(records: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Raise InputError if the code of a run, or of its evaluation, was not that of a commit; an unknown state counts as none."""
    for record in records:
        for part in (record, record.get("evaluation", record)):
            if part.get("dirty", True) is not False or not isinstance(part.get("commit"), str):
                raise InputError(
                    f"{file}: run {record['run']} was made with uncommitted changes on {part.get('commit')}; published runs must "
                    "be those of a commit. Commit, delete the run and compute it again"
                )
