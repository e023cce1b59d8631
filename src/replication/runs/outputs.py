"""Which runs and files stand behind each name, and which evidence behind each output.

Datasets and studies of the user's own, which the repository's files do not have, are in none of its outputs: such a dataset has
outputs of its own, `own/<dataset>/<output>`.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from replication.runs import registry
from replication.runs.registry import BENCHMARK, CLAI, CLAIMS, MODELS, OUTPUTS, OWN, PREFIX, THEORY, fitted_on
from replication.runs.run import DESCRIPTION, EVALUATIONS, RUNS, SAMPLES, RunId, predictions_of
from replication.runs.settings import (
    cells,
    data_of,
    dataset_settings,
    has_recordings,
    raw_dataset,
    runs_of_model,
    runs_of_study,
    seeds_of,
)

GATHERED = [f"{table}.csv" for table in ("metrics", "history", "reliability", "similarity", "alignment", "agreement")]
"""Files of evidence that put tables of single runs together."""
RECORDS = {RUNS: "run.json", EVALUATIONS: "evaluation.json"}
"""Files of evidence that put records of single runs together, with the file of a run."""
COMPARISONS = "comparisons.csv"
"""File of evidence with the differences between models or cells, computed from the predictions of runs."""
_SAMPLES_FILES = (COMPARISONS, "tsne.csv.gz", "stages.csv.gz")
_RECORDINGS_FILES = ("signals.csv", "latent.csv", "areas.csv")
_FORMS = {
    "table": ("tex", "md", "csv", "json"),
    "figure": ("pdf", "png", "csv", "json"),
    "claims": ("md", "csv", "json"),
}
_ONLY_FROM_PATH = ("arrays", "feature_table", "image_folder")
"""Sources that download nothing."""


# Runs


def runs_of_embedding(settings: Mapping[str, Any], dataset: str, name: str) -> list[RunId]:
    """Return the runs of an embedding with `SEEDS`; of a trained model those that the dataset has as well."""
    seeds = [seed + settings["seed_base"] for seed in registry.SEEDS]
    if name in MODELS:
        return [run for run in runs_of_models(settings, dataset, [name]) if run.seed in seeds]
    return [RunId(dataset, name, seed) for seed in seeds if seed in seeds_of(settings, dataset)]


def runs_of_models(settings: Mapping[str, Any], dataset: str, models: Iterable[str]) -> list[RunId]:
    """Return the runs of those of the models that the dataset has, in its order."""
    own = [model for model in settings["datasets"][dataset]["models"] if model in models]
    return [run for model in own for run in runs_of_model(settings, dataset, model)]


def projected_run(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the run on samples whose embeddings are projected: that of the first kernel in tables, of the smallest seed."""
    runs = [] if has_recordings(settings, dataset) else runs_of_models(settings, dataset, CLAI)
    return sorted(runs, key=lambda run: (CLAI.index(run.cell), run.seed))[:1]


