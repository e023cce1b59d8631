"""The outputs: every table, every figure and the page of claims, the evidence that each shows, and its files.

An output is a function of evidence folders `results/<evidence>/<name>/evidence/`. A name is a dataset, a study, `benchmark` or
`theory`. Everything else that lists outputs or evidence files derives from here.

Datasets and studies of the user's own, which the repository's files do not have, are in none of its outputs: such a dataset has
outputs of its own, `own/<dataset>/<output>`.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from replication.runs.gather import RECORDS, files_behind
from replication.runs.gather import TABLES as GATHERED
from replication.runs.models import CLAI
from replication.runs.record import RUNS
from replication.runs.settings import cells, has_recordings, raw_dataset
from replication.runs.tuning import PREFIX

BENCHMARK = "benchmark"
BENCHMARK_TITLE = "Random images and embeddings"
BENCHMARK_PARTS = ("schedules", "growth")
"""Time and memory are measured in these parts, a job each (`replication.experiments.schedules`)."""
THEORY = "theory"

_FORMS = {"table": ("tex", "csv", "json"), "figure": ("pdf", "png", "csv", "json"), "claims": ("md", "csv", "json")}

_CONFIG = Path(__file__).parents[3] / "workflow/config"
_DECLARED = yaml.safe_load((_CONFIG / "outputs.yaml").read_text())
OUTPUTS: dict[str, dict[str, list[str]]] = {name: shown for name, shown in _DECLARED.items() if name != "own"}
"""All outputs, each with the names and files of the evidence that it shows; those beyond the paper are in `supplement/`."""
OWN: dict[str, dict[str, list[str]]] = _DECLARED["own"]
"""The outputs of a dataset of the user's own, each with its files, and whether it is of samples or recordings."""
_REPOSITORY = {
    block: frozenset(yaml.safe_load((_CONFIG / f"{block}.yaml").read_text())[block])
    for block in ("datasets", "studies")
}
TABLES, FIGURES = (
    {name: shown for name, shown in OUTPUTS.items() if Path(name).name.startswith(kind)} for kind in ("table", "figure")
)
OF_CLAIMS = "supplement/figureS5"
"""The figure that is drawn from the judged claims."""
WHOLE_COHORTS = ("mimic-iv", "challenge2019")
"""The cohorts of sepsis with all their patients: the paper's, and its substitute."""
PREDICTED = (*TABLES["table1"]["names"], *WHOLE_COHORTS, "challenge2019-septic", "mimic-iv-demo")
"""Names whose evidence holds the predictions of all runs: datasets of tables 1 and 3, the demo."""
VERIFIED_TABLES = ("table1", "table3")
"""The tables that are computed again from published predictions."""
CLAIMS = "claims"
CLAIM_TEXTS: dict[str, Any] = yaml.safe_load((_CONFIG / "claims.yaml").read_text())
"""The words of claims, by number below `claims`; each has a page of its own."""

SAMPLES = "samples.parquet"
"""File of an evidence folder that holds the labels of the test samples."""


def predictions_of(model: str) -> str:
    """Return the name of the file of an evidence folder that holds a model's predictions."""
    return f"predictions_{model}.parquet"


DESCRIPTION = "dataset.json"
"""File of an evidence folder that describes the data."""
_SAMPLES_FILES = ("comparisons.csv", "tsne.csv.gz", "stages.csv.gz")
_RECORDINGS_FILES = ("intervals.csv", "signals.csv", "latent.csv", "areas.csv")
_VOTES = "votes.csv.gz"

PUBLISHED_MODELS = (*CLAI, "cross-entropy")
"""The models of which the first run on each dataset of table 1 and each whole cohort is published whole."""
PICTURED_MODEL = "clai-m"
"""The one whose stages figure 1 shows, and whose votes figure S1: the paper names none, and proposes the Mahalanobis form."""
MODEL_FILES = ("model.json", "model.safetensors", "README.md")
"""Files of a published model."""
_ONLY_FROM_PATH = ("arrays", "feature_table", "image_folder")
"""Sources that download nothing."""


def kind_of(output: str) -> str:
    """Return `table`, `figure` or `claims`."""
    return next(kind for kind in _FORMS if Path(output).name.startswith(kind))


def files_of_outputs(folder: str, outputs: Collection[str] = OUTPUTS) -> list[str]:
    """Return the rendered files of these outputs in `folder`, paper_figures or paper_figures/mini."""
    files = [f"{folder}/{output}.{form}" for output in outputs for form in _FORMS[kind_of(output)]]
    return [*files, *(claim_pages(folder) if CLAIMS in outputs else [])]


def claim_pages(folder: str) -> list[str]:
    """Return the page of each claim in `folder`."""
    return [f"{folder}/{CLAIMS}/{number}.md" for number in CLAIM_TEXTS["claims"]]


