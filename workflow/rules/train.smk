# Collaborative Learning and the cross-entropy baseline.
# Requires results/{preset}/{dataset}/prepared/; leaves model.safetensors, history.csv and run.json in results/{preset}/{dataset}/{model}/{run}/.


rule train_model:
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        library=library("experiment", "provenance", "jobs"),
    output:
        model="results/{preset}/{dataset}/{model}/{run}/model.safetensors",
        history="results/{preset}/{dataset}/{model}/{run}/history.csv",
        record="results/{preset}/{dataset}/{model}/{run}/run.json",
    log:
        "logs/{preset}/{dataset}/{model}/{run}/train_model.log",
    wildcard_constraints:
        model="clai-c|clai-m|cross-entropy",
    conda:
        "../../envs/environment.yaml"
    threads: own_threads
    resources:
        gpu=1,
        inference_block=own_block,
    params:
        settings=learning_settings,
        run=run_of,
        checkpoint="results/{preset}/{dataset}/{model}/{run}/checkpoint.pt",
    message:
        "Train {wildcards.model} on {wildcards.dataset} ({wildcards.preset}), {wildcards.run}."
    script:
        "../scripts/train_model.py"
