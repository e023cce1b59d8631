# Comparisons beyond the paper (workflow/config/studies.yaml) and the trials of settings (tuning.yaml). One job fits and measures
# a run of a cell. Baselines on embeddings share those of one training a study.
# Requires <results>/{dataset}/prepared/; leaves metrics, predictions and records in <results>/{study}/{cell}/{run}/.


rule run_cell:
    input:
        prepared=lambda wildcards: prepared_of(wildcards.study),
        embedded=lambda wildcards: embeddings_below(wildcards.study, wildcards.run, cell_of(wildcards)["model"]),
        library=TRAINING,
    output:
        metrics="<results>/{study}/{cell}/{run}/metrics.csv",
        predictions="<results>/{study}/{cell}/{run}/predictions.parquet",
        history="<results>/{study}/{cell}/{run}/history.csv",
        record="<results>/{study}/{cell}/{run}/run.json",
    log:
        "<logs>/{study}/{cell}/{run}/run_cell.log",
    wildcard_constraints:
        study="|".join(name for name in config["studies"] if name not in TRACED),
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards: cell_of(wildcards)["threads"]
    resources:
        gpu=lambda wildcards: int(cell_of(wildcards)["model"] in TRAINED),
    params:
        settings=settings_of_cell("scored_on", "split_seed", "threads", "training.samples", *SPLIT_SETTINGS),
    message:
        "Fit and measure {wildcards.cell} of the study {wildcards.study}, {wildcards.run}."
    script:
        "../scripts/run_cell.py"


# The alignments of an embedding over its training: of the paper's loss, and of others.
rule train_traced:
    input:
        prepared=lambda wildcards: prepared_of(wildcards.study),
        library=library("objectives", *OF_TRAINING, "replication/experiments/objectives.py"),
    output:
        alignment="<results>/{study}/{cell}/{run}/alignment.csv",
        history="<results>/{study}/{cell}/{run}/history.csv",
        record="<results>/{study}/{cell}/{run}/run.json",
    log:
        "<logs>/{study}/{cell}/{run}/train_traced.log",
    wildcard_constraints:
        study="|".join(TRACED),
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards: cell_of(wildcards)["threads"]
    resources:
        gpu=1,
    params:
        settings=settings_of_cell("split_seed", "threads", *SPLIT_SETTINGS),
    message:
        "Train {wildcards.cell} in the study {wildcards.study}, {wildcards.run}, and trace its alignment."
    script:
        "../scripts/train_traced.py"


rule embed_study:
    input:
        prepared=lambda wildcards: prepared_of(wildcards.study),
        library=TRAINING,
    output:
        embedded="<results>/{study}/{model}/{run}/embedded.safetensors",
    log:
        "<logs>/{study}/{model}/{run}/embed_study.log",
    wildcard_constraints:
        model="|".join(CLAI),
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards: run_settings.study_settings(config, wildcards.study)["threads"]
    resources:
        gpu=1,
    params:
        settings=lambda wildcards: run_settings.pass_on(
            run_settings.study_settings(config, wildcards.study),
            wildcards.model,
            ["scored_on", "split_seed", "threads", *NETWORK_SETTINGS, *SPLIT_SETTINGS],
        ),
    message:
        "Train {wildcards.model} for the baselines on embeddings in the study {wildcards.study}, {wildcards.run}."
    script:
        "../scripts/embed_study.py"