def evidence_behind(output: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names whose evidence an output shows, whether it is available or not."""
    if output.startswith("own/"):
        return [output.split("/")[1]]
    own = _REPOSITORY["datasets"]
    tunings = [name for name, tuning in settings["tuning"].items() if tuning.get("dataset", name) in own]
    groups = {
        "every dataset": [name for name in settings["datasets"] if name in _REPOSITORY["datasets"]],
        "every tuning": [f"{PREFIX}{name}" for name in tunings],
        "every tuned dataset": [name for name in tunings if name in own],
    }
    return [name for entry in OUTPUTS[output]["names"] for name in groups.get(entry, [entry])]


def own_outputs(settings: Mapping[str, Any]) -> list[str]:
    """Return the outputs of the datasets that are the user's own."""
    return [
        f"own/{name}/{output}"
        for name in settings["datasets"]
        if name not in _REPOSITORY["datasets"]
        for output, shown in OWN.items()
        if ("recordings" if has_recordings(settings, name) else "samples") in shown["of"]
    ]


def of_kind(kind: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the outputs of a kind, `table` or `figure`, those of the user's own datasets included."""
    return [output for output in [*OUTPUTS, *own_outputs(settings)] if kind_of(output) == kind]


def layout_of(output: str) -> str:
    """Return the name of an output's layout and caption, which datasets of the user's own share: own/<output>."""
    return f"own/{Path(output).name}" if output.startswith("own/") else output


def descriptions(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return `title`, `needs` and what else outputs say of each dataset, study or benchmark, and the `cells` of a study."""
    kept = ("title", "needs", "substitute_for", "class_labels")
    entries: dict[str, dict[str, Any]] = {
        name: {key: entry[key] for key in kept if key in entry} for name, entry in settings["datasets"].items()
    }
    for name, study in settings["studies"].items():
        title, needs = (entries[study["dataset"]][key] for key in ("title", "needs"))
        about = {"title": f"{title}, study {name}", "needs": f"{needs} and evidence=real"}
        entries[name] = {**about, "cells": cells(settings, name)}
    entries[BENCHMARK] = {"title": BENCHMARK_TITLE, "needs": "evidence=real (no download)"}
    return {name: entries[name] for name in names if name != THEORY}


def evidence_files(root: str, name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the evidence files of a name below `root`; below results/published, which has no rows of patients, those there."""
    files: list[str]
    if name == THEORY:
        files = ["theory.csv", RUNS]
    elif name == BENCHMARK:
        files = ["benchmark.csv", RUNS, DESCRIPTION]
    elif name in settings["studies"]:
        files = ["metrics.csv", "history.csv", RUNS, DESCRIPTION]
    else:
        gathered = [*(f"{table}.csv" for table in GATHERED), *RECORDS]
        files = [file for file in gathered if files_behind(settings, name, file)]
        files += [*(_RECORDINGS_FILES if has_recordings(settings, name) else _SAMPLES_FILES), DESCRIPTION]
        pictured = name in OUTPUTS["supplement/figureS1"]["names"]
        files += [_VOTES] if pictured and PICTURED_MODEL in settings["datasets"][name]["models"] else []
    return _paths(root, name, files)


def prediction_files(root: str, name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the files of test samples and of each model's predictions below `root`, which no output shows, if it has any."""
    if name not in PREDICTED:
        return []
    return _paths(root, name, [SAMPLES, *map(predictions_of, settings["datasets"][name]["models"])])


def _paths(root: str, name: str, files: Iterable[str]) -> list[str]:
    paths = [f"{root}/{name}/evidence/{file}" for file in files]
    return [path for path in paths if Path(path).exists()] if _published(root) else paths


def published_models(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the files below `root` of every model to publish: none of credentialed data."""
    datasets = [
        name
        for name in dict.fromkeys([*TABLES["table1"]["names"], *WHOLE_COHORTS])
        if name in available(root, settings) and not settings["datasets"][name].get("credentialed", False)
    ]
    return [
        f"{root}/{name}/models/{model}/{file}"
        for name in datasets
        for model in settings["datasets"][name]["models"]
        if model in PUBLISHED_MODELS
        for file in MODEL_FILES
    ]


def available(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names that have evidence below `root`: there already (published), or computable with the settings."""
    if _published(root):
        names = [*settings["datasets"], *settings["studies"], BENCHMARK, THEORY]
        return [name for name in names if evidence_files(root, name, settings)]
    datasets = [name for name in settings["run"] if _accessible(name, settings)]
    studies = {BENCHMARK: True} | {name: study["dataset"] in datasets for name, study in settings["studies"].items()}
    return [*datasets, *(name for name in settings["run_studies"] if studies[name]), THEORY]


def predicted(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the datasets and studies whose evidence below `root` has predictions."""
    return [name for name in available(root, settings) if prediction_files(root, name, settings)]


def modelled(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the datasets with published models below `root` whose data are at hand."""
    return [
        name
        for name in available(root, settings)
        if name in settings["datasets"]
        and any(Path(root, name).glob("models/*/model.json"))
        and (settings["miniature"] or settings["datasets"][raw_dataset(settings, name)]["path"])
    ]


def all_evidence(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return every evidence file below `root`, there or computable, predictions included."""
    return [
        file
        for name in available(root, settings)
        for files in (evidence_files, prediction_files)
        for file in files(root, name, settings)
    ]


def evidence_inputs(output: str, root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the evidence files below `root` that an output is rendered from."""
    names, shown = evidence_behind(output, settings), {*files_of(output), DESCRIPTION}
    there = names if output.startswith("own/") else available(root, settings)
    behind = [file for name in names if name in there for file in evidence_files(root, name, settings)]
    return [file for file in behind if Path(file).name in shown]


def files_of(output: str) -> list[str]:
    """Return the files of evidence that an output shows."""
    return (OWN[Path(output).name] if output.startswith("own/") else OUTPUTS[output])["files"]


def _published(root: str) -> bool:
    return Path(root).name == "published"


def _accessible(dataset: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a dataset can be downloaded or its settings have a path to it."""
    datasets = settings["datasets"]
    owner = datasets[raw_dataset(settings, dataset)]
    needs_path = owner.get("credentialed", False) or owner["source"] in _ONLY_FROM_PATH
    return settings["miniature"] or not needs_path or owner["path"] is not None
