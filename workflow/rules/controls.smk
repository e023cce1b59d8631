# Controls of claims, and read-outs of fixed embeddings, from models that are trained already; where a control needs another
# loss, from trainings that are traced. Requires trained models and results/{evidence}/{dataset}/prepared/; leaves the files of `controls` in
# results/{evidence}/{dataset}/evidence/.


rule train_traced:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=[*TRAINING, "src/replication/experiments/objectives.py"],
    output:
        model="results/{evidence}/{dataset}/{embedding}/{run}/traced/model.safetensors",
        alignment="results/{evidence}/{dataset}/{embedding}/{run}/traced/alignment.csv",
        record="results/{evidence}/{dataset}/{embedding}/{run}/traced/run.json",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/train_traced.log",
    wildcard_constraints:
        embedding="|".join(OBJECTIVES),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_embedding(),
        checkpoint="results/{evidence}/{dataset}/{embedding}/{run}/traced/checkpoint.pt",
    message:
        "Train by {wildcards.embedding} on {wildcards.dataset} ({wildcards.evidence}), {wildcards.run}, and trace its alignment."
    script:
        "../scripts/train_traced.py"


rule fit_read_outs:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model=model_of_embedding,
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/{embedding}/{run}/read_outs.csv",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/fit_read_outs.log",
    wildcard_constraints:
        embedding="|".join(EMBEDDINGS),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_embedding(),
    message:
        "Fit read-outs of the embedding {wildcards.embedding} of {wildcards.dataset} ({wildcards.evidence}), {wildcards.run}."
    script:
        "../scripts/fit_read_outs.py"


# The similarities of CLaI's own classes are those of its evaluation.
rule compare_classes:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model=model_of_embedding,
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/{embedding}/{run}/similarity.csv",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/compare_classes.log",
    wildcard_constraints:
        embedding="|".join(COMPARED),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_embedding(),
    message:
        "Compare the classes of {wildcards.dataset} in the embedding {wildcards.embedding} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/compare_classes.py"


rule compare_rules:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model="results/{evidence}/{dataset}/{embedding}/{run}/model.safetensors",
        embedded="results/{evidence}/{dataset}/{embedding}/{run}/embedded.safetensors",
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/{embedding}/{run}/agreement.csv",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/compare_rules.log",
    wildcard_constraints:
        embedding="clai-m",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by_embedding(),
    message:
        "Compare the printed rule with the Parzen-window Bayes rule on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/compare_rules.py"


rule fit_bandwidth:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        weights="results/{evidence}/{dataset}/models/{embedding}/model.safetensors",
        record="results/{evidence}/{dataset}/models/{embedding}/model.json",
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/{embedding}/{run}/bandwidth.csv",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/fit_bandwidth.log",
    wildcard_constraints:
        embedding="|".join(CLAI),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    message:
        "Fit the Parzen window of {wildcards.embedding} on {wildcards.dataset} ({wildcards.evidence}, {wildcards.run})."
    script:
        "../scripts/fit_bandwidth.py"


rule describe_signals:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model="results/{evidence}/{dataset}/{embedding}/{run}/model.safetensors",
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/{embedding}/{run}/latent.csv",
    log:
        "logs/{evidence}/{dataset}/{embedding}/{run}/describe_signals.log",
    wildcard_constraints:
        embedding="|".join(SIGNALS),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_embedding(),
    message:
        "Describe the signals of {wildcards.embedding} as its kernel sees them ({wildcards.evidence}, {wildcards.dataset}, {wildcards.run})."
    script:
        "../scripts/describe_signals.py"


rule summarise_controls:
    input:
        tables=files_of_control,
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/{control}.csv",
    log:
        "logs/{evidence}/{dataset}/summarise_controls/{control}.log",
    wildcard_constraints:
        control="|".join(CONTROLS),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Gather {wildcards.control} of all embeddings of {wildcards.dataset} ({wildcards.evidence})."
    script:
        "../scripts/summarise_controls.py"
