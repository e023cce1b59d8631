# Published models and pictures of their votes. Requires the first run of each CLaI model and of cross-entropy; leaves
# results/{evidence}/{dataset}/models/{model}/ and, for images, votes.csv.gz among the evidence.


rule pack_model:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        model=of_first_run("model.safetensors"),
        embedded=lambda wildcards: of_first_run("embedded.safetensors")(wildcards) if wildcards.model in CLAI else [],
        metrics=of_first_run("metrics.csv"),
        training=of_first_run("run.json"),
        evaluation=of_first_run("evaluation.json"),
        library=EVALUATION,
    output:
        weights="results/{evidence}/{dataset}/models/{model}/model.safetensors",
        record="results/{evidence}/{dataset}/models/{model}/model.json",
        card="results/{evidence}/{dataset}/models/{model}/README.md",
    log:
        "logs/{evidence}/{dataset}/models/{model}/pack_model.log",
    wildcard_constraints:
        model="|".join(PUBLISHED_MODELS),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by_model("embedding_size", "kernel"),
        limits=lambda wildcards: settings(wildcards.evidence)["datasets"][wildcards.dataset].get("limits", []),
    message:
        "Pack {wildcards.model} of {wildcards.dataset} ({wildcards.evidence}) with its references, and write its card."
    script:
        "../scripts/pack_model.py"


rule picture_votes:
    input:
        prepared="results/{evidence}/{dataset}/prepared/dataset.json",
        weights=f"results/{{evidence}}/{{dataset}}/models/{PICTURED_MODEL}/model.safetensors",
        record=f"results/{{evidence}}/{{dataset}}/models/{PICTURED_MODEL}/model.json",
        library=EVALUATION,
    output:
        "results/{evidence}/{dataset}/evidence/votes.csv.gz",
    log:
        "logs/{evidence}/{dataset}/picture_votes.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=only("threads"),
    message:
        "Show which references of {wildcards.dataset} ({wildcards.evidence}) vote for and against the class of test images."
    script:
        "../scripts/picture_votes.py"
