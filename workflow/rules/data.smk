# Raw files of each dataset, and their prepared form. Requires the table of sources; leaves <results>/{dataset}/raw.json, the
# manifest of verified files, and <results>/{dataset}/prepared/: dataset.json and, beside it, the arrays.


rule make_miniature:
    input:
        library=library("miniature", *OF_DATA),
    output:
        table="<results>/raw/{dataset}/sources.csv",
    log:
        "<logs>/{dataset}/make_miniature.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    message:
        "Generate miniature {wildcards.dataset} in the format of its source."
    script:
        "../scripts/make_miniature.py"


# Always a local job, because compute nodes often have no network.
rule fetch_source:
    input:
        table="<results>/raw/{dataset}/sources.csv" if config["miniature"] else "workflow/config/data_sources.csv",
        library=DATA,
    output:
        manifest="<results>/{dataset}/raw.json",
    log:
        "<logs>/{dataset}/fetch_source.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        settings=lambda wildcards: run_settings.source_settings(config, wildcards.dataset),
        # So a change of the user's raw files verifies and prepares them again.
        files=lambda wildcards: state_of_raw(config["datasets"][wildcards.dataset]),
        folder=lambda wildcards: f"{RAW}/{wildcards.dataset}",
        miniature=config["miniature"],
    message:
        "Find or download the raw files of {wildcards.dataset} and verify them."
    script:
        "../scripts/fetch_source.py"


rule prepare_dataset:
    input:
        raw=lambda wildcards: f"<results>/{run_settings.raw_dataset(config, wildcards.dataset)}/raw.json",
        library=DATA,
    output:
        description="<results>/{dataset}/prepared/dataset.json",
    log:
        "<logs>/{dataset}/prepare_dataset.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        memory_gb=lambda wildcards: config["datasets"][wildcards.dataset].get("memory_gb", 0),
    params:
        settings=lambda wildcards: run_settings.preparation_settings(config, wildcards.dataset),
        seed=lambda wildcards: config["split_seed"],
    message:
        "Parse, split and count {wildcards.dataset} and compute its statistics."
    script:
        "../scripts/prepare_dataset.py"
