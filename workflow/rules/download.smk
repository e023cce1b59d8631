# Raw files of each dataset.
# Requires nothing but config.yaml and the table of sources; leaves results/{evidence}/{dataset}/raw.json, the manifest of verified files.


localrules:
    make_miniature,
    fetch_source,


rule make_miniature:
    input:
        library=library("datasets.miniature.make", "runs.jobs"),
    output:
        table="results/mini/raw/{dataset}/sources.csv",
    log:
        "logs/mini/{dataset}/make_miniature.log",
    conda:
        "../../envs/environment.yaml"
    params:
        seed=settings("mini")["miniature_seed"],
    message:
        "Generate miniature {wildcards.dataset} in the format of its source."
    script:
        "../scripts/make_miniature.py"


# Always a local job: compute nodes often have no network.
rule fetch_source:
    input:
        table=source_table,
        library=source_library,
    output:
        manifest="results/{evidence}/{dataset}/raw.json",
    log:
        "logs/{evidence}/{dataset}/fetch_source.log",
    conda:
        "../../envs/environment.yaml"
    params:
        settings=files_wanted,
        folder=raw_folder,
        miniature=lambda wildcards: dataset_settings(wildcards.evidence, wildcards.dataset)["miniature"],
        mirror=lambda wildcards: dataset_settings(wildcards.evidence, wildcards.dataset)["mirror"],
    message:
        "Find or download the raw files of {wildcards.dataset} ({wildcards.evidence}) and verify them."
    script:
        "../scripts/fetch_source.py"
