"""Publication: finished runs become tracked evidence.

A name without published evidence is published whole, a dataset with its packed models. Otherwise the runs are added that it
lacks, and its models are compared anew from their predictions; or it is replaced whole, on demand. A study need not be finished:
its tables say how many runs they rest on.
"""

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clailearn.errors import InputError
from clailearn.model import load
from replication.experiments.predictions import add_runs, compare_predictions, gather_predictions
from replication.report.evidence import PATIENT_LEVEL, PROJECTED, Evidence, is_open, read_description, withheld
from replication.report.verify import recompute
from replication.runs.outputs import (
    COMPARISONS,
    RECORDS,
    evidence_files,
    files_behind,
    keeps_predictions,
    prediction_files,
    published_models,
    result_file,
)
from replication.runs.registry import BENCHMARK, EMBEDDINGS, THEORY
from replication.runs.run import (
    DESCRIPTION,
    EVALUATIONS,
    RUNS,
    SAMPLES,
    RunId,
    predictions_of,
    read_records,
    records_of,
    write_gathered,
    write_records,
)
from replication.runs.settings import runs_of_study, training_samples

LARGEST = {".parquet": 5 * 2**20, ".safetensors": 4 * 2**20}
"""Largest sizes of tracked files in bytes: predictions of a model (3 MB for a million hours), and weights with references."""
LARGEST_TABLE = 2 * 2**20
"""Largest size of every other file: git keeps every version of it."""


def publish(
    what: Sequence[str], source: Path, target: Path, settings: Mapping[str, Any], replace: Sequence[str] = ()
) -> list[str]:
    """Publish datasets and studies from evidence such as results/real; return the files that changed or went, below `target`.

    Those in `replace` are replaced whole. Raises InputError where a dataset is unfinished, where a study has no finished run, or
    lacks one that it would replace, and for what was made with uncommitted changes or belongs to other data than the published
    runs. Nothing has been changed then.
    """
    files: dict[Path, Path] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in dict.fromkeys([*what, *replace]):
            root, published = source, target / name / "evidence"
            if name in settings["studies"] and not (root / name / "evidence" / RUNS).exists():
                root = Path(temporary, "finished")
                _gather_finished(name, source, settings, root / name / "evidence")
            if name in settings["studies"] and name in replace and (published / RUNS).exists():
                _refuse_loss(published / RUNS, root / name / "evidence" / RUNS, source)
            if name in replace or not published.is_dir():
                files |= _whole(name, root, settings)
            else:
                together = Path(temporary, target.name, name, "evidence")
                shutil.copytree(published, together)
                _add(root / name / "evidence", together)
                files |= {file.relative_to(together.parents[1]): file for file in sorted(together.iterdir())}
        there = {path for path in files if (target / path).exists()}
        same = {path for path in there if filecmp.cmp(files[path], target / path, False)}
        tracked = {file.relative_to(target) for path in files for file in (target / path.parent).glob("*")}
        gone = tracked - files.keys()
        changed = (files.keys() - same) | gone
        folders = {path.parent for path in changed}
        copied = promote({path: file for path, file in files.items() if path.parent in folders}, target)
    return sorted(map(str, changed & (copied | gone)))


def _whole(name: str, root: Path, settings: Mapping[str, Any]) -> dict[Path, Path]:
    """Return the files of a name, of evidence and models, by their paths below `root`; raise InputError where one is missing."""
    known = [*settings["datasets"], *settings["studies"], BENCHMARK, THEORY]
    if name not in known:
        raise InputError(f"found no dataset and no study {name}, expected one of {', '.join(known)}")
    predictions = prediction_files(str(root), name, settings)
    if name in settings["studies"]:  # it may lack the runs of a cell
        predictions = [file for file in predictions if Path(file).exists()]
    files = [*evidence_files(str(root), name, settings), *predictions]
    files += [file for file in published_models(str(root), settings) if Path(file).parts[-4] == name]
    _refuse_unmeasured(root / name / "evidence")
    return {file.relative_to(root): _existing(file) for file in map(Path, files)}


