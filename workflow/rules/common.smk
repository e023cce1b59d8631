# What the wildcards of the other files stand for: settings, runs, evidence, files of the library. Makes no files.
import _thread
import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.persistence import PersistenceBase
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.script import PythonScript

REPOSITORY = Path(workflow.basedir)
sys.path.insert(0, str(REPOSITORY / "src"))  # the library of this repository, whether installed or not

import clai.runs.settings as run_settings
from clai.errors import InputError
from clai.runs.controls import (
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
from clai.runs.forks import THREADS, run_in_fork
from clai.runs.jobs import WORKFLOW, remove_finished_checkpoints
from clai.runs.library import code_files, library_files
from clai.runs.identity import RunId
from clai.runs.models import CELLS, CLAI, EMBEDDING_BASELINES, MODELS, fitted_by
from clai.runs.output_checksums import OutputChecksums, bring_to_present
from clai.runs.outputs import (
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
    heading_of,
    kind_of,
    prediction_files,
    published_models,
    record_files,
    title_of,
)
from clai.runs.quickest import quickest_run
from clai.runs.record import file_digest

os.environ[WORKFLOW] = str(os.getpid())  # jobs stop when this process is gone

MANY_JOBS = 12  # from here on a run is faster where jobs share their imports
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


def block_of(wildcards):
    return settings_of(wildcards)["inference"]["block"]


def study_samples(wildcards):
    """Training samples that a study's cells use; None for all."""
    return settings(wildcards.evidence)["studies"][wildcards.study]["overrides"].get("training", {}).get("samples")


def cores_of_benchmark(wildcards):
    """The whole machine, so that no other job runs beside a measurement; on a cluster its profile asks for a node alone.

    The miniature shows that it can be measured; its numbers mean nothing.
    """
    own = settings(wildcards.evidence)["threads"]
    return own if wildcards.evidence == "mini" else workflow.resource_settings.cores or own


def share_imports():
    """Let the scripts of many jobs share their imports; for few jobs, importing what all need would take longer."""
    plain = PythonScript.execute_script

    def execute_script(self, name, edit=False):
        own_process = self.conda_env or self.container_img or self.env_modules or self.bench_record
        if self.threads == THREADS and not own_process:
            run_in_fork(name, self.resources.get("tmpdir", tempfile.gettempdir()))
        else:
            plain(self, name, edit)

    if sum(1 for _ in workflow.dag.needrun_jobs()) >= MANY_JOBS:
        # Snakemake has no setting for how a script starts. A version without this method would start it as before.
        PythonScript.execute_script = execute_script


def notice_altered_outputs():
    """Count an output that has changed since its job as incomplete, so that Snakemake makes it again where it is needed.

    An output from the future, with the content that its job wrote, is given the present time.
    """
    now = time.time()
    checksums = OutputChecksums(Path(".snakemake") / "output_checksums.jsonl")
    finished, incomplete = PersistenceBase.finished, PersistenceBase.incomplete

    async def note_and_finish(self, job):
        for output in job.output:
            if Path(output).is_file():
                checksums.note(output)
        await finished(self, job)

    async def incomplete_or_altered(self, job):
        found = await incomplete(self, job)
        for output in job.output:
            if not workflow.dryrun:
                bring_to_present(output, now)
            if output not in found and (change := checksums.altered(output)):
                logger.warning(f"{change}: {job.rule.name} runs again")
                found.append(output)
        return found

    # Snakemake has no hook at the end of a job, and no setting for this.
    PersistenceBase.finished, PersistenceBase.incomplete = note_and_finish, incomplete_or_altered


def stop_in_own_thread():
    """Let a thread of its own do what SIGTERM asks for.

    Snakemake's handler waits for a lock that the main thread holds while it finishes jobs. A signal interrupts that very thread,
    which would then wait for itself, for ever.
    """
    exit_gracefully = JobScheduler.exit_gracefully
    JobScheduler.exit_gracefully = lambda *arguments: _thread.start_new_thread(exit_gracefully, arguments)


if workflow.is_main_process:
    notice_altered_outputs()
    stop_in_own_thread()
