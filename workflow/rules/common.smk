# What the rules share: names of wildcards, code that jobs rest on, settings, files of runs. Makes no files.
from functools import cache
from pathlib import Path

from replication.datasets.sources import state_of_raw
from replication.runs import outputs, registry, settings as run_settings
from replication.runs.registry import CLAI, MODELS, fitted_on
from replication.runs.run import RunId, file_digest, remove_finished_checkpoints, restore_outputs

RESULTS = "results/mini" if config["miniature"] else "results/real"  # <results>, for code
EVIDENCE = RESULTS if config["miniature"] else f"results/{config['evidence']}"  # <evidence>, for code
RAW = "results/mini/raw" if config["miniature"] else Path(config["data_dir"]).expanduser()  # downloaded files
VARIANT = f"({'|'.join(config['variants'])})"
TRACED = [name for name, study in config["studies"].items() if study["scored_on"] == "alignment"]
TRAINED = fitted_on("samples")
NAMED_OUTPUTS = [*registry.OUTPUTS, *outputs.own_outputs(config)]


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    study="|".join(config["studies"]),
    name="|".join([*config["datasets"], *config["studies"]]),
    model="|".join(MODELS),
    cell=rf"{VARIANT}(_{VARIANT})*|({'|'.join(MODELS)})_trial\d+",
    run=r"seed\d+(/fold\d+)?",
    table="|".join(output for output in NAMED_OUTPUTS if outputs.kind_of(output) == "table"),
    figure="|".join(output for output in NAMED_OUTPUTS if outputs.kind_of(output) == "figure"),


def library(*folders):
    """The Python files of these folders of src; those of the miniature's generators only where they are named."""
    files = [path for folder in folders for path in Path("src", folder).rglob("*.py")]
    return sorted(str(path) for path in files if "miniature" not in path.parts or folders[0].endswith("miniature"))


# What a job rests on: an edit to one of these files runs it again.
DATA = library("replication/datasets", "replication/runs")
TRAINING = [*library("clailearn", "replication/models"), *DATA]
EVALUATION = [*TRAINING, *library("replication/experiments", "replication/metrics")]
RENDERING = library("replication/report", "replication/metrics", "replication/runs")


# Settings of a run's samples: how images are normalised, and which patients validate.
SPLITS = ("normalise_test_separately", "validation_share_recordings")


def settings_of(*keys, model=lambda wildcards: wildcards.model):
    """Params function for runs on a dataset: these settings, and what the model reads beyond them."""

    def settings(wildcards):
        name = model(wildcards)
        return run_settings.pass_on(run_settings.model_settings(config, wildcards.dataset, name), name, keys)

    return settings


def threads_of(wildcards):
    return run_settings.dataset_settings(config, wildcards.dataset)["threads"]


def checkpoint_of(wildcards, output):
    return str(Path(output[0]).with_name("checkpoint.pt"))


def files_of(runs, name):
    """A file of each of these runs."""
    return [f"<results>/{run}/{name}" for run in runs]


def files_of_models(name, models):
    """Input function: a file of every run of these models that the dataset has."""
    return lambda wildcards: files_of(outputs.runs_of_models(config, wildcards.dataset, models), name)


def prepared_of(name):
    """The prepared data of a dataset or study."""
    return f"<results>/{run_settings.data_of(config, name)}/prepared/dataset.json"


def embeddings_below(name, run, model):
    """The embeddings that a baseline on a dataset or in a study is fitted on; none for other models."""
    base = MODELS[model].embeddings
    return f"<results>/{name}/{base}/{run}/embedded.safetensors" if base else []


def file_of_first_run(name):
    """Input function: a file of the first run of the wildcards' model."""
    return lambda wildcards: files_of_models(name, [wildcards.model])(wildcards)[0]


@cache  # drawing trials takes time
def cell_settings(study, cell):
    return run_settings.cell_settings(config, study, cell)


def cell_of(wildcards):
    """All settings of the wildcards' cell, with its `model`."""
    return cell_settings(wildcards.study, wildcards.cell)


def settings_of_cell(*keys):
    """Params function for runs of a cell: these settings, what a network reads, and what its model reads beyond them."""

    def settings(wildcards):
        cell = cell_of(wildcards)
        network = ["device", "encoder", "target", "training"] if cell["model"] in TRAINED else []
        return run_settings.pass_on(cell, cell["model"], [*keys, *network])

    return settings


def name_of(wildcards):
    return wildcards.get("table") or wildcards.get("figure", registry.CLAIMS)


def root_of(wildcards):
    """The evidence that an output shows; that of the user's own datasets is always computed here."""
    return RESULTS if name_of(wildcards).startswith("own/") else EVIDENCE


def evidence_of(wildcards):
    """The evidence files that an output is rendered from."""
    return outputs.evidence_inputs(name_of(wildcards), root_of(wildcards), config)


def shown_in(wildcards):
    """What an output says of the datasets and studies that it shows, available or not."""
    return outputs.descriptions(outputs.evidence_behind(name_of(wildcards), config), config)


def caption_file(wildcards):
    return f"workflow/report/{outputs.layout_of(name_of(wildcards))}.rst"


def caption_of(wildcards):
    return Path(caption_file(wildcards)).read_text(encoding="utf-8")
