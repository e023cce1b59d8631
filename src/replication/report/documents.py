"""Generated blocks of documents: verdicts and results in README.md, and the numerical checks in docs/theory.md."""

from collections.abc import Sequence

import pandas as pd

from clai.errors import InputError
from replication.report.evidence import Evidence, by_setting
from replication.report.labels import MAJORITY, Metric, chosen, model_title
from replication.report.tables.layout import Sources, cells, number
from replication.report.tables.paper import table1_frame, table3_frame
from replication.runs.outputs import TABLES

README_TABLES = (
    (TABLES["table1"], "accuracy roc_auc", " (%)"),
    (TABLES["table3"], "auroc auprc", ""),
)
"""Datasets, metrics and unit of the README's two tables."""

CHECKS = "theory"
SECTIONS: tuple[tuple[str, str, str, str, dict[str, object]], ...] = (
    ("1", "cosine kernel, loss that free embeddings reach minus the floor", "floor", "gap", {"kernel": "cosine"}),
    ("1", "Gaussian kernel, the same", "floor", "gap", {"kernel": "gaussian"}),
    ("2", "error of the decomposition of f", "parzen", "identity_error", {}),
    ("2", "f far from all data, minus (1 - 2p)", "parzen", "offset_error", {}),
    ("3", "share of samples that contradict the band", "parzen", "band_error", {}),
    (
        "3", "agreement of the printed rule with the Parzen-Bayes rule, p = 1/2", "parzen", "agreement_kde",
        {"rule": "printed", "share": 0.5},
    ),
    (
        "3", "the same, over all class shares", "parzen", "agreement_kde",
        {"rule": "printed"},
    ),
    ("3", "error of f of ideal similarities", "ideal", "f_error", {}),
    ("4", "error of the losses of a constant S", "collapse", "loss_error", {}),
    ("4", "error of the alignments of a constant S", "collapse", "alignment_error", {}),
    ("4", "centred alignment of S = 1 with `product`", "collapse", "centred_alignment", {"target": "product"}),
    ("4", "centred alignment of S = -1 with `masked`", "collapse", "centred_alignment", {"target": "masked"}),
    ("4", "largest partial derivative where all embeddings coincide", "collapse", "gradient", {}),
    ("4", "fall of the loss over step² p (1 - p), cosine kernel", "collapse", "descent", {"kernel": "cosine"}),
    ("4", "fall of the loss over step² p (1 - p), Gaussian kernel", "collapse", "descent", {"kernel": "gaussian"}),
)  # fmt: skip
"""Section of the document, what is checked, name of the check, quantity, and the settings that it is taken from."""


def replace_block(text: str, name: str, block: str) -> str:
    """Return a document with `block` between the lines `<!-- name:begin -->` and `<!-- name:end -->`.

    Raises:
        InputError: the two lines are not there, in order.
    """
    first, last = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    begin, end = text.find(first), text.find(last)
    if not 0 <= begin < end:
        raise InputError(
            f"found no block {name} in the document, expected the lines {first} and {last}, in this order; add them"
        )
    return f"{text[: begin + len(first)]}\n{block}\n{text[end:]}"


def readme_results(evidence: Evidence, printed_values: pd.DataFrame) -> str:
    """Return two narrow Markdown tables, printed -> ours as mean (sd) over n seeds or folds: rows of tables 1 and 3.

    A dataset that was not run has one line, with the printed values and what it needs.
    """
    tables = []
    for (datasets, keys, unit), make_frame in zip(README_TABLES, (table1_frame, table3_frame), strict=True):
        metrics = chosen(keys)
        part = Evidence(evidence.root, {key: evidence.expected[key] for key in datasets}, evidence.available)
        frame = make_frame(Sources(part, printed_values, pd.DataFrame(), pd.DataFrame(), {}))
        lines = [_line("Data", "Model", *(f"{metric.title}{unit}, printed → ours" for metric in metrics), "n")]
        lines.append("| --- | --- |" + " ---: |" * (len(metrics) + 1))
        for dataset in datasets:
            lines += _readme_lines(part, frame[frame["dataset"] == dataset], dataset, metrics)
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _readme_lines(evidence: Evidence, frame: pd.DataFrame, dataset: str, metrics: Sequence[Metric]) -> list[str]:
    if not evidence.has(dataset):
        printed = [_printed_range(frame.loc[frame["metric"] == metric.key, "printed"], metric) for metric in metrics]
        return [_line(evidence.title(dataset), evidence.not_run(dataset), *printed, "0")]
    lines = []
    for model, part in frame.groupby("model", sort=False):
        pairs = zip(cells(part, metrics, "printed", None), cells(part, metrics), strict=True)
        texts = [ours if printed == "--" else f"{printed} → {ours}" for printed, ours in pairs]
        n = "--" if model == MAJORITY else str(part["n"].max())
        lines.append(_line(evidence.title(dataset), model_title(str(model)), *texts, n))
    return lines


def _printed_range(printed: pd.Series, metric: Metric) -> str:
    """Return the printed values of all models as one cell: their range where they differ."""
    if printed.isna().all():
        return "--"
    low, high = (number(value, digits=metric.digits) for value in (printed.min(), printed.max()))
    return f"{low} → --" if low == high else f"{low} to {high} → --"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def theory_checks(evidence: Evidence) -> str:
    """Return a Markdown table: each check of docs/theory.md with the range of its values over settings and seeds."""
    frame = _with_differences(by_setting(evidence.frame(CHECKS, "theory.csv")))
    lines = ["| section | check | settings and seeds | least | largest |", "| --- | --- | ---: | ---: | ---: |"]
    for section, text, check, quantity, settings in SECTIONS:
        rows = frame[(frame["check"] == check) & (frame["quantity"] == quantity)]
        for name, value in settings.items():
            rows = rows[rows[name] == value] if len(rows) else rows
        found = rows["value"]
        shown = f"{found.min():.2g} | {found.max():.2g}" if len(found) else "not computed yet | not computed yet"
        lines.append(f"| {section} | {text} | {len(found)} | {shown} |")
    return "\n".join(lines)


def _with_differences(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the checks with two quantities more: `gap`, attained - floor, and `offset_error`, f_far - (1 - 2p)."""
    floors = frame[frame["quantity"] == "floor"].set_index("setting")["value"]
    gaps = frame[frame["quantity"] == "attained"]
    gaps = gaps.assign(quantity="gap", value=gaps["value"] - gaps["setting"].map(floors))
    far = frame[frame["quantity"] == "f_far"]
    far = far.assign(quantity="offset_error", value=far["value"] - (1 - 2 * far["share"]))
    return pd.concat([frame, gaps, far])
