# Figures, drawn from evidence. Requires results/{evidence}/*/evidence/ of the names that each figure shows
# (src/replication/runs/outputs.py) and of no others; leaves paper_figures/{mini}<name>.pdf, .png, .csv and .json.

for name in FIGURES:

    rule:
        name:
            f"draw_{name}"
        input:
            evidence=evidence_of(name),
            caption=f"workflow/report/{name}.rst",
            printed_values="workflow/config/printed_values.csv",
            library=RENDERING,
        output:
            pdf=f"paper_figures/{{mini}}{name}.pdf",
            png=f"paper_figures/{{mini}}{name}.png",
            csv=f"paper_figures/{{mini}}{name}.csv",
            json=f"paper_figures/{{mini}}{name}.json",
        log:
            f"logs/{{mini}}draw_{name}.log",
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        params:
            name=name,
            root=evidence_root,
            datasets=descriptions_for(name),
        message:
            f"Draw {name} from its evidence."
        script:
            "../scripts/draw_figure.py"
