# Classifiers on learned embeddings: the Gaussian process and the mixture of Student-t distributions.
# Requires the embeddings of the model named by baselines.embedding; leaves metrics as evaluate.smk does.


rule fit_student_t_mixture:
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=baseline_embeddings,
        library=library("baselines.student_t_mixture", "baselines.evaluation", "provenance", "logs"),
    output:
        metrics="results/{preset}/{dataset}/student-t-mixture/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/student-t-mixture/{run}/reliability.csv",
        record="results/{preset}/{dataset}/student-t-mixture/{run}/run.json",
    log:
        "logs/{preset}/{dataset}/student-t-mixture/{run}/fit_student_t_mixture.log",
    conda:
        "../../envs/environment.yaml"
    threads: own_threads
    params:
        settings=own_settings("threads", "baselines", "evaluation"),
        run=run_of,
    message:
        "Fit the Student-t mixture on {wildcards.dataset}'s embeddings ({wildcards.preset}, {wildcards.run})."
    script:
        "../scripts/fit_student_t_mixture.py"


rule fit_gaussian_process:
    input:
        prepared="results/{preset}/{dataset}/prepared/dataset.json",
        embedded=baseline_embeddings,
        library=library("baselines.gaussian_process", "baselines.evaluation", "provenance", "logs"),
    output:
        metrics="results/{preset}/{dataset}/gp/{run}/metrics.csv",
        reliability="results/{preset}/{dataset}/gp/{run}/reliability.csv",
        latent="results/{preset}/{dataset}/gp/{run}/latent.npz",
        record="results/{preset}/{dataset}/gp/{run}/run.json",
    log:
        "logs/{preset}/{dataset}/gp/{run}/fit_gaussian_process.log",
    conda:
        "../../envs/environment.yaml"
    threads: own_threads
    params:
        settings=own_settings("threads", "baselines", "evaluation"),
        run=run_of,
    message:
        "Fit the Gaussian process on {wildcards.dataset}'s embeddings ({wildcards.preset}, {wildcards.run})."
    script:
        "../scripts/fit_gaussian_process.py"
