# What the rules share: names of wildcards, code that jobs rest on, settings, files of runs. Makes no files.
from pathlib import Path

from replication.datasets.sources import state_of_raw
from replication.runs import outputs, registry, settings as run_settings
from replication.runs.registry import CLAI, EMBEDDING, MODELS, fitted_on
from replication.runs.run import RunId, file_digest, remove_finished_checkpoints

config["studies"] |= run_settings.tuning_studies(config)

RESULTS = "results/mini" if config["miniature"] else "results/real"  # <results>, for code
EVIDENCE = RESULTS if config["miniature"] else f"results/{config['evidence']}"  # <evidence>, for code
RAW = "results/mini/raw" if config["miniature"] else Path(config["data_dir"]).expanduser()  # downloaded files
VARIANT = f"({'|'.join(config['variants'])})"
TRAINED = fitted_on("samples")


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    study="|".join(config["studies"]),
    name="|".join([*config["datasets"], *config["studies"]]),
    model="|".join(MODELS),
    embedding="|".join(registry.EMBEDDINGS),
    cell=rf"{VARIANT}(_{VARIANT})*|({'|'.join(MODELS)})_trial\d+",
    run=r"seed\d+(/fold\d+)?",
    table="|".join(outputs.outputs_of_kind("table", config)),
    figure="|".join(outputs.outputs_of_kind("figure", config)),


def library(*folders):
    """The Python files of these folders of src; those of the miniature's generators only where they are named."""
    files = [path for folder in folders for path in Path("src", folder).rglob("*.py")]
    return sorted(str(path) for path in files if "miniature" not in path.parts or folders[0].endswith("miniature"))


# What a job rests on: an edit to one of these files runs it again.
DATA = library("replication/datasets", "replication/runs")
TRAINING = [*library("clailearn", "replication/models"), *DATA]
EVALUATION = [*TRAINING, *library("replication/experiments", "replication/metrics")]
RENDERING = library("replication/report", "replication/metrics", "replication/runs")


def settings_of(wildcards, model=None):
    """The settings of the wildcards' cell, study or dataset; a dataset's with what the trials chose for the model."""
    name = wildcards.get("study") or wildcards.dataset
    if "cell" in wildcards.keys():
        return run_settings.cell_settings(config, name, wildcards.cell)
    if name in config["studies"]:
        return run_settings.study_settings(config, name)
    return run_settings.model_settings(config, name, *filter(None, [model or wildcards.get("model")]))


def model_of(wildcards):
    """The model of the wildcards, of their embedding or of their cell."""
    if "embedding" in wildcards.keys():
        return registry.EMBEDDINGS[wildcards.embedding].model
    return wildcards.get("model") or settings_of(wildcards)["model"]


def only(*keys):
    """Params function: these settings; a change of another one reruns nothing."""
    return lambda wildcards: run_settings.select(settings_of(wildcards), keys)


def read_by_model(*keys, model=None):
    """Params function: what the fit of the wildcards' model, or of this one, reads, and `keys`."""

    def reads(wildcards):
        name = model or model_of(wildcards)
        found = run_settings.select(settings_of(wildcards, name), [*MODELS[name].settings, *keys])
        return found if "model" in wildcards.keys() else found | {"model": name}

    return reads


def threads_of(wildcards):
    return settings_of(wildcards)["threads"]


def checkpoint_of(wildcards, output):
    return str(Path(output[0]).with_name("checkpoint.pt"))


def of_runs(runs, name):
    """A file of each of these runs."""
    return [f"<results>/{run}/{name}" for run in runs]


def files_of_runs(name, *models, first=False):
    """Input function: a file of every run of these models, if the dataset has them, or of each one's first run.

    Without models it is that of the wildcards.
    """

    def files(wildcards):
        asked = models or [wildcards.model]
        own = [model for model in config["datasets"][wildcards.dataset]["models"] if model in asked]
        runs = [run_settings.runs_of_model(config, wildcards.dataset, model) for model in own]
        return of_runs([run for of_model in runs for run in (of_model[:1] if first else of_model)], name)

    return files


def files_behind(name, file):
    """The files of single runs behind a gathered file of evidence."""
    return [f"<results>/{path}" for path in outputs.files_behind(config, name, file)]


def file_of_first_run(name):
    """Input function: a file of the first run of the wildcards' model."""
    return lambda wildcards: files_of_runs(name, first=True)(wildcards)[0]


def raw_of(name):
    """Input function: a file of the dataset that owns the raw files."""
    return lambda wildcards: f"<results>/{run_settings.raw_dataset(config, wildcards.dataset)}/{name}"


def embeddings_below(wildcards):
    """The embeddings that a baseline, on a dataset or as a cell, is fitted on; none for other models."""
    if MODELS[model_of(wildcards)].of != "embeddings":
        return []
    return f"<results>/{wildcards.get('study') or wildcards.dataset}/{EMBEDDING}/{wildcards.run}/embedded.safetensors"


def prepared_of(wildcards):
    """The prepared dataset of the wildcards' study, or of their dataset or study."""
    name = wildcards.get("study") or wildcards.name
    return f"<results>/{run_settings.data_of(config, name)}/prepared/dataset.json"


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
    return Path(caption_file(wildcards)).read_text()
