# Raw files to the prepared form.
# Requires results/{evidence}/{dataset}/raw.json, or that of the dataset named by its raw_of; leaves results/{evidence}/{dataset}/prepared/: dataset.json and, beside it, the arrays.


rule prepare_dataset:
    input:
        raw=raw_manifest,
        library=source_library,
    output:
        description="results/{evidence}/{dataset}/prepared/dataset.json",
    log:
        "logs/{evidence}/{dataset}/prepare_dataset.log",
    benchmark:
        "logs/{evidence}/{dataset}/prepare_dataset.benchmark.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        memory_gb=lambda wildcards: dataset_settings(wildcards.evidence, wildcards.dataset)["dataset"].get(
            "memory_gb", 0
        ),
    params:
        settings=preparation_settings,
        seed=lambda wildcards: dataset_settings(wildcards.evidence, wildcards.dataset)["split_seed"],
    message:
        "Prepare {wildcards.dataset} ({wildcards.evidence}): parse, split, count and compute statistics."
    script:
        "../scripts/prepare_dataset.py"
