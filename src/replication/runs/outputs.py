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

from replication.runs.controls import CONTROLS
from replication.runs.models import CLAI
from replication.runs.record import RUNS, SHARED
from replication.runs.settings import cells, has_recordings, raw_dataset
from replication.runs.tuning import PREFIX

BENCHMARK = "benchmark"
BENCHMARK_TITLE = "Random images and embeddings"
BENCHMARK_PARTS = ("schedules", "growth")
"""Time and memory are measured in these parts, a job each (`replication.experiments.complexity`)."""
THEORY = "theory"

_FORMS = {"table": ("tex", "csv", "json"), "figure": ("pdf", "png", "csv", "json"), "claims": ("md", "csv", "json")}

_CONFIG = Path(__file__).parents[3] / "workflow/config"
_DECLARED = yaml.safe_load((_CONFIG / "outputs.yaml").read_text())
OUTPUTS: dict[str, list[str]] = {name: shown for name, shown in _DECLARED.items() if name != "own"}
"""All outputs, each with the names whose evidence it shows; those beyond the paper's own are in a folder of their own."""
OWN: dict[str, list[str]] = _DECLARED["own"]
"""The outputs of a dataset of the user's own, by whether it has samples or recordings."""
_REPOSITORY = {
    block: frozenset(yaml.safe_load((_CONFIG / f"{block}.yaml").read_text())[block])
    for block in ("datasets", "studies")
}
TABLES, FIGURES = (
    {name: shown for name, shown in OUTPUTS.items() if Path(name).name.startswith(kind)} for kind in ("table", "figure")
)
OF_CLAIMS = "supplement/figureS7"
"""The figure that is drawn from the judged claims."""
WHOLE_COHORTS = ("mimic-iv", "challenge2019")
"""The cohorts of sepsis with all their patients: the paper's, and its substitute."""
PREDICTED = (*TABLES["table1"], *WHOLE_COHORTS, "challenge2019-septic", "mimic-iv-demo")
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


RECORDS = (RUNS, SHARED)
"""Files of an evidence folder that hold the records of its runs."""
_EVERY_RUN = ("metrics.csv", "history.csv")
_DESCRIPTION = "dataset.json"
_SAMPLES_FILES = (
    *_EVERY_RUN, "reliability.csv", "comparisons.csv", "similarity.csv", "tsne.csv.gz", "stages.csv.gz",
)  # fmt: skip
_RECORDINGS_FILES = (
    *_EVERY_RUN, "reliability.csv", "intervals.csv", "decision.csv", "signals.csv", "latent.csv", "areas.csv",
)  # fmt: skip

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
    tuned = [dataset for dataset in settings["tuning"] if dataset in _REPOSITORY["datasets"]]
    groups = {
        "every dataset": [name for name in settings["datasets"] if name in _REPOSITORY["datasets"]],
        "every study": [name for name in settings["studies"] if name in _REPOSITORY["studies"]],
        "every tuning": [f"{PREFIX}{dataset}" for dataset in tuned],
        "every tuned dataset": tuned,
    }
    return [name for entry in OUTPUTS[output] for name in groups.get(entry, [entry])]


def own_outputs(settings: Mapping[str, Any]) -> list[str]:
    """Return the outputs of the datasets that are the user's own."""
    return [
        f"own/{name}/{output}"
        for name in settings["datasets"]
        if name not in _REPOSITORY["datasets"]
        for output in OWN["recordings" if has_recordings(settings, name) else "samples"]
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
    files: tuple[str, ...]
    if name == THEORY:
        files = ("theory.csv", *RECORDS)
    elif name == BENCHMARK:
        files = ("benchmark.csv", *RECORDS, _DESCRIPTION)
    elif name in settings["studies"]:
        files = (*_EVERY_RUN, *RECORDS, _DESCRIPTION)
    else:
        own = _RECORDINGS_FILES if has_recordings(settings, name) else _SAMPLES_FILES
        controls = [f"{control}.csv" for control, (_, runs) in CONTROLS.items() if runs(settings, name)]
        files = (*own, *controls, *RECORDS, _DESCRIPTION)
        if name in OUTPUTS["supplement/figureS1"] and PICTURED_MODEL in settings["datasets"][name]["models"]:
            files = (*files, "votes.csv.gz")
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
        for name in dict.fromkeys([*TABLES["table1"], *WHOLE_COHORTS])
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
    behind = evidence_behind(output, settings)
    names = behind if output.startswith("own/") else available(root, settings)
    return [file for name in behind if name in names for file in evidence_files(root, name, settings)]


def _published(root: str) -> bool:
    return Path(root).name == "published"


def _accessible(dataset: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a dataset can be downloaded or its settings have a path to it."""
    datasets = settings["datasets"]
    owner = datasets[raw_dataset(settings, dataset)]
    needs_path = owner.get("credentialed", False) or owner["source"] in _ONLY_FROM_PATH
    return settings["miniature"] or not needs_path or owner["path"] is not None
