# Input functions: which files a rule reads, by its wildcards. Makes no files.


def library(script, *modules):
    """The files of the library that a script, and modules that it imports by name, rest on."""
    return library_files(REPOSITORY, REPOSITORY / "workflow" / "scripts" / f"{script}.py", *modules)


def library_of_source(script):
    """Input function: these files with the module that reads the wildcards' dataset."""
    return lambda wildcards: library(script, f"clai.datasets.{settings_of(wildcards)['dataset']['source']}")


def source_table(wildcards):
    """The table of files, addresses and checksums of a dataset; the miniature's is written beside its files."""
    whole = settings(wildcards.evidence)
    return f"results/mini/raw/{wildcards.dataset}/sources.csv" if whole["miniature"] else whole["data_sources"]


def raw_folder(wildcards):
    """The folder of a dataset's raw files."""
    whole = settings(wildcards.evidence)
    return f"{'results/mini/raw' if whole['miniature'] else whole['data_dir']}/{wildcards.dataset}"


def raw_manifest(wildcards):
    """The verified raw files of a dataset."""
    owner = run_settings.raw_dataset(settings(wildcards.evidence), wildcards.dataset)
    return f"results/{wildcards.evidence}/{owner}/raw.json"


def resources_of_download(wildcards):
    """What finding or downloading these files took."""
    return str(Path(raw_manifest(wildcards)).with_name("download_resources.json"))


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


def first_runs(wildcards):
    """Embeddings of the first run of each kernel, which pictures of a single run show."""
    whole = settings(wildcards.evidence)
    models = [model for model in CLAI if model in whole["datasets"][wildcards.dataset]["models"]]
    runs = [run_settings.runs_of_model(whole, wildcards.dataset, model)[0] for model in models]
    return [f"results/{wildcards.evidence}/{run}/embedded.safetensors" for run in runs]


def library_of_baseline(wildcards):
    """The files of the library behind a baseline on embeddings, with the module that the registry names."""
    return library("fit_embedding_baseline", MODELS[wildcards.model].fit.split(":")[0])


def baseline_embeddings(wildcards):
    """The embeddings that a baseline is fitted on."""
    model = settings_of(wildcards)["baselines"]["embedding"]
    return f"results/{wildcards.evidence}/{wildcards.dataset}/{model}/{wildcards.run}/embedded.safetensors"


def library_of_cell(wildcards):
    """The files of the library behind a cell, with the module that fits its model."""
    model = settings_of(wildcards)["model"]
    modules = [CELLS[MODELS[model].rule].split(":")[0]]
    if model in EMBEDDING_BASELINES:
        modules.append(MODELS[model].fit.split(":")[0])
    return library("run_cell", *modules)


def embeddings_of_cell(wildcards):
    """The embeddings that a cell of a baseline on embeddings is fitted on; none for other models."""
    cell = settings_of(wildcards)
    if cell["model"] not in EMBEDDING_BASELINES:
        return []
    return f"results/{wildcards.evidence}/{wildcards.study}/{cell['baselines']['embedding']}/{wildcards.run}/embedded.safetensors"


def study_dataset(wildcards):
    """The prepared dataset of a study."""
    dataset = settings(wildcards.evidence)["studies"][wildcards.study]["dataset"]
    return f"results/{wildcards.evidence}/{dataset}/prepared/dataset.json"


def files_of_cells(name):
    """Input function: a file of every run of the cells of a study."""
    return lambda wildcards: [
        f"results/{wildcards.evidence}/{run}/{name}"
        for run in run_settings.runs_of_study(settings(wildcards.evidence), wildcards.study)
    ]


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


def records_of_all(wildcards):
    """The records of every run behind the outputs beside this one."""
    return record_files(evidence_root(wildcards), settings_behind(wildcards))


def rendered(wildcards):
    """Every rendered file beside an output."""
    return files_of_outputs(f"paper_figures/{wildcards.mini}".rstrip("/"))
