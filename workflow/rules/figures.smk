# Figures, drawn from evidence. Requires results/{evidence}/*/evidence/ of the datasets that each figure names, and only of those;
# leaves paper_figures/{view}<name>.pdf, .png, .csv and .json.

FIGURES = {
    "figure1": ["cifar10"],
    "figure2": ["pathmnist", "cifar10", "sleepedf"],
    "figure3": ["pathmnist", "cifar10", "sleepedf"],
    "figure4": ["mimic-iv", "challenge2019"],
    "figureS1": list(config["datasets"]),
}


def paper_outputs(view):
    """Every rendered file of a view: "" or "mini/"."""
    forms = {name: ["tex", "csv", "json"] for name in TABLES}
    forms |= {name: ["pdf", "png", "csv", "json"] for name in FIGURES}
    forms["claims"] = ["md", "csv", "json"]
    return [f"paper_figures/{view}{name}.{form}" for name, endings in forms.items() for form in endings]


for name, datasets in FIGURES.items():

    rule:
        name:
            f"draw_{name}"
        message:
            f"Draw {name} from its evidence."
        input:
            evidence=evidence_inputs(datasets),
            caption=f"workflow/report/{name}.rst",
            library=library("figures", "logs"),
        output:
            pdf=f"paper_figures/{{view}}{name}.pdf",
            png=report(
                f"paper_figures/{{view}}{name}.png",
                caption=f"../report/{name}.rst",
                category="Figures",
                labels={"output": name, "form": "picture"},
            ),
            csv=report(
                f"paper_figures/{{view}}{name}.csv",
                caption=f"../report/{name}.rst",
                category="Figures",
                labels={"output": name, "form": "data"},
            ),
            json=f"paper_figures/{{view}}{name}.json",
        params:
            name=name,
            root=evidence_root,
            datasets=named(datasets),
        log:
            f"logs/{{view}}draw_{name}.log",
        threads: 1
        localrule: True
        script:
            "../scripts/draw_figure.py"
