# Pages of the HTML report, the replication article, and the crate of code, evidence and outputs.
# Requires paper_figures/{mini}; leaves, outside git, report/{mini}*.html, which `make report` puts into one file, article.pdf
# and crate.zip.


rule render_pages:
    input:
        outputs=rendered,
        records=records_of_all,
        config="config.yaml",
        library=library("render_pages"),
    output:
        **{output: page_of_output(output) for output in OUTPUTS},
        **{name: further_page(name) for name in FURTHER_PAGES},
    log:
        "logs/{mini}render_pages.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        titles={output: title_of(output) for output in OUTPUTS},
        folder=lambda wildcards: f"paper_figures/{wildcards.mini}",
        settings=settings_behind,
    message:
        "Make the report's pages of tables, figures, claims, runs and settings."
    script:
        "../scripts/render_pages.py"


rule build_article:
    input:
        outputs=rendered,
        records=records_of_all,
        article="workflow/report/article.tex",
        library=library("build_article"),
    output:
        pdf="report/{mini}article.pdf",
        numbers="report/{mini}article_numbers.tex",
    log:
        "logs/{mini}build_article.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        names=list(OUTPUTS),
        folder=lambda wildcards: f"paper_figures/{wildcards.mini}",
    message:
        "Typeset the replication article."
    script:
        "../scripts/build_article.py"


rule build_crate:
    input:
        outputs=rendered,
        evidence=lambda wildcards: all_evidence(evidence_root(wildcards), settings_behind(wildcards)),
        code=code_files(REPOSITORY),
        description="workflow/report/workflow.rst",
        library=library("build_crate"),
    output:
        "report/{mini}crate.zip",
    log:
        "logs/{mini}build_crate.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        rendered_from=lambda wildcards: {output: evidence_of(output)(wildcards) for output in OUTPUTS},
    message:
        "Pack code, evidence and outputs with their provenance into an RO-Crate."
    script:
        "../scripts/build_crate.py"
