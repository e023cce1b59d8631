# Tables and the page of claims, rendered from evidence. Requires results/{evidence}/*/evidence/ of the datasets that each output
# names, and only of those; leaves paper_figures/{view}<name>.tex, .csv and .json, and claims.md, .csv and .json.

TABLES = {
    "table1": ["pathmnist", "cifar10", "sleepedf"],
    "table2": [],
    "table3": ["mimic-iv", "challenge2019"],
    "tableS1": [],
    "tableS2": list(config["datasets"]),
    "tableS3": list(config["datasets"]),
    "tableS4": list(config["datasets"]),
}


def named(datasets):
    """What tables and figures say of datasets, at hand or not."""
    return {name: {key: config["datasets"][name][key] for key in ("title", "needs")} for name in datasets}


def settings_shown(name):
    """Params function: the settings behind a view's evidence for the table that prints them, nothing for the others."""
    if name != "tableS1":
        return {}
    return lambda wildcards: settings("mini" if wildcards.view else "paper")


def theory_inputs(wildcards):
    """The numerical checks; published evidence may come without them."""
    path = f"{evidence_root(wildcards)}/theory/evidence/theory.csv"
    return [path] if not path.startswith("results/published/") or Path(path).exists() else []


for name, datasets in TABLES.items():

    rule:
        name:
            f"render_{name}"
        message:
            f"Render {name} from its evidence."
        input:
            evidence=evidence_inputs(datasets),
            caption=f"workflow/report/{name}.rst",
            paper_values="workflow/paper_values.csv",
            choices="workflow/choices.csv",
            library=library("tables", "logs"),
        output:
            tex=report(
                f"paper_figures/{{view}}{name}.tex",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"output": name, "form": "LaTeX"},
            ),
            csv=report(
                f"paper_figures/{{view}}{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"output": name, "form": "data"},
            ),
            json=f"paper_figures/{{view}}{name}.json",
        params:
            name=name,
            root=evidence_root,
            datasets=named(datasets),
            settings=settings_shown(name),
        log:
            f"logs/{{view}}render_{name}.log",
        threads: 1
        localrule: True
        script:
            "../scripts/render_table.py"


rule render_claims:
    message:
        "Judge the paper's claims by their evidence."
    input:
        evidence=evidence_inputs(list(config["datasets"])),
        theory=theory_inputs,
        caption="workflow/report/claims.rst",
        paper_values="workflow/paper_values.csv",
        library=library("claims", "logs"),
    output:
        md=report(
            "paper_figures/{view}claims.md",
            caption="../report/claims.rst",
            category="Claims",
            labels={"output": "claims", "form": "page"},
        ),
        csv=report(
            "paper_figures/{view}claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"output": "claims", "form": "data"},
        ),
        json="paper_figures/{view}claims.json",
    params:
        root=evidence_root,
        datasets=named(config["datasets"]),
    log:
        "logs/{view}render_claims.log",
    threads: 1
    localrule: True
    script:
        "../scripts/render_claims.py"
