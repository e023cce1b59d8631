# Controls of claims, from models that are trained already; where a control needs another loss, from trainings that are traced.
# Requires trained models and <results>/{dataset}/prepared/; leaves the files of `controls` in
# <results>/{dataset}/evidence/.


def objective_model(wildcards):
    """The model whose network and settings an embedding has."""
    return registry.EMBEDDINGS[wildcards.embedding].model


rule train_traced:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=[*TRAINING, "src/replication/experiments/embeddings.py"],
    output:
        alignment="<results>/{dataset}/{embedding}/{run}/traced/alignment.csv",
        record="<results>/{dataset}/{embedding}/{run}/traced/run.json",
    log:
        "<logs>/{dataset}/{embedding}/{run}/train_traced.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=settings_of("device", "threads", "encoder", "target", "training", *SPLITS, model=objective_model),
        checkpoint=checkpoint_of,
    message:
        "Train by {wildcards.embedding} on {wildcards.dataset}, {wildcards.run}, and trace its alignment."
    script:
        "../scripts/train_traced.py"


# The classes of trained models are compared in their evaluation.
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
        settings=settings_of("device", "threads", "encoder", "target", "training", *SPLITS, model=lambda _: "clai-m"),
    message:
        "Compare the classes of {wildcards.dataset} in its inputs and in an untrained network, {wildcards.run}."
    script:
        "../scripts/compare_untrained.py"