def compared_runs(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the runs whose classes are compared; the inputs are the same in every run, so they count once."""
    last = {registry.INPUTS: 1}
    return [run for name in registry.COMPARED for run in runs_of_embedding(settings, dataset, name)[: last.get(name)]]


def signal_runs(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the runs on recordings whose signals are described as the kernel sees them: CLaI's, and those of cross-entropy."""
    return runs_of_models(settings, dataset, registry.SIGNALS) if has_recordings(settings, dataset) else []


def control_parts(settings: Mapping[str, Any], run: RunId) -> list[str]:
    """Return what the evaluation of a trained model adds for controls: `classes`, `rules` and `signals`, where they apply."""
    parts = {
        "classes": compared_runs(settings, run.name),
        "rules": runs_of_embedding(settings, run.name, "clai-m"),
        "signals": signal_runs(settings, run.name),
    }
    return [part for part, runs in parts.items() if run in runs]


# Evidence


def files_behind(settings: Mapping[str, Any], name: str, file: str) -> list[str]:
    """Return the files of runs, or of data, below the results, behind a file of evidence; none if a dataset has no such file."""
    if file in (DESCRIPTION, SAMPLES):
        return [f"{data_of(settings, name)}/prepared/{DESCRIPTION}"]
    of_a_cell = Path(file).suffix == ".parquet"
    single = "predictions.parquet" if of_a_cell or file == COMPARISONS else RECORDS.get(file, file)
    if name in settings["studies"]:
        runs = runs_of_study(settings, name)
        return [f"{run}/{single}" for run in runs if not of_a_cell or file == predictions_of(run.cell)]
    every, trained = (runs_of_models(settings, name, models) for models in (MODELS, fitted_on("samples")))
    compared = [] if has_recordings(settings, name) else compared_runs(settings, name)
    behind = {
        "metrics.csv": every,
        COMPARISONS: every,
        "reliability.csv": every,
        RUNS: every,
        "history.csv": trained,
        EVALUATIONS: trained,
        "similarity.csv": [*(runs_of_models(settings, name, CLAI) if compared else []), *compared],
        "agreement.csv": runs_of_embedding(settings, name, "clai-m"),
        **{predictions_of(model): runs_of_models(settings, name, [model]) for model in MODELS},
    }
    return [f"{run}/{single}" for run in behind.get(file, [])]


def result_file(settings: Mapping[str, Any], name: str) -> str:
    """Return the file of a run that says what it reached: it is there once the run is finished."""
    traced = name in settings["studies"] and settings["studies"][name]["scored_on"] == "alignment"
    return "alignment.csv" if traced else "metrics.csv"


def evidence_files(root: str, name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the evidence files of a name below `root`; below results/published, which has no rows of patients, those there."""
    if name == THEORY:
        files = ["theory.csv", RUNS]
    elif name == BENCHMARK:
        files = ["benchmark.csv", RUNS, DESCRIPTION]
    elif name in settings["studies"]:
        files = [result_file(settings, name), "history.csv", RUNS, DESCRIPTION]
        files += [COMPARISONS] if settings["studies"][name].get("predictions") else []
    else:
        # What is published does not follow the user's settings.
        files = [file for file in [*GATHERED, *RECORDS] if _published(root) or files_behind(settings, name, file)]
        files += [*(_RECORDINGS_FILES if has_recordings(settings, name) else _SAMPLES_FILES), DESCRIPTION]
        pictured = _published(root) or registry.PICTURED_MODEL in settings["datasets"][name]["models"]
        files += ["votes.csv.gz"] if pictured and name in OUTPUTS["supplement/figureS1"]["names"] else []
    return _paths(root, name, files)


def prediction_files(root: str, name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the files of test samples and of each model's or cell's predictions below `root`, where they are kept."""
    if not keeps_predictions(settings, name):
        return []
    if _published(root):
        return sorted(map(str, Path(root, name, "evidence").glob("*.parquet")))
    models = cells(settings, name) if name in settings["studies"] else settings["datasets"][name]["models"]
    return _paths(root, name, [SAMPLES, *map(predictions_of, models)])


def keeps_predictions(settings: Mapping[str, Any], name: str) -> bool:
    """Return whether predictions are evidence: of datasets of the repository, and of studies that publish them."""
    return name in registry.REPOSITORY_DATASETS or settings["studies"].get(name, {}).get("predictions") == "published"


def _paths(root: str, name: str, files: Iterable[str]) -> list[str]:
    paths = [f"{root}/{name}/evidence/{file}" for file in files]
    return [path for path in paths if Path(path).exists()] if _published(root) else paths


def published_models(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the files below `root` of every model to publish: none of credentialed data."""
    there, datasets = available(root, settings), settings["datasets"]
    return [
        f"{root}/{name}/models/{model}/{file}"
        for name in [*OUTPUTS["table1"]["names"], *registry.WHOLE_COHORTS]
        if name in there and not datasets[name].get("credentialed", False)
        for model in datasets[name]["models"]
        if model in registry.PUBLISHED_MODELS
        for file in registry.MODEL_FILES
    ]


def available(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names that have evidence below `root`: there already (published), or computable with the settings."""
    if _published(root):
        names = [*settings["datasets"], *settings["studies"], BENCHMARK, THEORY]
        return [name for name in names if evidence_files(root, name, settings)]
    datasets = [name for name in settings["run"] if _accessible(name, settings)]
    studies = {BENCHMARK: True} | {name: study["dataset"] in datasets for name, study in settings["studies"].items()}
    return [*datasets, *(name for name in settings["run_studies"] if studies[name]), THEORY]


def left_out(settings: Mapping[str, Any]) -> list[str]:
    """Return the datasets without whose path some in `run` are not computed."""
    names = [name for name in settings["run"] if not _accessible(name, settings)]
    return list(dict.fromkeys(raw_dataset(settings, name) for name in names))


def _published(root: str) -> bool:
    return Path(root).name == "published"


def _accessible(dataset: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a dataset can be downloaded or its settings have a path to it."""
    datasets = settings["datasets"]
    owner = datasets[raw_dataset(settings, dataset)]
    needs_path = owner.get("credentialed", False) or owner["source"] in _ONLY_FROM_PATH
    return settings["miniature"] or not needs_path or owner["path"] is not None


def predicted(root: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the datasets whose evidence below `root` has predictions."""
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


# Outputs


def own_datasets(settings: Mapping[str, Any]) -> list[str]:
    """Return the datasets that are the user's own."""
    return [name for name in settings["datasets"] if name not in registry.REPOSITORY_DATASETS]


def own_evidence(root: str, name: str) -> list[str]:
    """Return the evidence files below `root` that all outputs of a dataset of the user's own are rendered from."""
    return _paths(root, name, sorted({DESCRIPTION, *(file for entry in OWN.values() for file in entry["files"])}))


def packed_models(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the model of each dataset of the user's own that is packed: the first that can be."""
    firsts = {}
    for name in own_datasets(settings):
        models = [model for model in settings["datasets"][name]["models"] if model in registry.PUBLISHED_MODELS]
        if models and not dataset_settings(settings, name)["inference"]["shift"]:
            firsts[name] = models[0]
    return firsts


def files_of_outputs(folder: str, outputs: Collection[str] = OUTPUTS) -> list[str]:
    """Return the rendered files of these outputs in `folder`, paper_figures or a folder below it."""
    files = [
        f"{folder}/{output}.{form}"
        for output in outputs
        for kind, forms in _FORMS.items()
        if Path(output).name.startswith(kind)
        for form in forms
    ]
    return [*files, *(claim_pages(folder) if CLAIMS in outputs else [])]


def claim_pages(folder: str) -> list[str]:
    """Return the page of each claim in `folder`."""
    return [f"{folder}/{CLAIMS}/{number}.md" for number in registry.CLAIM_TEXTS["claims"]]


def evidence_behind(output: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names whose evidence an output shows, whether it is available or not."""
    own = registry.REPOSITORY_DATASETS
    tunings = [name for name, tuning in settings["tuning"].items() if tuning.get("dataset", name) in own]
    groups = {
        "every dataset": [name for name in settings["datasets"] if name in own],
        "every tuning": [f"{PREFIX}{name}" for name in tunings],
    }
    return [name for entry in OUTPUTS[output]["names"] for name in groups.get(entry, [entry])]


def declared(output: str) -> dict[str, Any]:
    """Return the entry of an output in outputs.yaml, also of own/<output>."""
    return OWN[Path(output).name] if output.startswith("own/") else OUTPUTS[output]


def evidence_inputs(
    output: str, root: str, settings: Mapping[str, Any], files: Collection[str] | None = None
) -> list[str]:
    """Return the evidence files below `root` that an output is rendered from, or those with the names `files`."""
    there, shown = available(root, settings), files or (*declared(output)["files"], DESCRIPTION)
    names = [name for name in evidence_behind(output, settings) if name in there]
    return [file for name in names for file in evidence_files(root, name, settings) if Path(file).name in shown]


def descriptions(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return `title`, `needs` and what else outputs say of each dataset, study or benchmark, and the `cells` of a study."""
    kept = ("title", "needs", "substitute_for", "raw_of", "class_labels")
    entries: dict[str, dict[str, Any]] = {
        name: {key: entry[key] for key in kept if key in entry} for name, entry in settings["datasets"].items()
    }
    for name, study in settings["studies"].items():
        title, needs = (entries[study["dataset"]][key] for key in ("title", "needs"))
        about = {"title": f"{title}, study {name}", "needs": f"{needs} and evidence=real", "dataset": study["dataset"]}
        entries[name] = {**about, "cells": cells(settings, name)}
    entries[BENCHMARK] = {"title": registry.BENCHMARK_TITLE, "needs": "evidence=real (no download)"}
    return {name: entries[name] for name in names if name != THEORY}
