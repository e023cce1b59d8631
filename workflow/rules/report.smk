# Pages of the HTML report, made from rendered outputs.
# Requires paper_figures/{view}; leaves report/{view}*.html, which `make report` puts into one file, outside git.


rule render_pages:
    input:
        outputs=rendered,
        config="config.yaml",
        library=library("pages", "logs"),
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
