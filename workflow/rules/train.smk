# Collaborative Learning and the cross-entropy baseline. Requires results/{evidence}/{dataset}/prepared/; leaves
# model.safetensors, history.csv and run.json in results/{evidence}/{dataset}/{model}/{run}/.


rule train_model:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        library=TRAINING,
    output:
        model="results/{evidence}/{dataset}/{model}/{run}/model.safetensors",
        history="results/{evidence}/{dataset}/{model}/{run}/history.csv",
        record="results/{evidence}/{dataset}/{model}/{run}/run.json",
    log:
        "logs/{evidence}/{dataset}/{model}/{run}/train_model.log",
    wildcard_constraints:
        model="|".join(fitted_by("train_model")),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_model(),
        kernel=lambda wildcards: MODELS[wildcards.model].kernel,
        checkpoint="results/{evidence}/{dataset}/{model}/{run}/checkpoint.pt",
    message:
        "Train {wildcards.model} on {wildcards.dataset} ({wildcards.evidence}), {wildcards.run}."
    script:
        "../scripts/train_model.py"
