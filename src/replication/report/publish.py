"""Publication: finished runs become tracked evidence, and what is published stays.

A dataset or study without published evidence is published whole, a dataset with its packed models. Otherwise the runs are added
that the published evidence lacks: their rows, records and predictions. A study need not be finished: its tables say how many runs
they rest on. Comparisons between models are computed again where a model has further runs. All other rows stay as they are, byte
for byte.
"""

import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clailearn.errors import InputError
from clailearn.published_model import load
from replication.experiments.predictions import add_runs
from replication.report.evidence import Evidence
from replication.report.patients import is_open, read_description, withheld
from replication.report.verify import recompute
from replication.runs.gather import gather_study
from replication.runs.identity import RunId
from replication.runs.outputs import (
    BENCHMARK,
    SAMPLES,
    THEORY,
    evidence_files,
    prediction_files,
    predictions_of,
    published_models,
)
from replication.runs.record import RUNS, read_records, write_records
from replication.runs.settings import runs_of_study

LARGEST = {".parquet": 5 * 2**20, ".safetensors": 4 * 2**20}
"""Largest sizes of tracked files in bytes: predictions of a model (3 MB for a million hours), and weights with references."""
LARGEST_TABLE = 2 * 2**20
"""Largest size of every other file: git keeps every version of it."""
_DESCRIPTION, _COMPARISONS, _INTERVALS = "dataset.json", "comparisons.csv", "intervals.csv"
_PAIR = ["model", "other", "metric"]
_TRAININGS = ("history.csv", "alignment.csv")
_CHOSEN_BY_HARDWARE = "training.precision"
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
        InputError: what was asked for is unfinished, was made with uncommitted changes, belongs to other data or settings than
            the published runs, or is published already. Nothing has been changed then.
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
    study = settings["studies"][name]
    runs = [source / str(run) for run in runs_of_study(settings, name)]
    finished = [run for run in runs if (run / "metrics.csv").exists()]
    if not finished:
        raise InputError(
            f"{source / name}: found no finished run, expected some. Compute one: snakemake {runs[0]}/metrics.csv"
        )
    folder.mkdir(parents=True)
    samples = study["overrides"].get("training", {}).get("samples")
    gather_study(finished, source / study["dataset"] / "prepared" / _DESCRIPTION, samples, folder)
    return folder


def _existing(file: Path) -> Path:
    if file.is_symlink() or not file.is_file():
        state = "a link" if file.is_symlink() else "no file"
        raise InputError(f"{file}: found {state}, expected a file of evidence. Compute it: snakemake {file}")
    return file


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.read_bytes() == other.read_bytes()


def _add(here: Path, evidence: Path) -> None:
    """Add to a copy of published evidence what it lacks of the evidence `here`."""
    theirs = _tables(here)
    added: set[tuple[str, ...]] = set()
    for name, table in _tables(evidence).items():
        rows = theirs.get(name, table[:0])
        further = rows[~_keys(rows).isin(_keys(table))]
        if len(further):
            added |= set(_keys(further))
            further = further.reindex(columns=table.columns, fill_value="")
            pd.concat([table, further]).to_csv(evidence / name, index=False)
    if not added:
        return
    published = read_records(evidence)
    known = {_key(RunId.parse(record["run"])) for record in published}
    _refuse_others(added & known, here, evidence)
    new = [record for record in read_records(here) if _key(RunId.parse(record["run"])) in added - known]
    for record in new:
        _refuse_unlike(record, published)
    write_records(evidence, [*published, *new])
    if new:
        _add_predictions([RunId.parse(record["run"]) for record in new], here, evidence)


def _add_predictions(runs: Sequence[RunId], here: Path, evidence: Path) -> None:
    """Add the predictions of further runs, and compare their models again."""
    if (evidence / _INTERVALS).exists():
        name = evidence.parent.name
        raise InputError(f"{runs[0]}: intervals over patients need all runs. Replace all: --replace {name}")
    models = dict.fromkeys(run.model for run in runs)
    if (evidence / SAMPLES).exists():
        for model in models:
            replicates = {run.replicate for run in runs if run.model == model}
            add_runs(evidence / predictions_of(model), _existing(here / predictions_of(model)), replicates)
    if (evidence / _COMPARISONS).exists():
        _compare_again(set(models), evidence)


def _refuse_others(controls: set[tuple[str, ...]], here: Path, evidence: Path) -> None:
    """Raise InputError unless both have the same arrays, and published runs with further controls the same training."""
    file = here / _DESCRIPTION
    if read_description(file).get("arrays") != read_description(evidence / _DESCRIPTION).get("arrays"):
        raise InputError(
            f"{file}: found other arrays than those of the published evidence. Replace it whole, or leave it"
        )
    ours, theirs = _tables(here), _tables(evidence)
    for name in [name for name in _TRAININGS if name in ours and name in theirs]:
        columns = theirs[name].columns.intersection(ours[name].columns).difference(["seconds"])
        for key in sorted(controls & set(_keys(theirs[name]))):
            one, other = (table.loc[_keys(table) == key, columns].to_numpy() for table in (ours[name], theirs[name]))
            if not np.array_equal(one, other):
                raise InputError(
                    f"{here / name}: found another training of {key[0]}, seed {key[1]}, expected the published one. "
                    "Train it on the hardware and with the versions of the published run"
                )


def _refuse_unlike(record: Mapping[str, Any], published: Iterable[Mapping[str, Any]]) -> None:
    """Raise InputError unless a run has the raw data of the published runs, and the settings of those of its model.

    A setting that one of two runs lacks is newer than that run, and has changed nothing.
    """
    run = RunId.parse(record["run"])
    for other in published:
        if other["data"] != record["data"]:
            raise InputError(f"{run}: found other raw data than those of the published run {other['run']}")
        if RunId.parse(other["run"]).model != run.model:
            continue
        here, there = (pd.json_normalize(dict(entry["settings"])).iloc[0] for entry in (record, other))
        for key in sorted(set(here.index) & set(there.index) - {_CHOSEN_BY_HARDWARE}):
            if here[key] != there[key]:
                raise InputError(
                    f"{run}: found {key} {here[key]} here and {there[key]} in the published run {other['run']}, expected the "
                    f"same settings. Replace all: --replace {run.dataset}"
                )


def _tables(evidence: Path) -> dict[str, pd.DataFrame]:
    """Return the tables that have rows of single runs, as text, so that writing them again changes no number."""
    tables = {path.name: _text(path) for path in sorted(evidence.glob("*.csv"))}
    return {name: table for name, table in tables.items() if {"model", "seed"} <= set(table.columns)}


def _text(source: Path | io.StringIO) -> pd.DataFrame:
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def _key(run: RunId) -> tuple[str, ...]:
    return run.model, str(run.seed), "" if run.fold is None else str(run.fold)


def _keys(table: pd.DataFrame) -> pd.MultiIndex:
    """Return which run each row is of."""
    return pd.MultiIndex.from_frame(table.reindex(columns=_KEY, fill_value=""))


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
            _refuse_uncommitted(read_records(folder), folder / RUNS)
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
