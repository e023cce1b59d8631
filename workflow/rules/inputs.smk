# Input functions: which files a rule reads, by its wildcards. Makes no files.


def source_table(wildcards):
    """The table of files, addresses and checksums of a dataset; the miniature's is written beside its files."""
    mini = settings(wildcards.evidence)["miniature"]
    return f"results/mini/raw/{wildcards.dataset}/sources.csv" if mini else "workflow/config/data_sources.csv"


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


def files_of_model(name):
    """Input function: a file of every run of the wildcards' model."""
    return lambda wildcards: files_of_runs(name, [wildcards.model])(wildcards)


def first_runs(wildcards):
    """Embeddings of the first run of each kernel, which pictures of a single run show."""
    whole = settings(wildcards.evidence)
    models = [model for model in CLAI if model in whole["datasets"][wildcards.dataset]["models"]]
    runs = [run_settings.runs_of_model(whole, wildcards.dataset, model)[0] for model in models]
    return [f"results/{wildcards.evidence}/{run}/embedded.safetensors" for run in runs]


def of_first_run(name):
    """Input function: a file of the first run of the wildcards' model."""

    def file(wildcards):
        run = run_settings.runs_of_model(settings(wildcards.evidence), wildcards.dataset, wildcards.model)[0]
        return f"results/{wildcards.evidence}/{run}/{name}"

    return file


def baseline_embeddings(wildcards):
    """The embeddings that a baseline is fitted on."""
    return f"results/{wildcards.evidence}/{wildcards.dataset}/{EMBEDDING}/{wildcards.run}/embedded.safetensors"


def embeddings_of_cell(wildcards):
    """The embeddings that a cell of a baseline on embeddings is fitted on; none for other models."""
    cell = settings_of(wildcards)
    if cell["model"] not in EMBEDDING_BASELINES:
        return []
    return f"results/{wildcards.evidence}/{wildcards.study}/{EMBEDDING}/{wildcards.run}/embedded.safetensors"


def model_of_embedding(wildcards):
    """The trained model behind an embedding; none for an untrained network and for the inputs."""
    if wildcards.embedding in (UNTRAINED, INPUTS):
        return []
    folder = f"results/{wildcards.evidence}/{wildcards.dataset}/{wildcards.embedding}/{wildcards.run}"
    return f"{folder}/{'traced/' if wildcards.embedding in TRACED_ONLY else ''}model.safetensors"


def files_of_control(wildcards):
    """The file of each run behind one of the controls."""
    runs = control_runs(settings(wildcards.evidence), wildcards.dataset, wildcards.control)
    return [f"results/{wildcards.evidence}/{run}/{CONTROLS[wildcards.control]}" for run in runs]


def records_of_traced(wildcards):
    """The records of the traced trainings whose model is no model of the dataset."""
    runs = traced_runs(settings(wildcards.evidence), wildcards.dataset, TRACED_ONLY)
    return [f"results/{wildcards.evidence}/{run}/traced/run.json" for run in runs]


def similarities_of_controls(wildcards):
    """The similarities between classes in embeddings that are not CLaI's."""
    runs = compared_runs(settings(wildcards.evidence), wildcards.dataset)
    return [f"results/{wildcards.evidence}/{run}/similarity.csv" for run in runs]


def signals_of_controls(wildcards):
    """The descriptions of signals as the kernels see them, and of those of cross-entropy."""
    runs = signal_runs(settings(wildcards.evidence), wildcards.dataset)
    return [f"results/{wildcards.evidence}/{run}/latent.csv" for run in runs]


def study_dataset(wildcards):
    """The prepared dataset of a study."""
    dataset = settings(wildcards.evidence)["studies"][wildcards.study]["dataset"]
    return f"results/{wildcards.evidence}/{dataset}/prepared/dataset.json"


def files_of_cell(name):
    """Input function: a file of every run of the wildcards' cell of a study."""
    return lambda wildcards: [
        path for path in files_of_cells(name)(wildcards) if RunId.parse(path).model == wildcards.cell
    ]


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


def predicted(wildcards):
    """The datasets whose evidence has predictions."""
    root, whole = evidence_root(wildcards), settings_behind(wildcards)
    return [name for name in available(root, whole) if prediction_files(root, name, whole)]


def at_hand(wildcards):
    """The datasets whose data are at hand: those with a path, and all of the miniature."""
    whole = settings_behind(wildcards)
    return [
        name
        for name in available(evidence_root(wildcards), whole)
        if name in whole["datasets"]
        and (whole["miniature"] or whole["datasets"][run_settings.raw_dataset(whole, name)]["path"])
    ]


def computed_below(wildcards):
    """The folder of what is computed here."""
    return f"results/{'mini' if wildcards.mini else 'real'}"


def published_models_of(wildcards):
    """The folders of published models of a dataset."""
    return sorted(
        str(path.parent) for path in Path(evidence_root(wildcards), wildcards.dataset).glob("models/*/model.json")
    )


def with_models(wildcards):
    """The datasets at hand that have published models."""
    root = evidence_root(wildcards)
    return [name for name in at_hand(wildcards) if any(Path(root, name).glob("models/*/model.json"))]


def rendered_here(wildcards):
    """The outputs to compare, where they are rendered here; tracked ones are compared as they are."""
    files = tracked_outputs(wildcards)
    return [] if Path(evidence_root(wildcards)).name == "published" else files


def tracked_outputs(wildcards):
    """The tables and the page of claims that are compared."""
    return [
        f"paper_figures/{wildcards.mini}{name}.{form}" for name in (*VERIFIED_TABLES, CLAIMS) for form in forms_of(name)
    ]
