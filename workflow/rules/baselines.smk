# Classifiers on learned embeddings: the Gaussian process and the mixture of Student-t distributions.
# Requires the embeddings of the model named by baselines.embedding; leaves metrics as evaluate.smk does.


def baseline_embeddings(wildcards):
    chosen = dataset_settings(wildcards.preset, wildcards.dataset)["baselines"]["embedding"]
    return f"results/{wildcards.preset}/{wildcards.dataset}/{chosen}/{wildcards.run}/embedded.safetensors"


rule fit_student_t_mixture:
    message:
        "Fit the Student-t mixture on {wildcards.dataset}'s embeddings ({wildcards.preset}, {wildcards.run})."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=baseline_embeddings,
        library=library("baselines.student_t_mixture", "baselines.evaluation", "provenance", "logs"),
    output:
        metrics="results/{preset}/{dataset}/student-t-mixture/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/student-t-mixture/{run}/reliability.csv",
        record="results/{preset}/{dataset}/student-t-mixture/{run}/run.json",
    params:
        settings=own_settings("threads", "baselines", "evaluation"),
        run=run_of,
    log:
        "logs/{preset}/{dataset}/student-t-mixture/{run}/fit_student_t_mixture.log",
    threads: own_threads
    script:
        "../scripts/fit_student_t_mixture.py"


rule fit_gaussian_process:
    message:
        "Fit the Gaussian process on {wildcards.dataset}'s embeddings ({wildcards.preset}, {wildcards.run})."
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=baseline_embeddings,
        library=library("baselines.gaussian_process", "baselines.evaluation", "provenance", "logs"),
    output:
        metrics="results/{preset}/{dataset}/gp/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/gp/{run}/reliability.csv",
        latent="results/{preset}/{dataset}/gp/{run}/latent.npz",
        record="results/{preset}/{dataset}/gp/{run}/run.json",
    params:
        settings=own_settings("threads", "baselines", "evaluation"),
        run=run_of,
    log:
        "logs/{preset}/{dataset}/gp/{run}/fit_gaussian_process.log",
    threads: own_threads
    script:
        "../scripts/fit_gaussian_process.py"
