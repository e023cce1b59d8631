# Raw files of each dataset. Requires the table of sources; leaves results/{evidence}/{dataset}/raw.json, the manifest of
# verified files.


localrules:
    make_miniature,
    fetch_source,


rule make_miniature:
    input:
        library=library("replication/datasets/miniature"),
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


# Always a local job, because compute nodes often have no network.
rule fetch_source:
    input:
        table=source_table,
        library=DATA,
    output:
        manifest="results/{evidence}/{dataset}/raw.json",
        resources="results/{evidence}/{dataset}/download_resources.json",
    log:
        "logs/{evidence}/{dataset}/fetch_source.log",
    conda:
        "../../envs/environment.yaml"
    params:
        settings=lambda wildcards: run_settings.source_settings(settings(wildcards.evidence), wildcards.dataset),
        folder=raw_folder,
        miniature=lambda wildcards: settings(wildcards.evidence)["miniature"],
    message:
        "Find or download the raw files of {wildcards.dataset} ({wildcards.evidence}) and verify them."
    script:
        "../scripts/fetch_source.py"
