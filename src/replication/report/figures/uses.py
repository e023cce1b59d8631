"""Figures S8 and S9: classes that training did not have, brought in by references; wrong labels and unequal classes."""

import pandas as pd
from matplotlib.lines import Line2D

from replication.report.evidence import Evidence
from replication.report.figures.style import WIDTH, Drawn, Style, curves, handles, new_figure, of_model, short_title
from replication.report.tables.layout import by_variants
from replication.report.tables.uses import ALL_CLASSES, NUMBERS, chosen_read_outs, places_of_labels

USES_COLUMNS = ["dataset", "model", "seed", "method", "rule", "references", "metric", "value"]
PANELS = {
    "balanced_accuracy": "All classes, balanced\naccuracy (%)",
    "new_accuracy": "New classes,\naccuracy (%)",
    "old_accuracy": "Old classes,\naccuracy (%)",
}

LABEL_COLUMNS = ["dataset", "model", "seed", "method", "rule", "labels", "x", "metric", "value"]
RULE_OF_VOTES = "balanced"
"""The rule that stands beside the printed one."""


def new_classes(evidence: Evidence) -> Drawn:
    """Draw the accuracy of each method on all, new and old classes against the references of each new class."""
    studies = evidence.at_hand()
    figure = new_figure(WIDTH, 6.4, evidence)
    panels = figure.subplots(len(PANELS), len(studies), squeeze=False, sharex=True)
    parts = [_shown(evidence, study) for study in studies]
    styles = {method: of_model(method) for part in parts for method in part["method"].unique()}
    for column, (study, part) in enumerate(zip(studies, parts, strict=True)):
        drawn = part.assign(model=part["method"], place=part["references"].map(NUMBERS.index))
        for axes, (metric, title) in zip(panels[:, column], PANELS.items(), strict=True):
            shown = drawn[drawn["metric"] == metric]
            curves(axes, shown, "place", "value", styles, err_kws={"alpha": 0.08, "lw": 0}, marker="o", ms=3)
            axes.set_xticks(range(len(NUMBERS)), NUMBERS)
            if column == 0:
                axes.set_ylabel(title)
        panels[0, column].set_title(short_title(evidence, study, 26), fontsize=8)
        panels[-1, column].set_xlabel("References of a new class")
    figure.legend(handles=handles(styles), loc="outside lower center", ncols=4)
    return figure, parts


def _shown(evidence: Evidence, study: str) -> pd.DataFrame:
    """Return the accuracies in per cent of the read-out that validation samples choose, by method, number and seed."""
    read = chosen_read_outs(by_variants(evidence, study))
    shown = read[(read["left-out"] != ALL_CLASSES) & read["metric"].isin(PANELS)]
    shown = shown.assign(dataset=study, references=shown["shares"], value=100 * shown["value"])
    return shown.sort_values("method", key=lambda names: names.map(_methods(evidence, study).index), kind="stable")


def _methods(evidence: Evidence, study: str) -> list[str]:
    """Return the methods of a study in its order."""
    return list(dict.fromkeys(variants["method"] for variants in evidence.expected[study]["cells"].values()))


def labels(evidence: Evidence) -> Drawn:
    """Draw accuracy against the share of wrong labels, and macro F1 against the ratio of the largest class to the smallest.

    Each study has a row of panels. A method that votes has a second line, by the rule `RULE_OF_VOTES`.
    """
    studies = evidence.at_hand()
    figure = new_figure(WIDTH, 0.8 + 2.4 * len(studies), evidence)
    rows = figure.subplots(len(studies), 2, squeeze=False, sharex="col")
    colours = {method: of_model(method).colour for study in studies for method in _methods(evidence, study)}
    parts = []
    for study, row in zip(studies, rows, strict=True):
        metrics = by_variants(evidence, study)
        metrics = metrics[metrics["rule"].isin(["", "printed", RULE_OF_VOTES])]
        for axes, (metric, places) in zip(row, places_of_labels(evidence, study).items(), strict=True):
            part = metrics[metrics["labels"].isin(places) & (metrics["metric"] == metric)]
            part = part.assign(dataset=study, x=part["labels"].map(places), value=100 * part["value"])
            for rules, dash in ((["", "printed"], "-"), ([RULE_OF_VOTES], ":")):
                by_rule = part[part["rule"].isin(rules)]
                styles = {method: Style(colour, dash) for method, colour in colours.items()}
                curves(axes, by_rule.assign(model=by_rule["method"]), "x", "value", styles, marker="o", ms=3)
            axes.set_xscale("log" if metric == "macro_f1" else "linear")
            axes.set_xticks(list(places.values()), [f"{place:g}" for place in places.values()])
            parts.append(part)
        row[0].set_title(short_title(evidence, study), loc="left", fontsize=8)
        row[0].set_ylabel("Accuracy (%)")
        row[1].set_ylabel("Macro F1 (%)")
    for axes, title in zip(rows[-1], ("Share of wrong labels", "Largest class over smallest"), strict=True):
        axes.set_xlabel(title)
    entries = handles({method: Style(colour, "-") for method, colour in colours.items()})
    entries.append(Line2D([], [], color="0.3", ls=":", label=f"vote by the rule {RULE_OF_VOTES}"))
    figure.legend(handles=entries, loc="outside lower center", ncols=3)
    return figure, parts