def _gather_finished(name: str, source: Path, settings: Mapping[str, Any], folder: Path) -> None:
    runs = [source / str(run) for run in runs_of_study(settings, name)]
    result = result_file(settings, name)
    finished = [run for run in runs if (run / result).exists()]
    if not finished:
        compute = f"snakemake {runs[0] / result}"
        raise InputError(f"{source / name}: found no finished run, expected some. Compute one: {compute}")
    folder.mkdir(parents=True)
    behind = {file: [run / RECORDS.get(file, file) for run in finished] for file in (result, "history.csv", RUNS)}
    behind[DESCRIPTION] = [source / path for path in files_behind(settings, name, DESCRIPTION)]
    for file, paths in behind.items():
        write_gathered(folder / file, paths, study=True, samples=training_samples(settings, name))
    predictions = [run / "predictions.parquet" for run in finished]
    if settings["studies"][name].get("predictions"):
        compared = compare_predictions(behind[DESCRIPTION][0], predictions)
        compared.to_csv(folder / COMPARISONS, index=False, float_format="%.6g")
    if keeps_predictions(settings, name):
        for cell in {run.parent.name for run in finished}:
            gather_predictions(folder / predictions_of(cell), [p for p in predictions if p.parts[-3] == cell])
        gather_predictions(folder / SAMPLES, behind[DESCRIPTION])


def _refuse_loss(published: Path, here: Path, source: Path) -> None:
    """Raise InputError for a published run that the finished ones lack, whose records are `here`."""
    known, found = ({record["run"] for record in read_records(path)} for path in (published, here))
    if lost := sorted(known - found):
        raise InputError(
            f"{source}: found no finished run {lost[0]}, which is published, expected all of them. Compute it"
        )


def _existing(file: Path) -> Path:
    if file.is_symlink() or not file.is_file():
        state = "a link" if file.is_symlink() else "no file"
        raise InputError(f"{file}: found {state}, expected a file of evidence. Compute it: snakemake {file}")
    return file


def _add(here: Path, evidence: Path) -> None:
    """Add to a copy of published evidence the runs that it lacks of the evidence `here`, and compare its models anew."""
    _refuse_unmeasured(here)
    name, known = evidence.parent.name, {record["run"] for record in read_records(evidence / RUNS)}
    new = [record["run"] for record in read_records(_existing(here / RUNS)) if record["run"] not in known]
    runs = list(map(RunId.parse, new))
    if not runs:
        return
    if read_description(here / DESCRIPTION).get("arrays") != read_description(evidence / DESCRIPTION).get("arrays"):
        found = f"{here / DESCRIPTION}: found other arrays than the published ones"
        raise InputError(f"{found}. Replace all: --replace {name}")
    compared, predicted = evidence / COMPARISONS, (evidence / SAMPLES).exists()
    if compared.exists() and not predicted:
        raise InputError(f"{runs[0]}: {compared.name} needs predictions of all runs. Replace all: --replace {name}")
    for source in sorted(here.glob("*.csv")):
        _add_rows(source, evidence / source.name, runs)
    for file in (RUNS, EVALUATIONS):
        sources = [folder / file for folder in (here, evidence) if (folder / file).exists()]
        if sources:  # of two records of a run the published one stays
            records = {record["run"]: record for path in sources for record in read_records(path)}
            write_records(evidence / file, records.values())
    for model in sorted({run.cell for run in runs}) if predicted else []:
        file, replicates = predictions_of(model), {run.replicate for run in runs if run.cell == model}
        add_runs(evidence / file, _existing(here / file), replicates)
    if compared.exists():
        again = recompute(Evidence.found(evidence.parents[1], {name: {"title": name, "needs": ""}}), name)
        again[compared.name].to_csv(compared, index=False, float_format="%.6g")


