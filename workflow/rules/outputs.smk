# What is rendered, and from the evidence of which datasets: read by tables.smk, figures.smk and the rule all. Makes no files.

TABLES = {
    "table1": ["pathmnist", "cifar10", "sleepedf"],
    "table2": [],
    "table3": ["mimic-iv", "challenge2019"],
    "tableS1": list(config["datasets"]),
    "tableS2": list(config["datasets"]),
    "tableS3": [*config["datasets"], "decisive", "wide"],
    "tableS4": list(config["datasets"]),
    "tableS5": ["ablation", "decisive", "wide"],
    "tableS6": ["mimic-iv", "challenge2019", "challenge2019-septic", "challenge2019-hospitals"],
    "tableS7": [BENCHMARK],
    "tableS8": ["pathmnist", "cifar10", "sleepedf"],
    "tableS9": ["mimic-iv", "challenge2019", "challenge2019-septic", "challenge2019-hospitals"],
    "tableS10": ["mimic-iv", "challenge2019", "challenge2019-septic", "challenge2019-hospitals"],
    "tableS11": ["ablation", "decisive", "wide"],
}
FIGURES = {
    "figure1": ["cifar10"],
    "figure2": ["pathmnist", "cifar10", "sleepedf"],
    "figure3": ["pathmnist", "cifar10", "sleepedf"],
    "figure4": ["mimic-iv", "challenge2019"],
    "figureS1": list(config["datasets"]),
    "figureS2": ["ablation"],
    "figureS3": ["schedules"],
    "figureS4": ["mimic-iv", "challenge2019"],
    "figureS5": [BENCHMARK],
}
CLAIMS = [*config["datasets"], *config["studies"], BENCHMARK]  # and the numerical checks


def named(datasets):
    """What tables and figures say of datasets, at hand or not."""
    titles = {name: entry["title"] for name, entry in config["datasets"].items()}
    titles |= {name: f"{titles[study['dataset']]}, study {name}" for name, study in config["studies"].items()}
    titles[BENCHMARK] = config["benchmark"]["title"]
    entries = config["datasets"] | config["studies"] | {BENCHMARK: config["benchmark"]}
    return {name: {"title": titles[name], "needs": entries[name]["needs"]} for name in datasets}


def evidence_of_outputs(wildcards):
    """By output of the wildcards' view, the evidence files that it is rendered from."""
    shown = {**TABLES, **FIGURES, "claims": [*CLAIMS, THEORY]}
    return {name: evidence_inputs(datasets)(wildcards) for name, datasets in shown.items()}


def settings_of_view(wildcards):
    """The settings behind a view's evidence."""
    return settings("mini" if wildcards.view else "real")


def settings_shown(name):
    """Params function: the settings of a view for the table that prints them, nothing for the others."""
    return settings_of_view if name == "tableS1" else {}


def paper_outputs(view):
    """Every rendered file of a view: "" or "mini/"."""
    forms = {name: ["tex", "csv", "json"] for name in TABLES}
    forms |= {name: ["pdf", "png", "csv", "json"] for name in FIGURES}
    forms["claims"] = ["md", "csv", "json"]
    return [f"paper_figures/{view}{name}.{form}" for name, endings in forms.items() for form in endings]


def rendered(wildcards):
    """Every rendered file of the wildcards' view."""
    return paper_outputs(wildcards.view)


TITLES = {name: name.replace("table", "Table ").replace("figure", "Figure ") for name in (*TABLES, *FIGURES)}
TITLES["claims"] = "Claims"


def page_of(name):
    """A page of the report, with its place there."""
    kind = re.match("table|figure|claims|runs|settings", name)[0]
    category = {"table": "Tables", "figure": "Figures"}.get(kind, name.capitalize())
    caption = f"../report/{name}.rst"
    return report(
        f"report/{{view}}{name}.html",
        caption=caption if Path(workflow.basedir, "workflow", "report", f"{name}.rst").exists() else None,
        category=category,
        subcategory=evidence_title,
        labels={"output": TITLES.get(name, name.capitalize()), "shows": heading(name)},
    )


def evidence_title(wildcards):
    """What a view rests on, in words."""
    names = {"published": "Published evidence", "real": "Full run here", "mini": "Miniature synthetic data"}
    return names[Path(evidence_root(wildcards)).name]


@cache
def heading(name):
    """What an output shows, by the beginning of its caption."""
    path = Path(workflow.basedir, "workflow", "report", f"{name}.rst")
    if not path.exists():
        return {"runs": "Every run behind the outputs", "settings": "Every setting"}[name]
    return re.split(r"[:.(;,]| (?:on|for) ", path.read_text())[0].strip()


def pages_of_view(view):
    """The report's pages of a view: "" or "mini/"."""
    return [f"report/{view}{name}.html" for name in (*TITLES, "runs", "settings")]


def code_files():
    """What it takes to run the workflow again, the Snakefile first."""
    patterns = ["workflow/**/*", "src/clai/**/*.py", "profiles/*/config.yaml", "envs/*"]
    found = sorted(p for pattern in patterns for p in Path(workflow.basedir).glob(pattern) if p.is_file())
    named = ["Snakefile", "config.yaml", "pyproject.toml", "README.md", "LICENSE", "CITATION.cff"]
    return named + [str(p.relative_to(workflow.basedir)) for p in found if p.suffix != ".pyc"]
