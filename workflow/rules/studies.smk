# Comparisons beyond the paper (workflow/config/studies.yaml) and the trials of settings (tuning.yaml). One job fits and measures
# a run of a cell. Baselines on embeddings share those of one training a study.
# Requires <results>/{dataset}/prepared/; leaves metrics and records in <results>/{study}/{cell}/{run}/.


rule run_cell:
    input:
        prepared=prepared_of,
        embedded=embeddings_below,
        library=TRAINING,
    output:
        metrics="<results>/{study}/{cell}/{run}/metrics.csv",
        history="<results>/{study}/{cell}/{run}/history.csv",
        record="<results>/{study}/{cell}/{run}/run.json",
    log:
        "<logs>/{study}/{cell}/{run}/run_cell.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=lambda wildcards: int(model_of(wildcards) in TRAINED),
    params:
        settings=read_by_model("scored_on", "training.samples", "split_seed"),
        checkpoint=checkpoint_of,
    message:
        "Fit and measure {wildcards.cell} of the study {wildcards.study}, {wildcards.run}."
    script:
        "../scripts/run_cell.py"


rule embed_study:
    input:
        prepared=prepared_of,
        library=TRAINING,
    output:
        embedded="<results>/{study}/{model}/{run}/embedded.safetensors",
    log:
        "<logs>/{study}/{model}/{run}/embed_study.log",
    wildcard_constraints:
        model="|".join(CLAI),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_model("scored_on", "split_seed"),
        checkpoint=checkpoint_of,
    message:
        "Train {wildcards.model} for the baselines on embeddings in the study {wildcards.study}, {wildcards.run}."
    script:
        "../scripts/embed_study.py"
