# Pages of the HTML report, the replication article and the crate of code, evidence and outputs.
# Requires paper_figures/{view}; leaves, outside git, report/{view}*.html, which `make report` puts into one file, article.pdf and crate.zip.


rule render_pages:
    input:
        outputs=rendered,
        records=record_files,
        config="config.yaml",
        library=library("report.html_pages", "report.sidecars", "runs.jobs"),
    output:
        **{name: page_of(name) for name in TITLES},
        runs=page_of("runs"),
        settings=page_of("settings"),
    log:
        "logs/{view}render_pages.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        titles=TITLES,
        folder=lambda wildcards: f"paper_figures/{wildcards.view}",
        settings=settings_of_view,
    message:
        "Make the report's pages of tables, figures, claims, runs and settings."
    script:
        "../scripts/render_pages.py"


rule build_article:
    input:
        outputs=rendered,
        records=record_files,
        article="workflow/report/article.tex",
        library=library("report.article", "report.latex", "report.sidecars", "runs.jobs"),
    output:
        pdf="report/{view}article.pdf",
        numbers="report/{view}article_numbers.tex",
    log:
        "logs/{view}build_article.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        names=list(TITLES),
        folder=lambda wildcards: f"paper_figures/{wildcards.view}",
    message:
        "Typeset the replication article."
    script:
        "../scripts/build_article.py"


rule build_crate:
    input:
        outputs=rendered,
        evidence=lambda wildcards: all_evidence(evidence_root(wildcards)),
        code=code_files(),
        description="workflow/report/workflow.rst",
        library=library("report.crate", "report.publication", "runs.jobs"),
    output:
        "report/{view}crate.zip",
    log:
        "logs/{view}build_crate.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        rendered_from=evidence_of_outputs,
    message:
        "Pack code, evidence and outputs with their provenance into an RO-Crate."
    script:
        "../scripts/build_crate.py"
