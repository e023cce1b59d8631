# What the wildcards of the other files stand for: settings, runs, evidence, files of the library. Makes no files.
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

REPOSITORY = Path(workflow.basedir)
sys.path.insert(0, str(REPOSITORY / "src"))  # the library of this repository, whether installed or not

import clai.runs.settings as run_settings
from clai.errors import InputError
from clai.runs.identity import RunId
from clai.runs.jobs import remove_finished_checkpoints
from clai.runs.library import code_files, library_files
from clai.runs.models import CLAI, MODELS, ON_DATASETS, fitted_by
from clai.runs.outputs import (
    BENCHMARK,
    CLAIMS,
    FIGURES,
    OUTPUTS,
    RECORDS,
    TABLES,
    THEORY,
    all_evidence,
    descriptions,
    evidence_behind,
    evidence_inputs,
    files_of_outputs,
    heading_of,
    kind_of,
    title_of,
)

HOURLY = fitted_by("fit_hourly_classifiers")  # one job fits them all


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
    model="|".join(ON_DATASETS),
    run=r"seed\d+(/fold\d+)?",
    mini="(mini/)?",
    study="|".join(settings("real")["studies"]),
    cell=f"{VARIANT}(_{VARIANT})*",


@cache
def dataset_settings(evidence, dataset):
    """The settings of a dataset's runs, its overrides merged in."""
    return run_settings.dataset_settings(settings(evidence), dataset)


@cache
def cell_settings(evidence, study, cell):
    """The settings of a cell's runs."""
    return run_settings.cell_settings(settings(evidence), study, cell)


def settings_of(wildcards):
    """The settings of the wildcards' cell or dataset."""
    if "cell" in wildcards.keys():
        return cell_settings(wildcards.evidence, wildcards.study, wildcards.cell)
    return dataset_settings(wildcards.evidence, wildcards.dataset)


def read_by(model, *keys):
    """Params function: the settings that fitting `model` reads, and `keys`; a change of another one reruns nothing."""
    return lambda wildcards: run_settings.select(settings_of(wildcards), [*MODELS[model].reads, *keys])


def read_by_model(*keys):
    """Params function: the same for the model of the wildcards, or of their cell."""
    return lambda wildcards: read_by(dict(wildcards).get("model") or settings_of(wildcards)["model"], *keys)(wildcards)


def only(*keys):
    """Params function: these settings."""
    return lambda wildcards: run_settings.select(settings_of(wildcards), keys)


def threads_of(wildcards):
    return settings_of(wildcards)["threads"]


def block_of(wildcards):
    return settings_of(wildcards)["inference"]["block"]


def run_of(wildcards):
    """Seed and test fold that a `run` wildcard names; the fold is None where there is none."""
    run = RunId.parse(f"{wildcards.evidence}/model/{wildcards.run}")
    return {"seed": run.seed, "fold": run.fold}


def library(script, *modules):
    """The files of the library that a script, and modules that it imports by name, rest on."""
    return library_files(REPOSITORY, REPOSITORY / "workflow" / "scripts" / f"{script}.py", *modules)


def library_of_source(script):
    """Input function: these files with the module that reads the wildcards' dataset."""
    return lambda wildcards: library(script, f"clai.datasets.{settings_of(wildcards)['dataset']['source']}")


def files_of_runs(name, models):
    """Input function: a file of every run of the dataset's models among `models`."""

    def files(wildcards):
        whole = settings(wildcards.evidence)
        runs = [
            run
            for model in whole["datasets"][wildcards.dataset]["models"]
            if model in models
            for run in run_settings.runs_of_model(whole, wildcards.dataset, model)
        ]
        return [f"results/{wildcards.evidence}/{run}/{name}" for run in runs]

    return files


def evidence_root(wildcards):
    """The folder of evidence that a rendered output is a function of."""
    return f"results/{'mini' if wildcards.mini else config['evidence']}"


def settings_behind(wildcards):
    """The settings behind that evidence."""
    return settings("mini" if wildcards.mini else "real")


def evidence_of(output):
    """Input function: the evidence files that an output is rendered from."""
    return lambda wildcards: evidence_inputs(output, evidence_root(wildcards), settings_behind(wildcards))


def descriptions_for(output):
    """What an output says of the datasets and studies that it shows, available or not."""
    return descriptions(evidence_behind(output, settings("real")), settings("real"))


def rendered(wildcards):
    """Every rendered file beside an output."""
    return files_of_outputs(f"paper_figures/{wildcards.mini}".rstrip("/"))
