# Tables, figures and the page of claims, rendered from evidence. Requires <evidence>/*/evidence/ of the names that each output
# shows (workflow/config/outputs.yaml) and of no others; leaves <figures>/<name>.tex and .md or .pdf and .png, .csv and .json.


rule render_table:
    input:
        evidence=evidence_of,
        caption=caption_file,
        titles=TITLES,
        library=RENDERING,
    output:
        tex="<figures>/{table}.tex",
        md="<figures>/{table}.md",
        csv=report(
            "<figures>/{table}.csv", caption="../report/output.rst", category="Tables", labels={"table": "{table}"}
        ),
        json="<figures>/{table}.json",
    log:
        "<logs>/render/{table}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        root=EVIDENCE,
        datasets=shown_in,
        labels=lambda wildcards: registry.REPOSITORY_DATASETS if wildcards.get("table") == "table2" else {},
        declared=lambda wildcards: outputs.declared(name_of(wildcards)),
        caption=caption_of,
    message:
        "Render {wildcards.table} from its evidence."
    script:
        "../scripts/render_output.py"


use rule render_table as draw_figure with:
    input:
        evidence=evidence_of,
        caption=caption_file,
        titles=TITLES,
        claims=lambda wildcards: "<figures>/claims.json" if wildcards.figure == registry.CLAIMS_FIGURE else [],
        library=RENDERING,
    output:
        pdf="<figures>/{figure}.pdf",
        png=report(
            "<figures>/{figure}.png", caption="../report/output.rst", category="Figures", labels={"figure": "{figure}"}
        ),
        csv="<figures>/{figure}.csv",
        json="<figures>/{figure}.json",
    log:
        "<logs>/draw/{figure}.log",
    message:
        "Draw {wildcards.figure} from its evidence."


rule judge_claims:
    input:
        evidence=evidence_of,
        caption="workflow/report/claims.rst",
        texts=["workflow/config/claims.yaml", "workflow/report/claims_rules.md"],
        titles=TITLES,
        library=RENDERING,
    output:
        md=report("<figures>/claims.md", caption="../report/output.rst", category="Claims"),
        csv="<figures>/claims.csv",
        json="<figures>/claims.json",
        pages=outputs.claim_pages("<figures>"),
    log:
        "<logs>/judge_claims.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        root=EVIDENCE,
        datasets=shown_in,
        caption=caption_of,
    message:
        "Judge the paper's claims by their evidence."
    script:
        "../scripts/judge_claims.py"


# What this use of the pipeline found, beside the tracked verdicts.
rule compare_verdicts:
    input:
        claims="<figures>/claims.json",
        published=PUBLISHED_VERDICTS if config["evidence"] == "published" else [],
        records=lambda wildcards: outputs.evidence_inputs(registry.CLAIMS, EVIDENCE, config, outputs.RECORDS),
        library=RENDERING,
    output:
        md=report("<figures>.md", caption="../report/output.rst", category="Claims"),
        csv="<figures>.csv",
        costs="<figures>_costs.csv",
    log:
        "<logs>/compare_verdicts.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        # Of other evidence the main use would make other ones: those that are there count.
        published=lambda wildcards, input: None if input.published else checksum_of(Path(PUBLISHED_VERDICTS)),
        root=EVIDENCE,
        caption="The verdicts of this evidence beside the published ones.",
    message:
        "Compare the verdicts with the published ones."
    script:
        "../scripts/compare_verdicts.py"


rule outputs:
    input:
        outputs.files_of_outputs("<figures>", config.get("outputs", registry.OUTPUTS)),
    localrule: True
    message:
        "Render every table and figure from the evidence."


rule evidence:
    input:
        [outputs.evidence_files(EVIDENCE, name, config) for name in outputs.available(EVIDENCE, config)],
        [outputs.prediction_files(EVIDENCE, name, config) for name in outputs.available(EVIDENCE, config)],
        outputs.published_models(EVIDENCE, config) if EVIDENCE == "results/real" else [],
    localrule: True
    message:
        "Compute the evidence behind tables and figures and the models to publish, and render nothing."
