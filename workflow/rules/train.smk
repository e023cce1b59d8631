# The runs of models: training and evaluation of networks, CLaI's and others; fit and evaluation of classifiers of rows, of hours or
# of CLaI-C's embeddings. Requires <results>/{dataset}/prepared/; leaves metrics and records in <results>/{dataset}/{model}/{run}/.


rule train_model:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=TRAINING,
    output:
        model="<results>/{dataset}/{model}/{run}/model.safetensors",
        history="<results>/{dataset}/{model}/{run}/history.csv",
        training="<results>/{dataset}/{model}/{run}/run.json",
    log:
        "<logs>/{dataset}/{model}/{run}/train_model.log",
    wildcard_constraints:
        model="|".join(TRAINED),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=settings_of("threads", *NETWORK_SETTINGS, *SPLIT_SETTINGS),
    message:
        "Train {wildcards.model} on {wildcards.dataset}, {wildcards.run}."
    script:
        "../scripts/run_model.py"


# What does not apply to a model is left empty: embeddings of others than CLaI's, controls of other runs, latent processes.
use rule train_model as evaluate with:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        model="<results>/{dataset}/{model}/{run}/model.safetensors",
        library=EVALUATION,
    output:
        metrics="<results>/{dataset}/{model}/{run}/metrics.csv",
        reliability="<results>/{dataset}/{model}/{run}/reliability.csv",
        predictions="<results>/{dataset}/{model}/{run}/predictions.parquet",
        embedded="<results>/{dataset}/{model}/{run}/embedded.safetensors",
        similarity="<results>/{dataset}/{model}/{run}/similarity.csv",
        agreement="<results>/{dataset}/{model}/{run}/agreement.csv",
        latent="<results>/{dataset}/{model}/{run}/latent.csv",
        areas="<results>/{dataset}/{model}/{run}/areas.csv",
        process="<results>/{dataset}/{model}/{run}/latent.npz",
        evaluation="<results>/{dataset}/{model}/{run}/evaluation.json",
    log:
        "<logs>/{dataset}/{model}/{run}/evaluate.log",
    params:
        parts=lambda wildcards: outputs.control_parts(config, RunId.parse("/".join(wildcards))),
    message:
        "Evaluate {wildcards.model} on {wildcards.dataset}, {wildcards.run}."


rule fit_baseline:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=lambda wildcards: embeddings_below(wildcards.dataset, wildcards.run, wildcards.model),
        library=EVALUATION,
    output:
        metrics="<results>/{dataset}/{model}/{run}/metrics.csv",
        reliability="<results>/{dataset}/{model}/{run}/reliability.csv",
        predictions="<results>/{dataset}/{model}/{run}/predictions.parquet",
        process="<results>/{dataset}/{model}/{run}/latent.npz",
        record="<results>/{dataset}/{model}/{run}/run.json",
    log:
        "<logs>/{dataset}/{model}/{run}/fit_baseline.log",
    wildcard_constraints:
        model="|".join([*fitted_on("rows"), *fitted_on("embeddings")]),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=settings_of("threads", "training.samples", *SPLIT_SETTINGS),
    message:
        "Fit {wildcards.model} on {wildcards.dataset}, {wildcards.run}."
    script:
        "../scripts/fit_baseline.py"


# A control of claims that needs no training; the classes of trained models are compared in their evaluation.
rule compare_untrained:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        untrained=f"<results>/{{dataset}}/{registry.UNTRAINED}/{{run}}/similarity.csv",
        inputs=f"<results>/{{dataset}}/{registry.INPUTS}/{{run}}/similarity.csv",
    log:
        "<logs>/{dataset}/compare_untrained/{run}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        settings=settings_of("threads", *NETWORK_SETTINGS, *SPLIT_SETTINGS, model=registry.UNTRAINED_MODEL),
    message:
        "Compare the classes of {wildcards.dataset} in its inputs and in an untrained network, {wildcards.run}."
    script:
        "../scripts/compare_untrained.py"
