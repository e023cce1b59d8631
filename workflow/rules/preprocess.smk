# Raw files to the prepared form.
# Requires the raw.json of the dataset, or of the dataset that its raw_of names; leaves results/{evidence}/{dataset}/prepared/:
# dataset.json and, beside it, the arrays.


rule prepare_dataset:
    input:
        raw=raw_manifest,
        library=DATA,
    output:
        description="results/{evidence}/{dataset}/prepared/dataset.json",
        resources="results/{evidence}/{dataset}/prepare_resources.json",
    log:
        "logs/{evidence}/{dataset}/prepare_dataset.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        memory_gb=lambda wildcards: settings_of(wildcards)["dataset"].get("memory_gb", 0),
    params:
        settings=lambda wildcards: run_settings.preparation_settings(settings(wildcards.evidence), wildcards.dataset),
        seed=lambda wildcards: settings_of(wildcards)["split_seed"],
    message:
        "Parse, split and count {wildcards.dataset} ({wildcards.evidence}) and compute its statistics."
    script:
        "../scripts/prepare_dataset.py"
