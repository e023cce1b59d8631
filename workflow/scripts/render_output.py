"""Render tables as LaTeX and Markdown and figures as PDF and PNG, each with its data (CSV) and provenance (JSON)."""

from pathlib import Path

from replication.report.evidence import Evidence
from replication.report.texts import csv_text, sidecar
from replication.runs.outputs import declared
from replication.runs.registry import read_json
from replication.runs.run import start_job

start_job(snakemake.log[0])
sources, params, wildcards = snakemake.input, snakemake.params, snakemake.wildcards
evidence = Evidence.of_files(Path(params.root), params.datasets, sources.evidence)
for path in [Path(path) for path in snakemake.output if path.endswith(".csv")]:
    name = wildcards.get("table") or wildcards.get("figure") or f"own/{path.stem}"
    fixed = Path("workflow", "report", f"{name}.rst").read_text(encoding="utf-8")
    if path.stem.startswith("table"):
        from replication.report.tables.render import render as render_table

        table = render_table(name, declared(name), evidence, fixed)
        frame, caption, runs = table.frame, table.caption, table.runs
        path.with_suffix(".tex").write_text(table.tex, encoding="utf-8")
        path.with_suffix(".md").write_text(table.md, encoding="utf-8")
    else:
        from replication.report.figures.render import render as draw  # whose imports take longer than a table
        from replication.report.figures.render import save

        claims = read_json(sources.claims)["claims"] if sources.get("claims") else []
        figure, frame, caption, runs = draw(name, evidence, fixed, claims)
        save(figure, path.with_suffix(".pdf"))
        save(figure, path.with_suffix(".png"))
    path.write_text(csv_text(frame), encoding="utf-8")
    path.with_suffix(".json").write_text(sidecar(caption, evidence, runs), encoding="utf-8")