def _add_rows(source: Path, path: Path, runs: Iterable[RunId]) -> None:
    """Add the rows of these runs to a published table; they are read as text, so that writing them again changes no number."""
    table, added = pd.read_csv(source, dtype=str, keep_default_na=False), {(run.cell, run.replicate) for run in runs}
    if not path.exists() or "seed" not in table:
        return
    cells, replicates = table["cell" if "cell" in table else "model"], _replicates(table)
    published = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "model" in table:  # what is compared without a training has no run
        known = set(zip(published["model"], "seed" + published["seed"], strict=True))
        added |= {key for key in zip(cells, replicates, strict=True) if key[0] in EMBEDDINGS} - known
    further = table[[key in added for key in zip(cells, replicates, strict=True)]]
    if len(further):
        pd.concat([published, further.reindex(columns=published.columns, fill_value="")]).to_csv(path, index=False)


def _replicates(table: pd.DataFrame) -> pd.Series:
    """Return the seed and fold of each row of a table of texts, such as seed0/fold1."""
    folds = table.get("fold", pd.Series("", table.index))
    return "seed" + table["seed"] + folds.where(folds == "", "/fold" + folds)


def _refuse_unmeasured(evidence: Path) -> None:
    """Raise InputError for a run with a record and no result: its evaluation was not finished when results were gathered."""
    for path in (evidence / name for name in ("metrics.csv", "alignment.csv")):
        if path.exists() and (evidence / RUNS).exists():
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            measured = set(table["name"] + "/" + table["cell"] + "/" + _replicates(table))
            if lost := [record["run"] for record in read_records(evidence / RUNS) if record["run"] not in measured]:
                raise InputError(f"{path}: found no row of {lost[0]}, which has a record. Compute it: snakemake {path}")


def promote(files: Mapping[Path, Path], target: Path) -> set[Path]:
    """Copy files of evidence and of packed models to their paths below `target`, whose folders are replaced whole.

    What shows single patients stays out unless the licence of their data is open. Returns the paths of what was copied.

    Raises:
        InputError: a run was made with uncommitted changes, or a file is a link or too large. Nothing has been copied then.
    """
    kept = {path: file for path, file in files.items() if not withheld(_existing(file), (*PATIENT_LEVEL, *PROJECTED))}
    for file in kept.values():
        largest = LARGEST.get(file.suffix, LARGEST_TABLE)
        if (size := file.stat().st_size) > largest:
            raise InputError(f"{file} has {size} bytes, more than the {largest} of a tracked file: show less")
    for path, folder in {path.parent: file.parent for path, file in kept.items()}.items():
        if path.parent.name != "models":
            _refuse_uncommitted(records_of(folder), folder / RUNS)
            continue
        model = load(folder)
        _refuse_uncommitted([model.record["record"] | {"run": model.record["run"]}], folder)
        if model.inputs.kind == "recordings" and not is_open(model.record["data"]["licence"]):
            kept = {other: file for other, file in kept.items() if other.parent != path}
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=target) as temporary:
        for path, file in kept.items():
            new = Path(temporary, path)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, new)
        for folder in sorted({path.parent for path in kept}):  # all is written and checked; git has what they replace
            shutil.rmtree(target / folder, ignore_errors=True)
            (target / folder).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(temporary, folder), target / folder)
    return set(kept)


def _refuse_uncommitted(records: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Raise InputError if the code of a run, or of its evaluation, was not that of a commit; an unknown state counts as none."""
    for record in records:
        for part in (record, record.get("evaluation", record)):
            if part.get("dirty", True) is not False or not isinstance(part.get("commit"), str):
                raise InputError(
                    f"{file}: run {record['run']} was made with uncommitted changes on {part.get('commit')}; published runs must "
                    "be those of a commit. Commit, delete the run and compute it again"
                )
