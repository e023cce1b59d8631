# Shared by all other files here (settings, wildcards, which evidence an output rests on). Makes no files.
import ast
import copy
import itertools
from functools import cache
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.utils import update_config, validate

from clai.runs.models import CLAI, MODELS, ON_DATASETS, fitted_by

SCHEMA = "../config/schema.yaml"
SOURCE = Path(workflow.basedir, "src", "clai")
BENCHMARK = "benchmark"  # the folder of the benchmark's evidence, beside those of datasets and studies
THEORY = "theory"  # the folder of the numerical checks, likewise
RECORDS = ["runs.jsonl", "runs_shared.json"]  # the records of an evidence's runs

validate(config, SCHEMA)


wildcard_constraints:
    evidence="mini|real",
    dataset="|".join(config["datasets"]),
    model="|".join(ON_DATASETS),
    run=r"seed\d+(/fold\d+)?",
    view="(mini/)?",
    study="|".join(config["studies"]),
    cell="(" + "|".join(config["variants"]) + ")(_(" + "|".join(config["variants"]) + "))*",


def remove_finished_checkpoints():
    """Delete checkpoints of fits whose record, written last, is there.

    Not for the fits to do: until Snakemake has noted that a job is done, which on a cluster takes minutes, it would start anew.
    """
    for record in Path("results").rglob("run.json"):
        for left in record.parent.glob("*checkpoint.pt*"):
            left.unlink()


def merged(*parts):
    """Nested dictionaries laid over one another, the last one on top."""
    result = {}
    for part in parts:
        update_config(result, copy.deepcopy(dict(part)))
    return result


@cache
def settings(evidence):
    """config.yaml with a evidence and the user's own settings.

    On the real data the user's word is the last. The miniature pipeline is a fixture: what its evidence fixes stays fixed, so that
    a path to real data given on the command line does not reach it.
    """
    miniature = yaml.safe_load(Path(workflow.basedir, "workflow", "config", "mini.yaml").read_text())
    given = workflow.config_settings.overwrite_config
    result = merged(config, miniature) if evidence == "mini" else merged(config, {"miniature": False}, given)
    validate(result, SCHEMA)
    for name in result["run"]:
        if name not in result["datasets"]:
            raise WorkflowError(f"config key run: '{name}' is not one of the datasets {', '.join(result['datasets'])}")
    for name in result["run_studies"]:
        if name not in result["studies"]:
            raise WorkflowError(
                f"config key run_studies: '{name}' is not one of the studies {', '.join(result['studies'])}"
            )
    for name, study in result["studies"].items():
        if study["dataset"] not in result["datasets"]:
            raise WorkflowError(f"config key studies.{name}.dataset: '{study['dataset']}' is not one of the datasets")
        for combination in study["combine"]:
            for variant in itertools.chain.from_iterable(combination.values()):
                if variant not in result["variants"]:
                    raise WorkflowError(f"config key studies.{name}.combine: '{variant}' is not one of the variants")
    for name, entry in result["datasets"].items():
        if entry.get("raw_of", name) not in result["datasets"]:
            raise WorkflowError(f"config key datasets.{name}.raw_of: '{entry['raw_of']}' is not one of the datasets")
        if entry.get("raw_of", name) != name and entry["path"] is not None:
            raise WorkflowError(
                f"config key datasets.{name}.path: found '{entry['path']}', but the raw files are those of "
                f"{entry['raw_of']}. Set datasets.{entry['raw_of']}.path instead, and this one to null."
            )
        if not SOURCE.joinpath("datasets", f"{entry['source']}.py").exists():
            raise WorkflowError(
                f"config key datasets.{name}.source: there is no src/clai/datasets/{entry['source']}.py"
            )
    return result


# Now, so that a bad setting is refused before anything runs.
for name in ("mini", "real"):
    settings(name)


@cache
def dataset_settings(evidence, dataset):
    """The settings that hold for one dataset, its overrides merged in; its own entry is under `dataset`."""
    whole = settings(evidence)
    entry = whole["datasets"][dataset]
    apart = ("datasets", "theory", "studies", "variants", "benchmark")
    shared = {key: value for key, value in whole.items() if key not in apart}
    result = merged(shared, entry["overrides"])
    result["dataset"] = {key: value for key, value in entry.items() if key not in ("overrides", "models", "needs")}
    return result


def cells(evidence, study):
    """The cells of a study: names such as full_zero, with the variants that each combines."""
    return {
        "_".join(chosen): dict(zip(combination, chosen))
        for combination in settings(evidence)["studies"][study]["combine"]
        for chosen in itertools.product(*combination.values())
    }


@cache
def cell_settings(evidence, study, cell):
    """The settings of a cell, `model` among them: its dataset's, the study's overrides, then its variants'."""
    whole = settings(evidence)
    variants = [whole["variants"][name] for name in cell.split("_")]
    own = whole["studies"][study]
    return merged(dataset_settings(evidence, own["dataset"]), own["overrides"], {"model": "clai-m"}, *variants)


