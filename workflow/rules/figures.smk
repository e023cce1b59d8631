# Figures, drawn from evidence. Requires results/{evidence}/*/evidence/ of the datasets that each figure names, and only of those;
# leaves paper_figures/{view}<name>.pdf, .png, .csv and .json.

for name, datasets in FIGURES.items():

    rule:
        name:
            f"draw_{name}"
        input:
            evidence=evidence_inputs(datasets),
            caption=f"workflow/report/{name}.rst",
            library=library("report.figures.render", "runs.jobs"),
        output:
            pdf=f"paper_figures/{{view}}{name}.pdf",
            png=f"paper_figures/{{view}}{name}.png",
            csv=f"paper_figures/{{view}}{name}.csv",
            json=f"paper_figures/{{view}}{name}.json",
        log:
            f"logs/{{view}}draw_{name}.log",
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        params:
            name=name,
            root=evidence_root,
            datasets=named(datasets),
        message:
            f"Draw {name} from its evidence."
        script:
            "../scripts/draw_figure.py"
