# Baselines: models of the embeddings of CLaI-C; classifiers of rows of features, or of single
# hours of recordings by the encoder's inputs; and on recordings a Gaussian process that learns its encoder.
# Requires results/{evidence}/{dataset}/prepared/ and, for models of embeddings, these; leaves metrics as evaluate.smk does.


rule fit_embedding_baseline:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        embedded=baseline_embeddings,
        library=TRAINING,
        measures=MEASURES,
    output:
        metrics="results/{evidence}/{dataset}/{model}/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/{model}/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/{model}/{run}/predictions.npz",
        record="results/{evidence}/{dataset}/{model}/{run}/run.json",
    log:
        "logs/{evidence}/{dataset}/{model}/{run}/fit_embedding_baseline.log",
    wildcard_constraints:
        model="|".join(fitted_by("fit_embedding_baseline")),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by_model(),
        fit=lambda wildcards: MODELS[wildcards.model].fit,
    message:
        "Fit {wildcards.model} on {wildcards.dataset}'s embeddings ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/fit_embedding_baseline.py"


rule fit_hourly_classifiers:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        metrics=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/metrics.csv", model=OF_HOURS),
        reliability=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/reliability.csv", model=OF_HOURS),
        predictions=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/predictions.npz", model=OF_HOURS),
        record=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/run.json", model=OF_HOURS),
        latent="results/{evidence}/{dataset}/gp/{run}/latent.npz",
    log:
        "logs/{evidence}/{dataset}/fit_hourly_classifiers/{run}.log",
    wildcard_constraints:
        run=r"seed\d+/fold\d+",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by(OF_HOURS[0], together=OF_HOURS),
        models=OF_HOURS,
    message:
        "Fit classifiers of single hours of {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/fit_row_classifiers.py"


# Recordings have folds, other kinds of data have none.
rule fit_feature_classifiers:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        metrics=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/metrics.csv", model=OF_FEATURES),
        reliability=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/reliability.csv", model=OF_FEATURES),
        predictions=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/predictions.npz", model=OF_FEATURES),
        record=expand("results/{{evidence}}/{{dataset}}/{model}/{{run}}/run.json", model=OF_FEATURES),
    log:
        "logs/{evidence}/{dataset}/fit_feature_classifiers/{run}.log",
    wildcard_constraints:
        run=r"seed\d+",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=only("threads", *FEATURE_BLOCKS, "training.samples", together=OF_FEATURES),
        models=OF_FEATURES,
    message:
        "Fit classifiers of rows of {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/fit_row_classifiers.py"


rule fit_deep_kernel_gp:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=TRAINING,
    output:
        metrics="results/{evidence}/{dataset}/deep-kernel-gp/{run}/metrics.csv",
        reliability="results/{evidence}/{dataset}/deep-kernel-gp/{run}/reliability.csv",
        predictions="results/{evidence}/{dataset}/deep-kernel-gp/{run}/predictions.npz",
        latent="results/{evidence}/{dataset}/deep-kernel-gp/{run}/latent.npz",
        record="results/{evidence}/{dataset}/deep-kernel-gp/{run}/run.json",
    log:
        "logs/{evidence}/{dataset}/deep-kernel-gp/{run}/fit_deep_kernel_gp.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by("deep-kernel-gp"),
        checkpoint="results/{evidence}/{dataset}/deep-kernel-gp/{run}/checkpoint.pt",
    message:
        "Train a deep-kernel Gaussian process on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/fit_deep_kernel_gp.py"
