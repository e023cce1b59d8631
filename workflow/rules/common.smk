# What the rules share: names of wildcards, code that jobs rest on, settings, files of runs. Makes no files.
from functools import cache, partial
from pathlib import Path

from replication.datasets.files import checksum_of
from replication.datasets.sources import state_of_raw
from replication.runs import outputs, registry, settings as run_settings
from replication.runs.registry import CLAI, MODELS, NETWORK_SETTINGS, SPLIT_SETTINGS, fitted_on
from replication.runs.run import RunId, failures, remove_finished_checkpoints, restore_outputs, write_checksums

RESULTS, EVIDENCE = config["pathvars"]["results"], config["pathvars"]["evidence"]  # <results> and <evidence>, for code
PUBLISHED_VERDICTS = f"paper_figures/{registry.CLAIMS}.json"
RAW = "results/mini/raw" if config["miniature"] else Path(config["data_dir"]).expanduser()  # downloaded files
VARIANT = f"({'|'.join(config['variants'])})"
TRACED = [name for name, study in config["studies"].items() if study["scored_on"] == "alignment"]
TRAINED = fitted_on("samples")
cell_settings = cache(partial(run_settings.cell_settings, config))  # drawing trials takes time
OWN = {
    name: "recordings" if run_settings.has_recordings(config, name) else "samples"
    for name in outputs.own_datasets(config)
}


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    study="|".join(config["studies"]),
    name="|".join([*config["datasets"], *config["studies"]]),
    model="|".join(MODELS),
    cell=rf"{VARIANT}(_{VARIANT})*|({'|'.join(MODELS)})_trial\d+",
    run=r"seed\d+(/fold\d+)?",
    table="|".join(registry.TABLES),
    figure="|".join(registry.FIGURES),


def library(name, *places):
    """A file of the checksums of the Python files at these places of src; those of the miniature's generators only by name."""
    source = registry.REPOSITORY / "src"
    files = [file for place in places for file in [source / place, *(source / place).rglob("*.py")] if file.is_file()]
    own = [file for file in files if "miniature" not in file.relative_to(source).parts or name == "miniature"]
    return write_checksums(Path("results", "code", f"{name}.sha256"), own)


# What a job rests on: an edit to one of these files changes its checksum, which runs the job again.
OF_DATA = ("replication/datasets", "replication/runs")
OF_TRAINING = ("clailearn", "replication/models", *OF_DATA)
OF_EVALUATION = (*OF_TRAINING, "replication/experiments", "replication/metrics")
DATA = library("data", *OF_DATA)
TRAINING = library("training", *OF_TRAINING)
EVALUATION = library("evaluation", *OF_EVALUATION)
RENDERING = library("rendering", "replication/report", "replication/metrics", "replication/runs")
VERIFICATION = library("verification", "replication/report", *OF_EVALUATION)
# What every output shows, or may show
TITLES = [
    f"workflow/config/{name}" for name in ("titles.csv", "models.yaml", "printed_values.csv", "reported_values.csv")
]


def settings_of(*keys, model=None):
    """Params function for runs on a dataset: these settings, and what the model reads beyond them."""

    def settings(wildcards):
        name = model or wildcards.model
        return run_settings.pass_on(run_settings.model_settings(config, wildcards.dataset, name), name, keys)

    return settings


def threads_of(wildcards):
    return run_settings.dataset_settings(config, wildcards.dataset)["threads"]


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

    def file(wildcards):
        runs = outputs.runs_of_models(config, wildcards.dataset, [wildcards.model])
        return f"<results>/{min(runs, key=lambda run: (run.seed, run.fold or 0))}/{name}"

    return file


def cell_of(wildcards):
    """All settings of the wildcards' cell, with its `model`."""
    return cell_settings(wildcards.study, wildcards.cell)


def settings_of_cell(*keys):
    """Params function for runs of a cell: these settings, what a network reads, and what its model reads beyond them."""

    def settings(wildcards):
        cell = cell_of(wildcards)
        network = NETWORK_SETTINGS if cell["model"] in TRAINED else ()
        return run_settings.pass_on(cell, cell["model"], [*keys, *network])

    return settings


def projected_settings(wildcards):
    """What made the embeddings that are projected, if there are any."""
    runs = outputs.projected_run(config, wildcards.dataset)
    model = runs[0].cell if runs else registry.CLAI[0]
    settings = run_settings.model_settings(config, wildcards.dataset, model)
    return run_settings.select(settings, ["threads", "embedding_size", "encoder", "kernel"])


def name_of(wildcards):
    return wildcards.get("table") or wildcards.get("figure", registry.CLAIMS)


def evidence_of(wildcards):
    """The evidence files that an output is rendered from."""
    return outputs.evidence_inputs(name_of(wildcards), EVIDENCE, config)


def shown_in(wildcards):
    """What an output says of the datasets and studies that it shows, available or not."""
    return outputs.descriptions(outputs.evidence_behind(name_of(wildcards), config), config)


def caption_file(wildcards):
    return f"workflow/report/{name_of(wildcards)}.rst"


def caption_of(wildcards):
    return Path(caption_file(wildcards)).read_text(encoding="utf-8")


def behind(file):
    """Input function: the files of single runs behind a file of evidence of a name, or of a dataset."""

    def files(wildcards):
        name = wildcards.get("name") or wildcards.dataset
        return [f"<results>/{path}" for path in outputs.files_behind(config, name, file)]

    return files


def own_names(*kinds):
    """Constraint: the user's own datasets of samples, of recordings, or of both."""
    return "|".join(name for name, kind in OWN.items() if kind in kinds) or "(?!)"


def own_files(kind):
    """The outputs of a dataset of samples or of recordings."""
    shown = [f"own/{{dataset}}/{name}" for name, entry in registry.OWN.items() if kind in entry["of"]]
    return outputs.files_of_outputs("<figures>", shown)
