# What is rendered, and from the evidence of which datasets: read by tables.smk, figures.smk and the rule all. Makes no files.

TABLES = {
    "table1": ["pathmnist", "cifar10", "sleepedf"],
    "table2": [],
    "table3": ["mimic-iv", "challenge2019"],
    "tableS1": list(config["datasets"]),
    "tableS2": list(config["datasets"]),
    "tableS3": list(config["datasets"]),
    "tableS4": list(config["datasets"]),
    "tableS5": ["ablation", "full"],
    "tableS6": ["mimic-iv", "challenge2019", "challenge2019-septic", "challenge2019-hospitals"],
    "tableS7": [BENCHMARK],
}
FIGURES = {
    "figure1": ["cifar10"],
    "figure2": ["pathmnist", "cifar10", "sleepedf"],
    "figure3": ["pathmnist", "cifar10", "sleepedf"],
    "figure4": ["mimic-iv", "challenge2019"],
    "figureS1": list(config["datasets"]),
    "figureS2": ["ablation"],
    "figureS3": ["cost"],
    "figureS4": ["mimic-iv", "challenge2019"],
    "figureS5": [BENCHMARK],
}


def named(datasets):
    """What tables and figures say of datasets, at hand or not."""
    titles = {name: entry["title"] for name, entry in config["datasets"].items()}
    titles |= {name: titles[study["dataset"]] for name, study in config["studies"].items()}
    titles[BENCHMARK] = config["benchmark"]["title"]
    entries = config["datasets"] | config["studies"] | {BENCHMARK: config["benchmark"]}
    return {name: {"title": titles[name], "needs": entries[name]["needs"]} for name in datasets}


def theory_inputs(wildcards):
    """The numerical checks; published evidence may come without them."""
    path = f"{evidence_root(wildcards)}/theory/evidence/theory.csv"
    return [path] if not path.startswith("results/published/") or Path(path).exists() else []


def settings_shown(name):
    """Params function: the settings behind a view's evidence for the table that prints them, nothing for the others."""
    if name != "tableS1":
        return {}
    return lambda wildcards: settings("mini" if wildcards.view else "paper")


def paper_outputs(view):
    """Every rendered file of a view: "" or "mini/"."""
    forms = {name: ["tex", "csv", "json"] for name in TABLES}
    forms |= {name: ["pdf", "png", "csv", "json"] for name in FIGURES}
    forms["claims"] = ["md", "csv", "json"]
    return [f"paper_figures/{view}{name}.{form}" for name, endings in forms.items() for form in endings]
