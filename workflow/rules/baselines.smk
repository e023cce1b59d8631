# Baselines: models of the embeddings of CLaI-C; classifiers of rows of features, or of single
# hours of recordings by the encoder's inputs; and on recordings a Gaussian process that learns its encoder.
# Requires <results>/{dataset}/prepared/ and, for models of embeddings, these; leaves metrics as `evaluate` does.


rule fit_embedding_baseline:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=embeddings_below,
        library=EVALUATION,
    output:
        metrics="<results>/{dataset}/{model}/{run}/metrics.csv",
        reliability="<results>/{dataset}/{model}/{run}/reliability.csv",
        predictions="<results>/{dataset}/{model}/{run}/predictions.npz",
        record="<results>/{dataset}/{model}/{run}/run.json",
    log:
        "<logs>/{dataset}/{model}/{run}/fit_embedding_baseline.log",
    wildcard_constraints:
        model="|".join(fitted_by("fit_embedding_baseline")),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by_model(),
    message:
        "Fit {wildcards.model} on {wildcards.dataset}'s embeddings, {wildcards.run}."
    script:
        "../scripts/fit_embedding_baseline.py"


rule fit_hourly_classifiers:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        metrics=expand("<results>/{{dataset}}/{model}/{{run}}/metrics.csv", model=OF_HOURS),
        reliability=expand("<results>/{{dataset}}/{model}/{{run}}/reliability.csv", model=OF_HOURS),
        predictions=expand("<results>/{{dataset}}/{model}/{{run}}/predictions.npz", model=OF_HOURS),
        record=expand("<results>/{{dataset}}/{model}/{{run}}/run.json", model=OF_HOURS),
        latent="<results>/{dataset}/gp/{run}/latent.npz",
    log:
        "<logs>/{dataset}/fit_hourly_classifiers/{run}.log",
    wildcard_constraints:
        run=r"seed\d+/fold\d+",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by(OF_HOURS),
        models=OF_HOURS,
    message:
        "Fit classifiers of single hours of {wildcards.dataset}, {wildcards.run}."
    script:
        "../scripts/fit_row_classifiers.py"


# Features have no folds.
use rule fit_hourly_classifiers as fit_feature_classifiers with:
    output:
        metrics=expand("<results>/{{dataset}}/{model}/{{run}}/metrics.csv", model=OF_FEATURES),
        reliability=expand("<results>/{{dataset}}/{model}/{{run}}/reliability.csv", model=OF_FEATURES),
        predictions=expand("<results>/{{dataset}}/{model}/{{run}}/predictions.npz", model=OF_FEATURES),
        record=expand("<results>/{{dataset}}/{model}/{{run}}/run.json", model=OF_FEATURES),
    log:
        "<logs>/{dataset}/fit_feature_classifiers/{run}.log",
    wildcard_constraints:
        run=r"seed\d+",
    params:
        settings=only(
            "threads",
            "training.samples",
            *(f"baselines.{model.replace('-', '_')}" for model in OF_FEATURES),
            models=OF_FEATURES,
        ),
        models=OF_FEATURES,
    message:
        "Fit classifiers of rows of {wildcards.dataset}, {wildcards.run}."


rule fit_deep_kernel_gp:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=TRAINING,
    output:
        metrics="<results>/{dataset}/deep-kernel-gp/{run}/metrics.csv",
        reliability="<results>/{dataset}/deep-kernel-gp/{run}/reliability.csv",
        predictions="<results>/{dataset}/deep-kernel-gp/{run}/predictions.npz",
        latent="<results>/{dataset}/deep-kernel-gp/{run}/latent.npz",
        record="<results>/{dataset}/deep-kernel-gp/{run}/run.json",
    log:
        "<logs>/{dataset}/deep-kernel-gp/{run}/fit_deep_kernel_gp.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by(["deep-kernel-gp"]),
        checkpoint=checkpoint_of,
    message:
        "Train a deep-kernel Gaussian process on {wildcards.dataset}, {wildcards.run}."
    script:
        "../scripts/fit_deep_kernel_gp.py"
