# What the wildcards of the other files stand for: settings, runs, evidence, files of the library. Makes no files.
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

REPOSITORY = Path(workflow.basedir)
sys.path.insert(0, str(REPOSITORY / "src"))  # the library of this repository, whether installed or not

import replication.runs.settings as run_settings
from clai.errors import InputError
from replication.runs.controls import (
    COMPARED,
    CONTROLS,
    EMBEDDINGS,
    INPUTS,
    OBJECTIVES,
    SIGNALS,
    TRACED_ONLY,
    UNTRAINED,
    compared_runs,
    control_runs,
    signal_runs,
    traced_runs,
)
from replication.runs.jobs import remove_finished_checkpoints
from replication.runs.identity import RunId
from replication.runs.models import CELLS, CLAI, EMBEDDING, EMBEDDING_BASELINES, MODELS, fitted_by
from replication.runs.outputs import (
    BENCHMARK,
    CLAIMS,
    FIGURES,
    OUTPUTS,
    PICTURED_MODEL,
    PUBLISHED_MODELS,
    TABLES,
    PREDICTED,
    PREDICTED_STUDIES,
    THEORY,
    VERIFIED_TABLES,
    all_evidence,
    available,
    descriptions,
    evidence_behind,
    evidence_files,
    evidence_inputs,
    files_of_outputs,
    forms_of,
    kind_of,
    prediction_files,
    published_models,
)
from replication.runs.record import file_digest


def library(*folders):
    """The Python files of these folders of src; those of the miniature's generators only where they are named."""
    files = [path for folder in folders for path in Path("src", folder).rglob("*.py")]
    return sorted(
        str(path) for path in files if "miniature" not in path.parts or folders == ("replication/datasets/miniature",)
    )


# What a job rests on: an edit to one of these files runs it again.
DATA = library("replication/datasets", "replication/runs")
TRAINING = [*library("clai", "replication/models"), *DATA]
MEASURES = library("replication/experiments", "replication/metrics")
EVALUATION = [*TRAINING, *MEASURES]
RENDERING = library("replication/report", "replication/benchmark", "replication/metrics", "replication/runs")

OF_HOURS = fitted_by("fit_row_classifiers")  # one job fits them all
OF_FEATURES = [model for model in OF_HOURS if not MODELS[model].recordings_only]
FEATURE_BLOCKS = [f"baselines.{model.replace('-', '_')}" for model in OF_FEATURES]  # their settings


@cache
def settings(evidence):
    """All settings of a kind of evidence, mini or real."""
    try:
        overrides = workflow.config_settings.overwrite_config
        return run_settings.load_settings(REPOSITORY, overrides, mini=evidence == "mini")
    except InputError as error:
        raise WorkflowError(str(error)) from error


for kind in ("mini", "real"):
    settings(kind)  # refuses a bad setting before anything runs

VARIANT = "(" + "|".join(settings("real")["variants"]) + ")"


wildcard_constraints:
    evidence="mini|real",
    dataset="|".join(settings("real")["datasets"]),
    model="|".join(MODELS),
    run=r"seed\d+(/fold\d+)?",
    mini="(mini/)?",
    study="|".join(settings("real")["studies"]),
    cell=rf"{VARIANT}(_{VARIANT})*|({'|'.join(MODELS)})_trial\d+",


@cache
def model_settings(evidence, dataset, *models):
    """The settings of a dataset's runs, its overrides merged in, and what the trials chose for these models."""
    return run_settings.model_settings(settings(evidence), dataset, *models)


@cache
def cell_settings(evidence, study, cell):
    """The settings of a cell's runs."""
    return run_settings.cell_settings(settings(evidence), study, cell)


@cache
def study_settings(evidence, study):
    """The settings that all cells of a study share."""
    return run_settings.study_settings(settings(evidence), study)


def settings_of(wildcards, models=()):
    """The settings of the wildcards' cell, study or dataset; a dataset's with what the trials chose for these models or that of the wildcards."""
    if "cell" in wildcards.keys():
        return cell_settings(wildcards.evidence, wildcards.study, wildcards.cell)
    if "study" in wildcards.keys():
        return study_settings(wildcards.evidence, wildcards.study)
    if not models and "model" in wildcards.keys():
        models = [wildcards.model]
    return model_settings(wildcards.evidence, wildcards.dataset, *models)


def read_by(model, *keys, together=()):
    """Params function: the settings that fitting `model` reads, and `keys`; a change of another one reruns nothing.

    `together` are the models that the same job fits, `model` among them.
    """
    models = together or [model]
    reads = list(dict.fromkeys([key for name in models for key in MODELS[name].reads] + list(keys)))
    return lambda wildcards: run_settings.select(settings_of(wildcards, models), reads)


def read_by_model(*keys):
    """Params function: the same for the model of the wildcards, or of their cell."""
    return lambda wildcards: read_by(dict(wildcards).get("model") or settings_of(wildcards)["model"], *keys)(wildcards)


def read_by_embedding(*keys):
    """Params function: the same for the model whose network the embedding of the wildcards has; with that `model`."""

    def reads(wildcards):
        model = EMBEDDINGS[wildcards.embedding].model
        return read_by(model, *keys)(wildcards) | {"model": model}

    return reads


def only(*keys, together=()):
    """Params function: these settings, with what the trials chose for the models that the job fits."""
    return lambda wildcards: run_settings.select(settings_of(wildcards, together), keys)


def threads_of(wildcards):
    return settings_of(wildcards)["threads"]


def study_samples(wildcards):
    """Training samples that a study's cells use; None for all."""
    return settings(wildcards.evidence)["studies"][wildcards.study]["overrides"].get("training", {}).get("samples")


def cores_of_benchmark(wildcards):
    """The whole machine, so that no other job runs beside a measurement; on a cluster its profile asks for a node alone.

    The miniature shows that it can be measured; its numbers mean nothing.
    """
    own = settings(wildcards.evidence)["threads"]
    return own if wildcards.evidence == "mini" else workflow.resource_settings.cores or own