@cache
def imported(path):
    """Names of what a module imports from the library."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clai"):
            found += [node.module] if node.module != "clai" else []  # the package itself names everything
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("clai.")]
    return found


@cache
def library(*modules):
    """Paths of modules of src/clai and of all they import from it: an edit to one of them reruns the rule."""
    found, waiting = set(), [f"clai.{name}" for name in modules]
    while waiting:
        path = SOURCE.joinpath(*waiting.pop().split(".")[1:])
        path = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        if path not in found and path.exists():
            found.add(path)
            waiting += imported(path)
    return sorted(str(path.relative_to(workflow.basedir)) for path in found)


def runs(evidence, dataset, model):
    """The runs of a model: `seed0`, or `seed0/fold0` where a dataset has folds."""
    chosen = dataset_settings(evidence, dataset)
    seeds = chosen["model_seeds"].get(model, chosen["seeds"])
    folds = {"hospitals": 2}.get(chosen["dataset"].get("folds"), chosen["dataset"].get("folds"))
    return [f"seed{s}" if folds is None else f"seed{s}/fold{f}" for s in seeds for f in range(folds or 1)]


def models(evidence, dataset):
    return settings(evidence)["datasets"][dataset]["models"]


def is_sepsis(dataset):
    """Binary datasets of recordings; the others are multiclass."""
    return "folds" in config["datasets"][dataset]


def picked(chosen, *keys):
    """Those settings and no others, in their blocks; a dotted key names one of a block."""
    result = {}
    for key in keys:
        *blocks, last = key.split(".")
        source, target = chosen, result
        for block in blocks:
            source, target = source[block], target.setdefault(block, {})
        target[last] = source[last]
    return result


def own_settings(*keys):
    """Params function: those settings of the wildcards' dataset, and no others, so that a change elsewhere reruns nothing."""
    return lambda wildcards: picked(dataset_settings(wildcards.evidence, wildcards.dataset), *keys)


def model_settings(*keys):
    """Params function: the settings that decide the fit of the wildcards' model, and further ones."""
    return lambda wildcards: own_settings(*MODELS[wildcards.model].reads, *keys)(wildcards)


def own_block(wildcards):
    return dataset_settings(wildcards.evidence, wildcards.dataset)["inference"]["block"]


def own_threads(wildcards):
    return dataset_settings(wildcards.evidence, wildcards.dataset)["threads"]


def evidence_root(wildcards):
    """The folder that a rendered output is a function of."""
    return f"results/{'mini' if wildcards.view else config['evidence']}"


def at_hand(root):
    """What has evidence under `root`, there already (published) or computable with the current settings: datasets, studies, the
    benchmark and the numerical checks."""
    evidence = Path(root).name
    if evidence == "published":
        names = [*config["datasets"], *config["studies"], BENCHMARK, THEORY]
        return [name for name in names if evidence_files(root, name)]
    chosen = settings(evidence)
    entries = chosen["datasets"]
    credentialed = {name for name, entry in entries.items() if entry["source"] == "mimic_iv"}
    datasets = [
        name
        for name in chosen["run"]
        if chosen["miniature"]
        or name not in credentialed
        or entries[entries[name].get("raw_of", name)]["path"] is not None
    ]
    studies = [name for name in chosen["run_studies"] if chosen["studies"][name]["dataset"] in datasets]
    return datasets + studies + ([BENCHMARK] if chosen["run_benchmark"] else []) + [THEORY]


EVIDENCE = {
    False: ["metrics.csv", "history.csv", "reliability.csv", "similarity.csv", "tsne.csv.gz", "stages.csv.gz"],
    True: [
        "metrics.csv",
        "history.csv",
        "reliability.csv",
        "intervals.csv",
        "decision.csv",
        "signals.csv",
        "latent.csv",
    ],
}


def evidence_files(root, dataset):
    if dataset == THEORY:
        names = ["theory.csv", *RECORDS]
    elif dataset == BENCHMARK:
        names = ["benchmark.csv", *RECORDS, "dataset.json"]
    else:
        own = ["metrics.csv", "history.csv"] if dataset in config["studies"] else EVIDENCE[is_sepsis(dataset)]
        names = [*own, *RECORDS, "dataset.json"]
    files = [f"{root}/{dataset}/evidence/{name}" for name in names]
    # Rows of patients whose data may not be passed on are never published; figure 4 then says so.
    return [f for f in files if Path(root).name != "published" or Path(f).exists()]


def all_evidence(root):
    """Every evidence file under a folder, there or to be computed: of datasets, studies, the benchmark and the numerical checks."""
    return [f for name in at_hand(root) for f in evidence_files(root, name)]


def record_files(wildcards):
    """The records of all runs of the wildcards' view."""
    return [f for f in all_evidence(evidence_root(wildcards)) if Path(f).name in RECORDS]


def evidence_inputs(datasets):
    """Input function: the evidence files of those of the datasets that are at hand for a view."""

    def files(wildcards):
        root = evidence_root(wildcards)
        return [f for name in datasets if name in at_hand(root) for f in evidence_files(root, name)]

    return files


