# Collaborative Inference, the metrics of each run, and a dataset's evidence. Requires trained models and fitted baselines;
# leaves results/{evidence}/{dataset}/evidence/, from which all tables and figures are made.

TRAINED = fitted_by("train_model")
LATENT = [name for name, model in MODELS.items() if model.latent]


rule evaluate_clai:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model=rules.train_model.output.model,
        library=EVALUATION,
    output:
        embedded="results/{evidence}/{dataset}/{model}/{run}/embedded.safetensors",
        metrics="results/{evidence}/{dataset}/{model}/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/{model}/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/{model}/{run}/predictions.npz",
        similarity="results/{evidence}/{dataset}/{model}/{run}/similarity.csv",
        record="results/{evidence}/{dataset}/{model}/{run}/evaluation.json",
    log:
        "logs/{evidence}/{dataset}/{model}/{run}/evaluate_clai.log",
    wildcard_constraints:
        model="|".join(CLAI),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_model(),
        kernel=lambda wildcards: MODELS[wildcards.model].kernel,
    message:
        "Embed {wildcards.dataset} with {wildcards.model} ({wildcards.evidence}, {wildcards.run}) and let its references vote."
    script:
        "../scripts/evaluate_clai.py"


rule evaluate_cross_entropy:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model="results/{evidence}/{dataset}/cross-entropy/{run}/model.safetensors",
        library=EVALUATION,
    output:
        metrics="results/{evidence}/{dataset}/cross-entropy/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/cross-entropy/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/cross-entropy/{run}/predictions.npz",
        record="results/{evidence}/{dataset}/cross-entropy/{run}/evaluation.json",
    log:
        "logs/{evidence}/{dataset}/cross-entropy/{run}/evaluate_cross_entropy.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by("cross-entropy"),
    message:
        "Evaluate cross-entropy on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/evaluate_cross_entropy.py"


rule evaluate_supervised_contrastive:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model="results/{evidence}/{dataset}/supervised-contrastive/{run}/model.safetensors",
        library=EVALUATION,
    output:
        metrics="results/{evidence}/{dataset}/supervised-contrastive/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/supervised-contrastive/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/supervised-contrastive/{run}/predictions.npz",
        record="results/{evidence}/{dataset}/supervised-contrastive/{run}/evaluation.json",
    log:
        "logs/{evidence}/{dataset}/supervised-contrastive/{run}/evaluate_supervised_contrastive.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by("supervised-contrastive"),
    message:
        "Read out the trunk of supervised contrastive learning on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/evaluate_supervised_contrastive.py"


rule project_embeddings:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        embedded=first_runs,
        library=EVALUATION,
    output:
        tsne="results/{evidence}/{dataset}/evidence/tsne.csv.gz",
        stages="results/{evidence}/{dataset}/evidence/stages.csv.gz",
    log:
        "logs/{evidence}/{dataset}/project_embeddings.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=only("threads", "embedding_size", "encoder", "kernel", "hourly"),
    message:
        "Project {wildcards.dataset}'s test embeddings ({wildcards.evidence}) to two dimensions."
    script:
        "../scripts/project_embeddings.py"


rule summarise_dataset:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        metrics=files_of_runs("metrics.csv", MODELS),
        reliability=files_of_runs("reliability.csv", MODELS),
        history=files_of_runs("history.csv", TRAINED),
        records=files_of_runs("run.json", MODELS),
        traced=records_of_traced,
        evaluations=files_of_runs("evaluation.json", TRAINED),
        downloading=resources_of_download,
        preparing="results/{evidence}/{dataset}/prepare_resources.json",
        library=EVALUATION,
    output:
        metrics="results/{evidence}/{dataset}/evidence/metrics.csv",
        reliability="results/{evidence}/{dataset}/evidence/reliability.csv",
        history="results/{evidence}/{dataset}/evidence/history.csv",
        records="results/{evidence}/{dataset}/evidence/runs.jsonl",
        shared="results/{evidence}/{dataset}/evidence/runs_shared.json",
        description="results/{evidence}/{dataset}/evidence/dataset.json",
        resources="results/{evidence}/{dataset}/evidence/resources.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_dataset.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Gather metrics, histories and records of all runs on {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/summarise_dataset.py"


rule summarise_similarity:
    input:
        similarity=files_of_runs("similarity.csv", CLAI),
        controls=similarities_of_controls,
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/similarity.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_similarity.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Gather the similarities between the classes of {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/summarise_similarity.py"


rule summarise_predictions:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        predictions=files_of_runs("predictions.npz", MODELS),
        library=EVALUATION,
    output:
        intervals="results/{evidence}/{dataset}/evidence/intervals.csv",
        decision="results/{evidence}/{dataset}/evidence/decision.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_predictions.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=only("validation_share_recordings"),
    message:
        "Draw intervals by patient and decision curves for {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/summarise_predictions.py"


rule gather_samples:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/samples.npz",
    log:
        "logs/{evidence}/{dataset}/gather_samples.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Keep the labels of {wildcards.dataset}'s test samples ({wildcards.evidence})."
    script:
        "../scripts/gather_samples.py"


rule gather_predictions:
    input:
        predictions=files_of_model("predictions.npz"),
        metrics=files_of_model("metrics.csv"),
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/predictions_{model}.npz",
    log:
        "logs/{evidence}/{dataset}/gather_predictions_{model}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Round and pack the predictions of {wildcards.model} on {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/gather_predictions.py"


rule compare_models:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        predictions=files_of_runs("predictions.npz", MODELS),
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/comparisons.csv",
    log:
        "logs/{evidence}/{dataset}/compare_models.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Compare the models of {wildcards.dataset} ({wildcards.evidence}) over seeds and test samples together."
    script:
        "../scripts/compare_models.py"


rule summarise_signals:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        embedded=files_of_runs("embedded.safetensors", CLAI),
        latent=files_of_runs("latent.npz", LATENT),
        controls=signals_of_controls,
        library=EVALUATION,
    output:
        signals="results/{evidence}/{dataset}/evidence/signals.csv",
        latent="results/{evidence}/{dataset}/evidence/latent.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_signals.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Trace the latent signals of one stay of {wildcards.dataset} ({wildcards.evidence}) and summarise all stays."
    script:
        "../scripts/summarise_signals.py"
