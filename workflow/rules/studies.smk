# Comparisons beyond the paper: each cell of a study (config key `studies`) trained and measured in one job.
# Requires results/{evidence}/{dataset}/prepared/; leaves results/{evidence}/{study}/evidence/.


rule run_cell:
    input:
        prepared=study_dataset,
        library=library("experiments.studies", "runs.jobs"),
    output:
        metrics="results/{evidence}/{study}/{cell}/{run}/metrics.csv",
        history="results/{evidence}/{study}/{cell}/{run}/history.csv",
        record="results/{evidence}/{study}/{cell}/{run}/run.json",
    log:
        "logs/{evidence}/{study}/{cell}/{run}/run_cell.log",
    conda:
        "../../envs/environment.yaml"
    threads: cell_threads
    resources:
        gpu=1,
        inference_block=cell_block,
    params:
        settings=cell_params,
        checkpoint="results/{evidence}/{study}/{cell}/{run}/checkpoint.pt",
    message:
        "Train and measure {wildcards.cell} of the study {wildcards.study} ({wildcards.evidence}), {wildcards.run}."
    script:
        "../scripts/run_cell.py"


rule summarise_study:
    input:
        prepared=study_dataset,
        metrics=of_cells("metrics.csv"),
        history=of_cells("history.csv"),
        records=of_cells("run.json"),
        library=library("runs.columns", "runs.gather", "runs.record", "runs.jobs"),
    output:
        metrics="results/{evidence}/{study}/evidence/metrics.csv",
        history="results/{evidence}/{study}/evidence/history.csv",
        records="results/{evidence}/{study}/evidence/runs.jsonl",
        shared="results/{evidence}/{study}/evidence/runs_shared.json",
        description="results/{evidence}/{study}/evidence/dataset.json",
    log:
        "logs/{evidence}/{study}/summarise_study.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        samples=study_samples,
    message:
        "Gather what all cells of the study {wildcards.study} ({wildcards.evidence}) found."
    script:
        "../scripts/summarise_study.py"
