"""Further runs of a dataset or study, added to its published evidence: seeds of a model, cells of a study, controls of a run.

Runs that take hours need not be made at once, nor on one machine. What is published stays as it is, byte for byte; comparisons
between models alone are computed again where a model has further runs, from the published predictions. Of a run that is published
already, what its evidence lacks is added, such as read-outs of a further seed, if the model is the published one. On demand a run
takes the place of the published one of its name instead.
"""

import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clai.errors import InputError
from replication.experiments.predictions import join_predictions, leave_out, save_predictions
from replication.report.evidence import Evidence
from replication.report.publication import publish
from replication.report.recomputation import recompute
from replication.runs.controls import CONTROLS, INPUTS, TRACED_ONLY, UNTRAINED
from replication.runs.gather import gather, predictions_of_runs, with_times
from replication.runs.identity import RunId
from replication.runs.outputs import SAMPLES, predictions_of
from replication.runs.record import SHARED_PARTS, read_records, with_evaluation, write_records

COMPARISONS = "comparisons.csv"
_PAIR = ["model", "other", "metric"]
_DESCRIPTION = "dataset.json"
_CHOSEN_BY_HARDWARE = "training.precision"


def add_runs(runs: Sequence[RunId], source: Path, target: Path, replace: bool = False) -> list[str]:
    """Add finished runs to the evidence of their datasets or studies.

    Args:
        runs: of datasets without folds, whose folders lie below `source`.
        source: such as results/real.
        target: folder of published evidence, results/published.
        replace: let the runs take the place of published ones, with all that these have.

    Returns:
        The changed files, relative to `target`.

    Raises:
        InputError: a run is unfinished, published already with all that it has, of other data or other settings than the
            published runs of its model, or made with uncommitted changes; or one to be replaced is not published, or published
            models and pictures are of it. Nothing has been changed then.
    """
    names = list(dict.fromkeys(run.dataset for run in runs))
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary, target.name)
        for name in names:
            published = target / name / "evidence"
            if not published.is_dir():
                raise InputError(
                    f"{published}: found no evidence, expected some. Publish {name} whole (docs/running.md)"
                )
            shutil.copytree(published, root / name / "evidence")
            here = [run for run in runs if run.dataset == name]
            records = read_records(published)
            further = _further_records(here, source, published, records, replace)
            if replace:
                _refuse_pictured(here, published, records)
                _withdraw(here, root / name / "evidence", records)
            _add(here, source, root, further)
        files = [file for name in names for file in sorted((root / name / "evidence").iterdir())]
        changed = [file for file in files if not _same(file, target / file.relative_to(root))]
        publish(files, root, target)
        return [str(file.relative_to(root)) for file in changed]


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.read_bytes() == other.read_bytes()


def _add(
    runs: Sequence[RunId],
    source: Path,
    root: Path,
    records: Mapping[RunId, dict[str, Any]],
) -> None:
    """Add runs of one dataset or study to the copy of its evidence below `root`; `records` are those of unpublished ones."""
    name = runs[0].dataset
    folder = root / name / "evidence"
    added = {run for table in sorted(folder.glob("*.csv")) for run in _add_rows(table, runs, source, records)}
    for run in runs:
        if run not in added | set(records):
            raise InputError(
                f"{run} is published already, and {source / str(run)} has nothing that its evidence lacks; expected further "
                "runs or controls. Leave it out"
            )
    write_records(folder, [*read_records(folder), *records.values()])
    models = dict.fromkeys(run.model for run in records if run.model not in TRACED_ONLY)
    if not models or not (folder / SAMPLES).exists():
        return
    for model in models:
        _add_predictions([source / str(run) for run in records if run.model == model], folder, model)
    if (folder / COMPARISONS).exists():
        here = recompute(Evidence.found(root, {name: {"title": name, "needs": ""}}), name)
        _replace_comparisons(folder / COMPARISONS, here[COMPARISONS], set(models))


