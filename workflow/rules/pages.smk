# The pages of the HTML report and their places in it. Makes no files.

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
