# Published numbers computed again from published predictions, compared with the tables; with data at hand also from published
# models. Requires evidence with predictions and the outputs rendered from it; leaves report/{mini}verify.csv.


rule verify_dataset:
    input:
        evidence=lambda wildcards: evidence_files(
            evidence_root(wildcards), wildcards.dataset, settings_behind(wildcards)
        ),
        predictions=lambda wildcards: prediction_files(
            evidence_root(wildcards), wildcards.dataset, settings_behind(wildcards)
        ),
        library=[*RENDERING, *EVALUATION],
    output:
        numbers="results/verify/{mini}{dataset}/numbers.csv",
        evidence=directory("results/verify/{mini}{dataset}/evidence"),
    log:
        "logs/{mini}verify_dataset/{dataset}.log",
    wildcard_constraints:
        dataset="|".join(PREDICTED),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        root=evidence_root,
        datasets=lambda wildcards: descriptions([wildcards.dataset], settings_behind(wildcards)),
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
        library=[*RENDERING, *EVALUATION],
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
        outputs=rendered_here,
        evidence=evidence_of(CLAIMS),
        captions=[f"workflow/report/{name}.rst" for name in (*VERIFIED_TABLES, CLAIMS)],
        printed_values="workflow/config/printed_values.csv",
        reported_values="workflow/config/reported_values.csv",
        choices="workflow/config/choices.csv",
        library=[*RENDERING, *EVALUATION],
    output:
        "report/{mini}verify.csv",
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
    message:
        "Compare tables and verdicts with those computed here."
    script:
        "../scripts/compare_published.py"


rule verify:
    input:
        "report/verify.csv",
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
