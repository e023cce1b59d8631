# The evidence of a dataset or study, file by file: its runs gathered, compared and pictured; and what needs no data. Requires
# evaluated runs and fitted baselines; leaves <results>/{name}/evidence/, from which all tables and figures are made, and
# <results>/{dataset}/models/{model}/, the models to publish.


rule gather:
    input:
        files=lambda wildcards: [f"<results>/{file}" for file in outputs.files_behind(config, **wildcards)],
        library=library("gathering", *OF_DATA, "replication/experiments/predictions.py"),
    output:
        "<results>/{name}/evidence/{file}",
    log:
        "<logs>/{name}/gather/{file}.log",
    wildcard_constraints:
        file="|".join([*outputs.GATHERED, *outputs.RECORDS, r"dataset\.json", r"(samples|predictions_.+)\.parquet"]),
    conda:
        "../../envs/environment.yaml"
    params:
        study=lambda wildcards: wildcards.name in config["studies"],
        samples=lambda wildcards: run_settings.training_samples(config, wildcards.name),
    message:
        "Gather {wildcards.file} of {wildcards.name}."
    script:
        "../scripts/gather.py"


rule trace_signals:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=files_of_models("embedded.safetensors", CLAI),
        latent=files_of_models("latent.npz", [name for name, model in MODELS.items() if model.latent]),
        controls=lambda wildcards: files_of(outputs.signal_runs(config, wildcards.dataset), "latent.csv"),
        predictions=lambda wildcards: files_of(outputs.signal_runs(config, wildcards.dataset), "predictions.parquet"),
        areas=lambda wildcards: files_of(outputs.signal_runs(config, wildcards.dataset), "areas.csv"),
        library=EVALUATION,
    output:
        signals="<results>/{dataset}/evidence/signals.csv",
        latent="<results>/{dataset}/evidence/latent.csv",
        areas="<results>/{dataset}/evidence/areas.csv",
    log:
        "<logs>/{dataset}/trace_signals.log",
    conda:
        "../../envs/environment.yaml"
    message:
        "Trace the latent signals of {wildcards.dataset}: of one stay, and of all."
    script:
        "../scripts/trace_signals.py"


rule compare_models:
    input:
        prepared=lambda wildcards: prepared_of(wildcards.name),
        predictions=behind(outputs.COMPARISONS),
        library=EVALUATION,
    output:
        f"<results>/{{name}}/evidence/{outputs.COMPARISONS}",
    log:
        "<logs>/{name}/compare_models.log",
    conda:
        "../../envs/environment.yaml"
    message:
        "Compare the models of {wildcards.name} over seeds and test samples."
    script:
        "../scripts/compare_models.py"


rule project_embeddings:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=lambda wildcards: files_of(outputs.projected_run(config, wildcards.dataset), "embedded.safetensors"),
        model=lambda wildcards: files_of(outputs.projected_run(config, wildcards.dataset), "model.safetensors"),
        library=EVALUATION,
    output:
        tsne="<results>/{dataset}/evidence/tsne.csv.gz",
        stages="<results>/{dataset}/evidence/stages.csv.gz",
    log:
        "<logs>/{dataset}/project_embeddings.log",
    conda:
        "../../envs/environment.yaml"
    params:
        settings=projected_settings,
        samples=lambda wildcards: run_settings.training_samples(config, wildcards.dataset),
    message:
        "Project test embeddings of {wildcards.dataset} to two dimensions."
    script:
        "../scripts/project_embeddings.py"


rule pack_model:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        model=file_of_first_run("model.safetensors"),
        embedded=file_of_first_run("embedded.safetensors"),
        metrics=file_of_first_run("metrics.csv"),
        training=file_of_first_run("run.json"),
        evaluation=file_of_first_run("evaluation.json"),
        card="workflow/report/model_card.md",
        titles=TITLES,
        library=VERIFICATION,
    output:
        weights="<results>/{dataset}/models/{model}/model.safetensors",
        record="<results>/{dataset}/models/{model}/model.json",
        card="<results>/{dataset}/models/{model}/README.md",
    log:
        "<logs>/{dataset}/models/{model}/pack_model.log",
    wildcard_constraints:
        model="|".join(registry.PUBLISHED_MODELS),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=settings_of("threads", *NETWORK_SETTINGS, "embedding_size", "kernel", *SPLIT_SETTINGS),
        limits=lambda wildcards: config["datasets"][wildcards.dataset].get("limits", []),
    message:
        "Pack {wildcards.model} of {wildcards.dataset} with its references, and write its card."
    script:
        "../scripts/pack_model.py"


rule picture_votes:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        record=f"<results>/{{dataset}}/models/{registry.PICTURED_MODEL}/model.json",
        weights=f"<results>/{{dataset}}/models/{registry.PICTURED_MODEL}/model.safetensors",
        library=EVALUATION,
    output:
        "<results>/{dataset}/evidence/votes.csv.gz",
    log:
        "<logs>/{dataset}/picture_votes.log",
    conda:
        "../../envs/environment.yaml"
    message:
        "Show which references of {wildcards.dataset} vote for and against the class of test images."
    script:
        "../scripts/picture_votes.py"


rule check_theory:
    input:
        library=EVALUATION,
    output:
        found=f"<results>/{registry.THEORY}/evidence/theory.csv",
        records=f"<results>/{registry.THEORY}/evidence/runs.jsonl",
    log:
        f"<logs>/{registry.THEORY}/check_theory.log",
    conda:
        "../../envs/environment.yaml"
    params:
        settings=lambda wildcards: run_settings.select(config, ["miniature"]),
    message:
        "Check decision rules and the alignment bound numerically."
    script:
        "../scripts/check_theory.py"


# The whole machine, so that no other job runs beside a measurement: Snakemake lowers threads to the cores that there are, and
# a cluster's profile sets its own number. The numbers of the miniature mean nothing.
rule measure_complexity:
    input:
        library=EVALUATION,
    output:
        measured=f"<results>/{registry.BENCHMARK}/evidence/benchmark.csv",
        records=f"<results>/{registry.BENCHMARK}/evidence/runs.jsonl",
        description=f"<results>/{registry.BENCHMARK}/evidence/dataset.json",
    log:
        f"<logs>/{registry.BENCHMARK}/measure_complexity.log",
    conda:
        "../../envs/environment.yaml"
    threads: config["threads"] if config["miniature"] else 1024
    resources:
        gpu=1,
    params:
        settings=lambda wildcards: run_settings.select(
            run_settings.dataset_settings(config, "cifar10"),
            ["threads", *NETWORK_SETTINGS, "embedding_size", "kernel", "miniature", "benchmark"],
        ),
    message:
        "Measure time and memory while the machine does nothing else."
    script:
        "../scripts/measure_complexity.py"
