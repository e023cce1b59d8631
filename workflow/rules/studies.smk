# Comparisons beyond the paper (workflow/config/studies.yaml) and the trials of settings (tuning.yaml). One job fits and measures
# a run of a cell. Baselines on embeddings share those of one training a study.
# Requires results/{evidence}/{dataset}/prepared/; leaves results/{evidence}/{study}/evidence/.


rule run_cell:
    input:
        prepared=study_dataset,
        embedded=embeddings_of_cell,
        library=TRAINING,
    output:
        metrics="results/{evidence}/{study}/{cell}/{run}/metrics.csv",
        history="results/{evidence}/{study}/{cell}/{run}/history.csv",
        record="results/{evidence}/{study}/{cell}/{run}/run.json",
    log:
        "logs/{evidence}/{study}/{cell}/{run}/run_cell.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_model("model", "scored_on", "training.samples", "split_seed"),
        checkpoint="results/{evidence}/{study}/{cell}/{run}/checkpoint.pt",
    message:
        "Fit and measure {wildcards.cell} of the study {wildcards.study} ({wildcards.evidence}), {wildcards.run}."
    script:
        "../scripts/run_cell.py"


# A study whose predictions are published keeps them.
use rule run_cell as run_predicted_cell with:
    output:
        metrics="results/{evidence}/{study}/{cell}/{run}/metrics.csv",
        history="results/{evidence}/{study}/{cell}/{run}/history.csv",
        record="results/{evidence}/{study}/{cell}/{run}/run.json",
        predictions="results/{evidence}/{study}/{cell}/{run}/predictions.npz",
    wildcard_constraints:
        study="|".join(PREDICTED_STUDIES),


ruleorder: run_predicted_cell > run_cell


use rule gather_samples as gather_samples_of_study with:
    input:
        prepared=study_dataset,
        library=EVALUATION,
    output:
        "results/{evidence}/{study}/evidence/samples.npz",
    log:
        "logs/{evidence}/{study}/gather_samples.log",
    wildcard_constraints:
        study="|".join(PREDICTED_STUDIES),
    message:
        "Keep the labels of the test samples of the study {wildcards.study} ({wildcards.evidence})."


use rule gather_predictions as gather_predictions_of_cell with:
    input:
        predictions=files_of_cell("predictions.npz"),
        metrics=files_of_cell("metrics.csv"),
        library=EVALUATION,
    output:
        "results/{evidence}/{study}/evidence/predictions_{cell}.npz",
    log:
        "logs/{evidence}/{study}/gather_predictions_{cell}.log",
    wildcard_constraints:
        study="|".join(PREDICTED_STUDIES),
    message:
        "Round and pack the predictions of {wildcards.cell} of the study {wildcards.study} ({wildcards.evidence})."


rule embed_study:
    input:
        prepared=study_dataset,
        library=TRAINING,
    output:
        embedded="results/{evidence}/{study}/{model}/{run}/embedded.safetensors",
    log:
        "logs/{evidence}/{study}/{model}/{run}/embed_study.log",
    wildcard_constraints:
        model="|".join(CLAI),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    resources:
        gpu=1,
    params:
        settings=read_by_model("scored_on", "split_seed"),
        checkpoint="results/{evidence}/{study}/{model}/{run}/checkpoint.pt",
    message:
        "Train {wildcards.model} for the baselines on embeddings in the study {wildcards.study} ({wildcards.evidence}), {wildcards.run}."
    script:
        "../scripts/embed_study.py"


rule summarise_study:
    input:
        prepared=study_dataset,
        metrics=files_of_cells("metrics.csv"),
        history=files_of_cells("history.csv"),
        records=files_of_cells("run.json"),
        library=EVALUATION,
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
        "Gather metrics, histories and records of all cells of the study {wildcards.study} ({wildcards.evidence})."
    script:
        "../scripts/summarise_study.py"
