# Tables and the page of claims, rendered from evidence. Requires results/{evidence}/*/evidence/ of the names that each output
# shows (src/replication/runs/outputs.py) and of no others; leaves paper_figures/{mini}<name>.tex, .csv and .json, and claims.md, .csv
# and .json.

for name in TABLES:

    rule:
        name:
            f"render_{name}"
        input:
            evidence=evidence_of(name),
            caption=f"workflow/report/{name}.rst",
            printed_values="workflow/config/printed_values.csv",
            reported_values="workflow/config/reported_values.csv",
            choices="workflow/config/choices.csv",
            library=RENDERING,
        output:
            tex=f"paper_figures/{{mini}}{name}.tex",
            csv=f"paper_figures/{{mini}}{name}.csv",
            json=f"paper_figures/{{mini}}{name}.json",
        log:
            f"logs/{{mini}}render_{name}.log",
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        params:
            name=name,
            root=evidence_root,
            datasets=descriptions_for(name),
            settings=settings_behind if name == "tableS1" else {},  # that table prints them
        message:
            f"Render {name} from its evidence."
        script:
            "../scripts/render_table.py"


rule render_claims:
    input:
        evidence=evidence_of(CLAIMS),
        caption="workflow/report/claims.rst",
        printed_values="workflow/config/printed_values.csv",
        library=RENDERING,
    output:
        md="paper_figures/{mini}claims.md",
        csv="paper_figures/{mini}claims.csv",
        json="paper_figures/{mini}claims.json",
    log:
        "logs/{mini}render_claims.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        root=evidence_root,
        datasets=descriptions_for(CLAIMS),
    message:
        "Judge the paper's claims by their evidence."
    script:
        "../scripts/render_claims.py"
