# Pages of the HTML report, the replication article, and the crate of code, evidence and outputs.
# Requires paper_figures/{mini}; leaves, outside git, report/{mini}*.html, which `make report` puts into one file, article.pdf
# and crate.zip.

FURTHER_PAGES = {"runs": "Every run behind the outputs", "settings": "Every setting"}


def evidence_title(wildcards):
    """The evidence in words."""
    titles = {"published": "Published evidence", "real": "Full run here", "mini": "Miniature synthetic data"}
    return titles[Path(evidence_root(wildcards)).name]


def page_of_output(output):
    """The page of an output, with its place in the report."""
    caption = f"../report/{output}.rst"
    return report(
        f"report/{{mini}}{output}.html",
        caption=caption,
        category={"table": "Tables", "figure": "Figures", "claims": "Claims"}[kind_of(output)],
        subcategory=evidence_title,
        labels={
            "output": title_of(output),
            "shows": heading_of(Path(workflow.basedir, "workflow", "report", f"{output}.rst").read_text()),
        },
    )


def further_page(name):
    """The page of the runs or of the settings, with its place in the report."""
    return report(
        f"report/{{mini}}{name}.html",
        category=name.capitalize(),
        subcategory=evidence_title,
        labels={"output": name.capitalize(), "shows": FURTHER_PAGES[name]},
    )


def pages_in(folder):
    """Every page in `folder`, report or report/mini."""
    return [f"{folder}/{name}.html" for name in (*OUTPUTS, *FURTHER_PAGES)]


rule render_pages:
    input:
        outputs=rendered,
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
