# Comparisons beyond the paper: each cell of a study (config key `studies`) trained and measured in one job.
# Requires results/{preset}/{dataset}/prepared/; leaves results/{preset}/{study}/evidence/.


rule run_cell:
    input:
        prepared=study_dataset,
        library=library("studies", "provenance", "jobs"),
    output:
        metrics="results/{preset}/{study}/{cell}/{run}/metrics.csv",
        history="results/{preset}/{study}/{cell}/{run}/history.csv",
        record="results/{preset}/{study}/{cell}/{run}/run.json",
    log:
        "logs/{preset}/{study}/{cell}/{run}/run_cell.log",
    conda:
        "../../envs/environment.yaml"
    threads: cell_threads
    resources:
        gpu=1,
        inference_block=cell_block,
    params:
        settings=cell_params,
        run=run_of,
        checkpoint="results/{preset}/{study}/{cell}/{run}/checkpoint.pt",
    message:
        "Train and measure {wildcards.cell} of the study {wildcards.study} ({wildcards.preset}), {wildcards.run}."
    script:
        "../scripts/run_cell.py"


rule summarise_study:
    input:
        prepared=study_dataset,
        metrics=of_cells("metrics.csv"),
        history=of_cells("history.csv"),
        records=of_cells("run.json"),
        library=library("summary", "jobs"),
    output:
        metrics="results/{preset}/{study}/evidence/metrics.csv",
        history="results/{preset}/{study}/evidence/history.csv",
        records="results/{preset}/{study}/evidence/runs.json",
        description="results/{preset}/{study}/evidence/dataset.json",
    log:
        "logs/{preset}/{study}/summarise_study.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        samples=study_samples,
    message:
        "Gather what all cells of the study {wildcards.study} ({wildcards.preset}) found."
    script:
        "../scripts/summarise_study.py"
