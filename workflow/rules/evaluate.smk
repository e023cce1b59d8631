# Collaborative Inference, figures of merit, and the gathering of a dataset's evidence.
# Requires trained models and baselines; leaves results/{preset}/{dataset}/evidence/, all that tables and figures are made from.


rule evaluate_clai:
    message:
        "Embed {wildcards.dataset} with {wildcards.model} ({wildcards.preset}, {wildcards.run}) and vote."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        model=rules.train_model.output.model,
        library=library("experiment", "logs"),
    output:
        embedded="results/{preset}/{dataset}/{model}/{run}/embedded.safetensors",
        metrics="results/{preset}/{dataset}/{model}/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/{model}/{run}/reliability.csv",
        similarity="results/{preset}/{dataset}/{model}/{run}/similarity.csv",
    params:
        settings=own_settings(*LEARNING, "evaluation"),
        run=run_of,
    wildcard_constraints:
        model="clai-c|clai-m",
    log:
        "logs/{preset}/{dataset}/{model}/{run}/evaluate_clai.log",
    threads: own_threads
    resources:
        gpu=1,
    script:
        "../scripts/evaluate_clai.py"


rule evaluate_cross_entropy:
    message:
        "Evaluate cross-entropy on {wildcards.dataset} ({wildcards.preset}, {wildcards.run})."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        model="results/{preset}/{dataset}/cross-entropy/{run}/model.safetensors",
        library=library("experiment", "logs"),
    output:
        metrics="results/{preset}/{dataset}/cross-entropy/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/cross-entropy/{run}/reliability.csv",
    params:
        settings=own_settings(*LEARNING, "evaluation"),
        run=run_of,
    log:
        "logs/{preset}/{dataset}/cross-entropy/{run}/evaluate_cross_entropy.log",
    threads: own_threads
    resources:
        gpu=1,
    script:
        "../scripts/evaluate_cross_entropy.py"


def first_runs(wildcards):
    """Embeddings of the first run of either kernel: what single-run pictures are drawn from."""
    return [
        f"results/{wildcards.preset}/{wildcards.dataset}/{model}/"
        f"{runs(wildcards.preset, wildcards.dataset, model)[0]}/embedded.safetensors"
        for model in ("clai-m", "clai-c")
    ]


rule project_embeddings:
    message:
        "Project {wildcards.dataset}'s test embeddings ({wildcards.preset}) to two dimensions."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=first_runs,
        library=library("projection", "experiment", "logs"),
    output:
        tsne="results/{preset}/{dataset}/evidence/tsne.csv.gz",
        stages="results/{preset}/{dataset}/evidence/stages.csv.gz",
    params:
        settings=own_settings(*LEARNING, "tsne", "stages"),
    log:
        "logs/{preset}/{dataset}/project_embeddings.log",
    threads: 1
    script:
        "../scripts/project_embeddings.py"


def of_runs(name, of_models):
    """Input function: a file of every run of the dataset's models among `of_models`."""
    return lambda wildcards: [
        f"results/{wildcards.preset}/{wildcards.dataset}/{model}/{run}/{name}"
        for model in models(wildcards.preset, wildcards.dataset)
        if model in of_models
        for run in runs(wildcards.preset, wildcards.dataset, model)
    ]


TRAINED = ["clai-m", "clai-c", "cross-entropy"]
ALL_MODELS = [*TRAINED, "student-t-mixture", "gp"]


rule summarise_dataset:
    message:
        "Gather what all runs on {wildcards.dataset} ({wildcards.preset}) found."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        metrics=of_runs("metrics.csv", ALL_MODELS),
        reliability=of_runs("reliability.csv", ALL_MODELS),
        history=of_runs("history.csv", TRAINED),
        records=of_runs("run.json", ALL_MODELS),
        library=library("summary", "logs"),
    output:
        metrics="results/{preset}/{dataset}/evidence/metrics.csv",
        reliability="results/{preset}/{dataset}/evidence/reliability.csv",
        history="results/{preset}/{dataset}/evidence/history.csv",
        records="results/{preset}/{dataset}/evidence/runs.json",
        description="results/{preset}/{dataset}/evidence/dataset.json",
    log:
        "logs/{preset}/{dataset}/summarise_dataset.log",
    threads: 1
    script:
        "../scripts/summarise_dataset.py"


rule summarise_similarity:
    message:
        "Gather the similarities between the classes of {wildcards.dataset} ({wildcards.preset})."
    input:
        similarity=of_runs("similarity.csv", ["clai-m", "clai-c"]),
        library=library("summary", "logs"),
    output:
        "results/{preset}/{dataset}/evidence/similarity.csv",
    log:
        "logs/{preset}/{dataset}/summarise_similarity.log",
    threads: 1
    script:
        "../scripts/summarise_similarity.py"


rule summarise_signals:
    message:
        "Trace the latent signals of {wildcards.dataset} ({wildcards.preset}): one stay, and the statistics of all."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=of_runs("embedded.safetensors", ["clai-m", "clai-c"]),
        latent=of_runs("latent.npz", ["gp"]),
        library=library("summary", "signals", "logs"),
    output:
        signals="results/{preset}/{dataset}/evidence/signals.csv",
        latent="results/{preset}/{dataset}/evidence/latent.csv",
    params:
        settings=own_settings("figure4"),
    log:
        "logs/{preset}/{dataset}/summarise_signals.log",
    threads: 1
    script:
        "../scripts/summarise_signals.py"
