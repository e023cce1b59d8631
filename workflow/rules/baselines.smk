# Models of rows of features, of single hours of recordings by the encoder's inputs, or of embeddings of CLaI-C.
# Requires <results>/{dataset}/prepared/ and, for models of embeddings, these; leaves metrics as `evaluate` does.


rule fit_hourly_classifiers:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        metrics=expand("<results>/{{dataset}}/{model}/{{run}}/metrics.csv", model=OF_HOURS),
        reliability=expand("<results>/{{dataset}}/{model}/{{run}}/reliability.csv", model=OF_HOURS),
        predictions=expand("<results>/{{dataset}}/{model}/{{run}}/predictions.npz", model=OF_HOURS),
        record=expand("<results>/{{dataset}}/{model}/{{run}}/run.json", model=OF_HOURS),
        latent=expand(
            "<results>/{{dataset}}/{model}/{{run}}/latent.npz",
            model=[model for model in OF_HOURS if MODELS[model].latent],
        ),
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
        "../scripts/fit_baselines.py"


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
        settings=read_by(OF_FEATURES),
        models=OF_FEATURES,
    message:
        "Fit classifiers of rows of {wildcards.dataset}, {wildcards.run}."


use rule fit_hourly_classifiers as fit_embedding_baseline with:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=embeddings_below,
        library=EVALUATION,
    output:
        metrics=["<results>/{dataset}/{model}/{run}/metrics.csv"],
        reliability=["<results>/{dataset}/{model}/{run}/reliability.csv"],
        predictions=["<results>/{dataset}/{model}/{run}/predictions.npz"],
        record=["<results>/{dataset}/{model}/{run}/run.json"],
    log:
        "<logs>/{dataset}/{model}/{run}/fit_embedding_baseline.log",
    wildcard_constraints:
        model="|".join(fitted_on("embeddings")),
        run=r"seed\d+(/fold\d+)?",
    params:
        settings=read_by_model(),
        models=lambda wildcards: [wildcards.model],
    message:
        "Fit {wildcards.model} on {wildcards.dataset}'s embeddings, {wildcards.run}."
