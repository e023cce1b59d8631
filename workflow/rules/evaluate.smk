# Collaborative Inference, figures of merit, and the gathering of a dataset's evidence.
# Requires trained models and baselines; leaves results/{evidence}/{dataset}/evidence/, all that tables and figures are made from.


rule evaluate_clai:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model=rules.train_model.output.model,
        library=library("experiments.evaluation", "experiments.training", "runs.jobs"),
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
    threads: own_threads
    resources:
        gpu=1,
        inference_block=own_block,
    params:
        settings=model_settings("evaluation.ece_bins", "evaluation.similarity_samples"),
    message:
        "Embed {wildcards.dataset} with {wildcards.model} ({wildcards.evidence}, {wildcards.run}) and vote."
    script:
        "../scripts/evaluate_clai.py"


rule evaluate_cross_entropy:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model="results/{evidence}/{dataset}/cross-entropy/{run}/model.safetensors",
        library=library("experiments.evaluation", "experiments.training", "runs.jobs"),
    output:
        metrics="results/{evidence}/{dataset}/cross-entropy/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/cross-entropy/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/cross-entropy/{run}/predictions.npz",
        record="results/{evidence}/{dataset}/cross-entropy/{run}/evaluation.json",
    log:
        "logs/{evidence}/{dataset}/cross-entropy/{run}/evaluate_cross_entropy.log",
    conda:
        "../../envs/environment.yaml"
    threads: own_threads
    resources:
        gpu=1,
    params:
        settings=own_settings(*MODELS["cross-entropy"].reads, "evaluation.ece_bins"),
    message:
        "Evaluate cross-entropy on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/evaluate_cross_entropy.py"


rule project_embeddings:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        embedded=first_runs,
        library=library("experiments.projections", "experiments.training", "runs.jobs"),
    output:
        tsne="results/{evidence}/{dataset}/evidence/tsne.csv.gz",
        stages="results/{evidence}/{dataset}/evidence/stages.csv.gz",
    log:
        "logs/{evidence}/{dataset}/project_embeddings.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=own_settings("threads", "embedding_size", "encoder", "kernel", "hourly", "tsne", "stages"),
    message:
        "Project {wildcards.dataset}'s test embeddings ({wildcards.evidence}) to two dimensions."
    script:
        "../scripts/project_embeddings.py"


rule summarise_dataset:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        metrics=of_runs("metrics.csv", ALL_MODELS),
        reliability=of_runs("reliability.csv", ALL_MODELS),
        history=of_runs("history.csv", TRAINED),
        records=of_runs("run.json", ALL_MODELS),
        evaluations=of_runs("evaluation.json", TRAINED),
        library=library("runs.columns", "runs.gather", "runs.record", "runs.jobs"),
    output:
        metrics="results/{evidence}/{dataset}/evidence/metrics.csv",
        reliability="results/{evidence}/{dataset}/evidence/reliability.csv",
        history="results/{evidence}/{dataset}/evidence/history.csv",
        records="results/{evidence}/{dataset}/evidence/runs.jsonl",
        shared="results/{evidence}/{dataset}/evidence/runs_shared.json",
        description="results/{evidence}/{dataset}/evidence/dataset.json",
    log:
        "logs/{evidence}/{dataset}/summarise_dataset.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Gather what all runs on {wildcards.dataset} ({wildcards.evidence}) found."
    script:
        "../scripts/summarise_dataset.py"


rule summarise_similarity:
    input:
        similarity=of_runs("similarity.csv", ["clai-m", "clai-c"]),
        library=library("runs.gather", "runs.jobs"),
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
        predictions=of_runs("predictions.npz", ALL_MODELS),
        library=library("metrics.bootstrap", "experiments.evaluation", "runs.gather", "runs.jobs"),
    output:
        intervals="results/{evidence}/{dataset}/evidence/intervals.csv",
        decision="results/{evidence}/{dataset}/evidence/decision.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_predictions.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=own_settings("evaluation.bootstrap", "evaluation.decision_thresholds", "validation_share_recordings"),
    message:
        "Draw intervals by patient and decision curves for {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/summarise_predictions.py"


rule summarise_signals:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        embedded=of_runs("embedded.safetensors", ["clai-m", "clai-c"]),
        latent=of_runs("latent.npz", ["gp", "deep-kernel-gp"]),
        library=library("runs.gather", "experiments.latent_signals", "runs.jobs"),
    output:
        signals="results/{evidence}/{dataset}/evidence/signals.csv",
        latent="results/{evidence}/{dataset}/evidence/latent.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_signals.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=own_settings("figure4"),
    message:
        "Trace the latent signals of {wildcards.dataset} ({wildcards.evidence}): one stay, and the statistics of all."
    script:
        "../scripts/summarise_signals.py"
