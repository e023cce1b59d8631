# Tables and the page of claims, rendered from evidence. Requires results/{evidence}/*/evidence/ of the datasets that each output
# names, and only of those; leaves paper_figures/{view}<name>.tex, .csv and .json, and claims.md, .csv and .json.


include: "outputs.smk"


for name, datasets in TABLES.items():

    rule:
        name:
            f"render_{name}"
        input:
            evidence=evidence_inputs(datasets),
            caption=f"workflow/report/{name}.rst",
            printed_values="workflow/config/printed_values.csv",
            choices="workflow/config/choices.csv",
            library=library("report.tables.render", "runs.jobs"),
        output:
            tex=f"paper_figures/{{view}}{name}.tex",
            csv=f"paper_figures/{{view}}{name}.csv",
            json=f"paper_figures/{{view}}{name}.json",
        log:
            f"logs/{{view}}render_{name}.log",
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        params:
            name=name,
            root=evidence_root,
            datasets=named(datasets),
            settings=settings_shown(name),
        message:
            f"Render {name} from its evidence."
        script:
            "../scripts/render_table.py"


rule render_claims:
    input:
        evidence=evidence_inputs([*CLAIMS, THEORY]),
        caption="workflow/report/claims.rst",
        printed_values="workflow/config/printed_values.csv",
        library=library("report.claims.page", "runs.jobs"),
    output:
        md="paper_figures/{view}claims.md",
        csv="paper_figures/{view}claims.csv",
        json="paper_figures/{view}claims.json",
    log:
        "logs/{view}render_claims.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        root=evidence_root,
        datasets=named(CLAIMS),
    message:
        "Judge the paper's claims by their evidence."
    script:
        "../scripts/render_claims.py"