def benchmark_settings(wildcards):
    """What the benchmark reads: its own settings, and those that its dataset is trained and evaluated with."""
    whole = settings(wildcards.evidence)
    own = dataset_settings(wildcards.evidence, whole["benchmark"]["dataset"])
    keys = ["device", "threads", "embedding_size", "encoder", "kernel", "target", "training", "miniature"]
    return picked(own, *keys, "inference.block") | {"benchmark": whole["benchmark"]}


def all_cores(wildcards):
    """The whole machine, so that no other job runs beside one whose time is measured; on a cluster its profile sees to that."""
    return workflow.resource_settings.cores or settings(wildcards.evidence)["threads"]


def of_cells(name):
    """Input function: a file of every run of the cells of a study."""
    return lambda wildcards: [
        f"results/{wildcards.evidence}/{wildcards.study}/{cell}/seed{seed}/{name}"
        for cell in cells(wildcards.evidence, wildcards.study)
        for seed in settings(wildcards.evidence)["studies"][wildcards.study]["seeds"]
    ]


def study_dataset(wildcards):
    """The prepared dataset of a study."""
    dataset = settings(wildcards.evidence)["studies"][wildcards.study]["dataset"]
    return f"results/{wildcards.evidence}/{dataset}/prepared/dataset.json"


def cell_params(wildcards):
    """The settings that a cell's training and evaluation read."""
    chosen = cell_settings(wildcards.evidence, wildcards.study, wildcards.cell)
    return picked(chosen, *MODELS[chosen["model"]].reads, "evaluation.ece_bins", "model")


def study_samples(wildcards):
    """Training samples that a study's cells use; None for all."""
    return settings(wildcards.evidence)["studies"][wildcards.study]["overrides"].get("training", {}).get("samples")


def cell_threads(wildcards):
    return cell_settings(wildcards.evidence, wildcards.study, wildcards.cell)["threads"]


def cell_block(wildcards):
    return cell_settings(wildcards.evidence, wildcards.study, wildcards.cell)["inference"]["block"]


def source_table(wildcards):
    miniature = (
        f"results/mini/raw/{wildcards.dataset}/sources.csv" if settings(wildcards.evidence)["miniature"] else None
    )
    return miniature or settings(wildcards.evidence)["data_sources"]


def source_library(wildcards):
    source = dataset_settings(wildcards.evidence, wildcards.dataset)["dataset"]["source"]
    return library("datasets", f"datasets.{source}", "runs.jobs")


def preparation_settings(wildcards):
    """A dataset's own settings but for `memory_gb`, which bounds memory and is passed as a resource."""
    entry = dataset_settings(wildcards.evidence, wildcards.dataset)["dataset"]
    return {key: value for key, value in entry.items() if key != "memory_gb"}


def files_wanted(wildcards):
    """Those settings of a dataset that decide which raw files it has, so that no other one makes them be verified again."""
    entry = dataset_settings(wildcards.evidence, wildcards.dataset)["dataset"]
    deciding = ("source", "path", "medmnist_flag", "medmnist_size", "subjects", "nights", "options")
    return {key: entry[key] for key in deciding if key in entry}


def raw_manifest(wildcards):
    """The verified raw files of a dataset: its own, or those of the dataset that it names."""
    entry = dataset_settings(wildcards.evidence, wildcards.dataset)["dataset"]
    return f"results/{wildcards.evidence}/{entry.get('raw_of', wildcards.dataset)}/raw.json"


def raw_folder(wildcards):
    chosen = settings(wildcards.evidence)
    return (
        f"results/mini/raw/{wildcards.dataset}" if chosen["miniature"] else f"{chosen['data_dir']}/{wildcards.dataset}"
    )


def baseline_embeddings(wildcards):
    chosen = dataset_settings(wildcards.evidence, wildcards.dataset)["baselines"]["embedding"]
    return f"results/{wildcards.evidence}/{wildcards.dataset}/{chosen}/{wildcards.run}/embedded.safetensors"


def first_runs(wildcards):
    """Embeddings of the first run of either kernel: what single-run pictures are drawn from."""
    return [
        f"results/{wildcards.evidence}/{wildcards.dataset}/{model}/"
        f"{runs(wildcards.evidence, wildcards.dataset, model)[0]}/embedded.safetensors"
        for model in ("clai-m", "clai-c")
        if model in models(wildcards.evidence, wildcards.dataset)
    ]


def of_runs(name, of_models):
    """Input function: a file of every run of the dataset's models among `of_models`."""
    return lambda wildcards: [
        f"results/{wildcards.evidence}/{wildcards.dataset}/{model}/{run}/{name}"
        for model in models(wildcards.evidence, wildcards.dataset)
        if model in of_models
        for run in runs(wildcards.evidence, wildcards.dataset, model)
    ]


TRAINED = fitted_by("train_model")
HOURLY = fitted_by("fit_hourly_classifiers")  # one job fits them all
ALL_MODELS = [*TRAINED, *fitted_by("fit_embedding_baseline"), "deep-kernel-gp", *HOURLY]