def _further_records(
    runs: Sequence[RunId], source: Path, folder: Path, published: Sequence[Mapping[str, Any]], replace: bool
) -> dict[RunId, dict[str, Any]]:
    """Return the records of the runs that are not published yet, or of all; raises InputError where one does not belong here."""
    names = {record["run"] for record in published}
    records: dict[RunId, dict[str, Any]] = {}
    for run in runs:
        if run.fold is not None:
            raise InputError(
                f"{run}: found a run of a fold, expected one of a dataset without folds. Publish {run.dataset} whole"
            )
        if run.model in (UNTRAINED, INPUTS):
            _refuse_other_arrays(source / run.dataset / "prepared" / _DESCRIPTION, folder / _DESCRIPTION)
        elif str(run) in names and not replace:
            _refuse_other_training(run, source / str(run), folder)
        else:
            records[run] = _record(run, source / str(run))
            _refuse_unlike(run, records[run], published, source / str(run))
    return records


def _refuse_pictured(runs: Sequence[RunId], folder: Path, published: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError unless runs are published, and pictures and published models are of others."""
    names = [record["run"] for record in published]
    for run in runs:
        if str(run) not in names:
            raise InputError(f"{folder}: found no run {run}, expected one to replace. Add it without --replace")
        first = next(name for name in names if RunId.parse(name).model == run.model)
        if str(run) == first and (folder.parent / "models").is_dir():
            raise InputError(
                f"{run} is the first run of its model, of which pictures and published models are; expected a later one. Publish "
                f"{run.dataset} whole"
            )


def _withdraw(runs: Sequence[RunId], folder: Path, published: Sequence[Mapping[str, Any]]) -> None:
    """Remove runs from the copy of their evidence."""
    write_records(folder, [record for record in published if record["run"] not in map(str, runs)])
    gone = {(run.model, str(run.seed)) for run in runs}
    for path in sorted(folder.glob("*.csv")):
        table = _text(path)
        if {"model", "seed"} <= set(table.columns):
            rows = [run in gone for run in zip(table["model"], table["seed"], strict=True)]
            if any(rows):
                table[~np.array(rows)].to_csv(path, index=False)
    for model in dict.fromkeys(run.model for run in runs):
        if (path := folder / predictions_of(model)).exists():
            leave_out(path, {run.replicate for run in runs if run.model == model})


def _add_rows(
    table: Path, runs: Sequence[RunId], source: Path, records: Mapping[RunId, Mapping[str, Any]]
) -> list[RunId]:
    """Add to a table of the evidence the rows of those runs that it lacks, and return these runs."""
    there = _text(table)
    if not {"model", "seed"} <= set(there.columns):
        return []
    present = set(zip(there["model"], there["seed"], strict=True))
    files = {run: source / str(run) / _file_of_run(table.name) for run in runs}
    lacking = {run: path for run, path in files.items() if (run.model, str(run.seed)) not in present and path.exists()}
    found = {run: frame for run, path in lacking.items() if not (frame := pd.read_csv(path)).empty}
    if "seconds" in there:
        found = {run: with_times(frame, records[run]) for run, frame in found.items()}
    if found:
        _append(table, gather({str(files[run]): frame for run, frame in found.items()}, list(there.columns)))
    return list(found)


def _file_of_run(table: str) -> str:
    """Return where a run keeps its rows of a table of the evidence."""
    return CONTROLS.get(Path(table).stem, table)


def _history_of(run: RunId) -> str:
    """Return the table of the evidence that tells how a model was trained."""
    return "alignment.csv" if run.model in TRACED_ONLY else "history.csv"


def _record(run: RunId, folder: Path) -> dict[str, Any]:
    last = _file_of_run(_history_of(run)) if run.model in TRACED_ONLY else "metrics.csv"
    path = (folder / last).parent / "run.json"
    for file in (folder / last, path):
        if not file.is_file():
            raise InputError(f"{file} is missing, expected a finished run. Compute it: snakemake {folder / last}")
    record = _json(path)
    if record.get("run") != str(run) or not all(isinstance(record.get(part), dict) for part in SHARED_PARTS):
        raise InputError(f"{path}: found no record of {run} with {', '.join(SHARED_PARTS)}. Compute the run again")
    evaluated = folder / "evaluation.json"
    return with_evaluation(record, _json(evaluated)) if evaluated.exists() else record


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}; expected JSON as the workflow writes it. Compute the run again") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: found no JSON object, expected the record of a run. Compute the run again")
    return found


def _refuse_unlike(run: RunId, record: Mapping[str, Any], published: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Raise InputError unless a run has the data of the published runs, and the settings of those of its model."""
    if any(other["data"] != record["data"] for other in published):
        raise InputError(
            f"{folder}: found other raw data than those of the published runs. Publish {run.dataset} whole"
        )
    for other in published:
        if RunId.parse(other["run"]).model == run.model:
            for difference in _differences(record["settings"], other["settings"]):
                raise InputError(
                    f"{folder}: found {difference} in the published run {other['run']}, expected the same settings. Publish "
                    f"{run.dataset} whole"
                )


def _refuse_other_training(run: RunId, folder: Path, evidence: Path) -> None:
    """Raise InputError unless a training has the history of the published run: its model is another one otherwise."""
    there = pd.read_csv(evidence / _history_of(run))
    there = there[(there["model"] == run.model) & (there["seed"] == run.seed)]
    if there.empty:  # such as boosting, which is fitted at once
        return
    file = folder / _file_of_run(_history_of(run))
    if not file.is_file():
        raise InputError(f"{file} is missing, expected the history of a trained model. Compute it: snakemake {file}")
    here = pd.read_csv(file)
    measured = [column for column in here.select_dtypes("number") if column in there]
    if len(here) != len(there) or not np.allclose(here[measured], there[measured], rtol=1e-9, atol=0, equal_nan=True):
        raise InputError(
            f"{file}: found another training than the published one of {run}, expected the same history. Train it on the "
            f"hardware and with the versions of the published run, or publish {run.dataset} whole"
        )


def _refuse_other_arrays(file: Path, published: Path) -> None:
    """Raise InputError unless prepared data are those behind the published runs; of an untrained network no history says so."""
    if not file.is_file():
        raise InputError(f"{file} is missing, expected the prepared data. Compute it: snakemake {file}")
    if _json(file).get("arrays") != _json(published).get("arrays"):
        raise InputError(f"{file}: found other arrays than {published} names. Publish the dataset whole")


def _differences(here: Mapping[str, Any], there: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield where two settings differ. A setting that one of them lacks is newer than its run, and has changed nothing."""
    for key in sorted(here.keys() & there.keys()):
        path = f"{prefix}{key}"
        if isinstance(here[key], Mapping) and isinstance(there[key], Mapping):
            yield from _differences(here[key], there[key], f"{path}.")
        elif here[key] != there[key] and path != _CHOSEN_BY_HARDWARE:
            yield f"{path} {here[key]} here and {there[key]}"


def _text(source: Path | io.StringIO) -> pd.DataFrame:
    """Read a table as text, so that writing it again changes no number."""
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def _as_text(frame: pd.DataFrame, float_format: str | None = None) -> pd.DataFrame:
    return _text(io.StringIO(frame.to_csv(index=False, float_format=float_format)))


def _append(path: Path, further: pd.DataFrame) -> None:
    """Add rows to a table, each after those of its model with lower seeds."""
    rows = pd.concat([_text(path), _as_text(further)])
    models = {model: place for place, model in enumerate(dict.fromkeys(rows["model"]))}
    places = pd.DataFrame({"model": rows["model"].map(models), "seed": rows["seed"].astype(int)})
    order = np.lexsort((places["seed"], places["model"]))  # stable
    rows.iloc[order].to_csv(path, index=False)


def _add_predictions(folders: Sequence[Path], evidence: Path, model: str) -> None:
    path, further = evidence / predictions_of(model), evidence / f"further_{predictions_of(model)}"
    files = [[folder / file for folder in folders] for file in ("predictions.npz", "metrics.csv")]
    for file in files[0]:
        if not file.exists():
            raise InputError(f"{file} is missing, expected the predictions of a finished run. Compute the run again")
    scores, temperatures = predictions_of_runs(*files)
    save_predictions(further, scores, temperatures)
    join_predictions(path, *([path] if path.exists() else []), further)
    further.unlink()


def _replace_comparisons(path: Path, here: pd.DataFrame, models: set[str]) -> None:
    """Replace the rows that have one of these models."""
    published, computed = _text(path), _as_text(here, "%.6g")
    missing = models - set(published["model"]) - set(published["other"])
    if missing:
        raise InputError(
            f"{path.name}: found no rows of {', '.join(sorted(missing))}, expected some. Publish the dataset whole"
        )
    concerned = published["model"].isin(models) | published["other"].isin(models)
    replaced = computed.set_index(_PAIR).loc[pd.MultiIndex.from_frame(published[concerned][_PAIR])].reset_index()
    replaced.index = published.index[concerned]
    pd.concat([published[~concerned], replaced[published.columns]]).sort_index().to_csv(path, index=False)
