# Published numbers computed again from published predictions, compared with the tables; with data at hand also from published
# models, or by a training. Requires evidence with predictions and the outputs rendered from it; leaves report/{mini}verify.csv
# and .html.


def predicted(wildcards):
    """The datasets whose evidence has predictions."""
    root, whole = evidence_root(wildcards), settings_behind(wildcards)
    return [name for name in available(root, whole) if prediction_files(root, name, whole)]


def at_hand(wildcards):
    """The datasets whose data are at hand: those with a path, and all of the miniature."""
    whole = settings_behind(wildcards)
    return [
        name
        for name in available(evidence_root(wildcards), whole)
        if name in whole["datasets"]
        and (whole["miniature"] or whole["datasets"][run_settings.raw_dataset(whole, name)]["path"])
    ]


def computed_below(wildcards):
    """The folder of what is computed here."""
    return f"results/{'mini' if wildcards.mini else 'real'}"


def published_models_of(wildcards):
    """The folders of published models of a dataset."""
    return sorted(
        str(path.parent) for path in Path(evidence_root(wildcards), wildcards.dataset).glob("models/*/model.json")
    )


def with_models(wildcards):
    """The datasets at hand that have published models."""
    root = evidence_root(wildcards)
    return [name for name in at_hand(wildcards) if any(Path(root, name).glob("models/*/model.json"))]


def rendered_here(wildcards):
    """The outputs to compare, where they are rendered here; tracked ones are compared as they are."""
    files = tracked_outputs(wildcards)
    return [] if Path(evidence_root(wildcards)).name == "published" else files


def tracked_outputs(wildcards):
    """The tables and the page of claims that are compared."""
    return [
        f"paper_figures/{wildcards.mini}{name}.{form}" for name in (*VERIFIED_TABLES, CLAIMS) for form in forms_of(name)
    ]


def trained_again(wildcards):
    """The quickest published run of data at hand, as it is trained here; nothing unless `verify` asks for it."""
    if config["verify"] != "train":
        return []
    run = quickest_run(Path(evidence_root(wildcards)), at_hand(wildcards), TRAINED)
    return [] if run is None else f"{computed_below(wildcards)}/{run}/metrics.csv"


rule verify_dataset:
    input:
        evidence=lambda wildcards: evidence_files(
            evidence_root(wildcards), wildcards.dataset, settings_behind(wildcards)
        ),
        predictions=lambda wildcards: prediction_files(
            evidence_root(wildcards), wildcards.dataset, settings_behind(wildcards)
        ),
        library=library("verify_dataset"),
    output:
        numbers="results/verify/{mini}{dataset}/numbers.csv",
        evidence=directory("results/verify/{mini}{dataset}/evidence"),
    log:
        "logs/{mini}verify_dataset/{dataset}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        root=evidence_root,
        datasets=lambda wildcards: descriptions([wildcards.dataset], settings_behind(wildcards)),
        bins=lambda wildcards: settings_behind(wildcards)["evaluation"]["ece_bins"],
    message:
        "Compute metrics and intervals of {wildcards.dataset} from its published predictions."
    script:
        "../scripts/verify_dataset.py"


rule verify_models:
    input:
        prepared=lambda wildcards: f"{computed_below(wildcards)}/{wildcards.dataset}/prepared/dataset.json",
        models=published_models_of,
        evidence=lambda wildcards: evidence_files(
            evidence_root(wildcards), wildcards.dataset, settings_behind(wildcards)
        ),
        library=library("verify_models", "clai.experiments.published"),
    output:
        "results/verify/{mini}{dataset}/models.csv",
    log:
        "logs/{mini}verify_models/{dataset}.log",
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards: settings_behind(wildcards)["threads"]
    resources:
        gpu=1,
    params:
        root=evidence_root,
        datasets=lambda wildcards: descriptions([wildcards.dataset], settings_behind(wildcards)),
    message:
        "Evaluate the published models of {wildcards.dataset} again."
    script:
        "../scripts/verify_models.py"


rule compare_published:
    input:
        numbers=lambda wildcards: [
            f"results/verify/{wildcards.mini}{name}/numbers.csv" for name in predicted(wildcards)
        ],
        recomputed=lambda wildcards: [
            f"results/verify/{wildcards.mini}{name}/evidence" for name in predicted(wildcards)
        ],
        models=lambda wildcards: [
            f"results/verify/{wildcards.mini}{name}/models.csv" for name in with_models(wildcards)
        ],
        trained=trained_again,
        outputs=rendered_here,
        evidence=evidence_of(CLAIMS),
        captions=[f"workflow/report/{name}.rst" for name in (*VERIFIED_TABLES, CLAIMS)],
        printed_values="workflow/config/printed_values.csv",
        reported_values="workflow/config/reported_values.csv",
        choices="workflow/config/choices.csv",
        library=library("compare_published"),
    output:
        numbers="report/{mini}verify.csv",
        page=report(
            "report/{mini}verify.html",
            category="Verification",
            subcategory=evidence_title,
            labels={"output": "Verification", "shows": "Published numbers computed again"},
        ),
    log:
        "logs/{mini}compare_published.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        root=evidence_root,
        outputs=tracked_outputs,
        # Another content of them compares again, though no rule makes the tracked ones.
        contents=lambda wildcards: file_digest([file for file in tracked_outputs(wildcards) if Path(file).exists()]),
        datasets={name: descriptions_for(name) for name in (*VERIFIED_TABLES, CLAIMS)},
        synthetic=lambda wildcards: settings_behind(wildcards)["miniature"],
    message:
        "Compare tables and verdicts with those computed here."
    script:
        "../scripts/compare_published.py"


rule verify:
    input:
        "report/verify.csv",
        "report/verify.html",
    log:
        "logs/verify.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Print each published number beside the one computed here; fail if any differs."
    script:
        "../scripts/verify.py"


rule verify_mini:
    input:
        "report/mini/verify.csv",
        "report/mini/verify.html",
    log:
        "logs/verify_mini.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    message:
        "Do the same with the miniature evidence."
    script:
        "../scripts/verify.py"
