# Datasets of the user's own, in few jobs, because starting one takes longer than computing with little data: a job trains and
# evaluates a run, one gathers the evidence of a dataset, one renders its outputs. Requires <results>/{dataset}/prepared/ and
# fitted baselines; leaves what the rules of other datasets leave, <figures>/own/{dataset}/, and the first model packed.


if OWN:

    ruleorder: train_own > train_model > evaluate
    ruleorder: gather_own > gather > project_embeddings


use rule evaluate as train_own with:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        library=EVALUATION,
    output:
        **dict(rules.train_model.output.items()),
        **dict(rules.evaluate.output.items()),
    log:
        "<logs>/{dataset}/{model}/{run}/train_own.log",
    wildcard_constraints:
        dataset=own_names("samples", "recordings"),
        model="|".join(TRAINED),
    params:
        # What controls of claims ask, only where all evidence of the dataset is computed.
        parts=lambda wildcards: (
            outputs.control_parts(config, RunId.parse("/".join(wildcards)))
            if wildcards.dataset in config["run"]
            else []
        ),
    message:
        "Train and evaluate {wildcards.model} on {wildcards.dataset}, {wildcards.run}."


use rule project_embeddings as gather_own with:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        metrics=behind("metrics.csv"),
        history=behind("history.csv"),
        reliability=behind("reliability.csv"),
        runs=behind("runs.jsonl"),
        embedded=lambda wildcards: files_of(outputs.projected_run(config, wildcards.dataset), "embedded.safetensors"),
        model=lambda wildcards: files_of(outputs.projected_run(config, wildcards.dataset), "model.safetensors"),
        library=EVALUATION,
    output:
        **dict(rules.project_embeddings.output.items()),
        description="<results>/{dataset}/evidence/dataset.json",
        metrics="<results>/{dataset}/evidence/metrics.csv",
        history="<results>/{dataset}/evidence/history.csv",
        reliability="<results>/{dataset}/evidence/reliability.csv",
        runs="<results>/{dataset}/evidence/runs.jsonl",
    log:
        "<logs>/{dataset}/gather_own.log",
    wildcard_constraints:
        dataset=own_names("samples", "recordings"),
    message:
        "Gather the evidence of all runs on {wildcards.dataset}."


use rule render_table as render_own with:
    input:
        evidence=lambda wildcards: outputs.own_evidence(RESULTS, wildcards.dataset),
        captions=[f"workflow/report/own/{name}.rst" for name in registry.OWN],
        titles=TITLES,
        library=RENDERING,
    output:
        own_files("samples"),
    log:
        "<logs>/render/own/{dataset}.log",
    wildcard_constraints:
        dataset=own_names("samples"),
    params:
        root=RESULTS,
        datasets=lambda wildcards: outputs.descriptions([wildcards.dataset], config),
        declared=registry.OWN,
        caption=None,
    message:
        "Render the table and the figures of {wildcards.dataset}."


use rule render_own as render_own_recordings with:
    output:
        own_files("recordings"),
    log:
        "<logs>/render/own/{dataset}_recordings.log",
    wildcard_constraints:
        dataset=own_names("recordings"),


rule own:
    input:
        [expand(own_files(kind), dataset=name) for name, kind in OWN.items()],
        [f"{RESULTS}/{name}/models/{model}/model.json" for name, model in outputs.packed_models(config).items()],
    localrule: True
    message:
        (
            "Compute the evidence of your own datasets, and render their tables and figures."
            if OWN
            else "The settings have no dataset of your own: nothing to compute. Name their file with --configfile."
        )
