# Published numbers computed again from published predictions, and verdicts from these; with data at hand also published models.
# Requires evidence with predictions, and the verdicts judged from it; leaves <report>/verify.csv.

# Tracked verdicts are compared as they are; others are judged first.
TRACKED = f"{config['pathvars']['figures']}/{registry.CLAIMS}.json"


rule verify_dataset:
    input:
        evidence=lambda wildcards: outputs.evidence_files(EVIDENCE, wildcards.name, config),
        predictions=lambda wildcards: outputs.prediction_files(EVIDENCE, wildcards.name, config),
        library=VERIFICATION,
    output:
        numbers="<report>/verify/{name}/numbers.csv",
        evidence=directory("<report>/verify/{name}/evidence"),
    log:
        "<logs>/verify_dataset/{name}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        root=lambda wildcards: EVIDENCE,
        datasets=lambda wildcards: outputs.descriptions([wildcards.name], config),
    message:
        "Compute metrics and intervals of {wildcards.name} from its published predictions."
    script:
        "../scripts/verify_dataset.py"


rule verify_models:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        models=lambda wildcards: sorted(map(str, Path(EVIDENCE, wildcards.dataset).glob("models/*"))),
        evidence=lambda wildcards: outputs.evidence_files(EVIDENCE, wildcards.dataset, config),
        library=VERIFICATION,
    output:
        "<report>/verify/{dataset}/models.csv",
    log:
        "<logs>/verify_models/{dataset}.log",
    conda:
        "../../envs/environment.yaml"
    threads: config["threads"]
    params:
        root=lambda wildcards: EVIDENCE,
        datasets=lambda wildcards: outputs.descriptions([wildcards.dataset], config),
    message:
        "Evaluate the published models of {wildcards.dataset} again."
    script:
        "../scripts/verify_models.py"


rule compare_published:
    input:
        numbers=lambda wildcards: expand("<report>/verify/{name}/numbers.csv", name=outputs.predicted(EVIDENCE, config)),
        recomputed=lambda wildcards: expand("<report>/verify/{name}/evidence", name=outputs.predicted(EVIDENCE, config)),
        models=lambda wildcards: expand("<report>/verify/{name}/models.csv", name=outputs.modelled(EVIDENCE, config)),
        judged=[] if EVIDENCE.endswith("published") else f"<figures>/{registry.CLAIMS}.json",
        evidence=evidence_of,
        texts=["workflow/config/claims.yaml", "workflow/report/claims_rules.md"],
        titles=TITLES,
        library=VERIFICATION,
    output:
        "<report>/verify.csv",
    log:
        "<logs>/compare_published.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        root=lambda wildcards: EVIDENCE,
        datasets=shown_in,
        verdicts=lambda wildcards: TRACKED,
        # Another content of them compares again, though no rule makes the tracked ones.
        content=lambda wildcards: checksum_of(Path(TRACKED)) if EVIDENCE.endswith("published") else None,
    message:
        "Compare verdicts with those by recomputed evidence, and gather all comparisons."
    script:
        "../scripts/compare_published.py"


rule verify:
    input:
        "<report>/verify.csv",
    log:
        "<logs>/verify.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    message:
        "Print each published number beside the one computed here; fail if any differs."
    script:
        "../scripts/verify.py"
