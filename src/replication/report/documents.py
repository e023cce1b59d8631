"""Generated blocks of README.md: verdicts and results."""

from collections.abc import Iterator, Sequence

import pandas as pd

from clailearn.errors import InputError
from replication.report.claims.page import table
from replication.report.evidence import Evidence
from replication.report.labels import Metric, chosen, model_title
from replication.report.tables.layout import Sources, cells, number
from replication.report.tables.paper import table1_frame, table3_frame
from replication.runs.registry import CLAI, TABLES, WHOLE_COHORTS

README_TABLES = (
    (table1_frame, TABLES["table1"]["names"], "accuracy roc_auc", " (%)"),
    (table3_frame, WHOLE_COHORTS, "auroc auprc", ""),
)
"""The table behind each of the README's two, their datasets, metrics and unit."""
README_MODELS = [*CLAI, "student-t-mixture", "cross-entropy", "gradient-boosting"]
"""The models that they show: the paper's, and what else one would use."""


def replace_block(text: str, name: str, block: str) -> str:
    """Return a document with `block` between the lines `<!-- name:begin -->` and `<!-- name:end -->`, which it must have."""
    before, begin, rest = text.partition(f"<!-- {name}:begin -->\n")
    _, end, after = rest.partition(f"<!-- {name}:end -->")
    if not (begin and end):
        raise InputError(f"found no block {name} in the document, expected the lines that begin and end it")
    return f"{before}{begin}{block}\n{end}{after}"


def readme_results(evidence: Evidence, printed_values: pd.DataFrame) -> str:
    """Return two narrow Markdown tables, printed -> ours as mean (sd) over n seeds or folds: rows of tables 1 and 3.

    A dataset that was not run has one line, with the printed values and what it needs.
    """
    tables = []
    for make_frame, datasets, keys, unit in README_TABLES:
        metrics = chosen(keys)
        part = Evidence(evidence.root, {key: evidence.expected[key] for key in datasets}, evidence.available)
        frame = make_frame(Sources(part, printed_values, pd.DataFrame(), {}))
        heads = ["Data", "Model", *(f"{metric.title}{unit}, printed → ours" for metric in metrics), "n"]
        rows = [row for key in datasets for row in _rows(part, frame[frame["dataset"] == key], key, metrics)]
        tables.append(table(heads, rows, len(metrics) + 1))
    return "\n\n".join(tables)


def _rows(evidence: Evidence, frame: pd.DataFrame, dataset: str, metrics: Sequence[Metric]) -> Iterator[list[str]]:
    if not evidence.has(dataset):
        printed = [_printed_range(frame.loc[frame["metric"] == metric.key, "printed"], metric) for metric in metrics]
        yield [evidence.title(dataset), evidence.not_run(dataset), *printed, "0"]
        return
    for model, part in frame[frame["model"].isin(README_MODELS)].groupby("model", sort=False):
        pairs = zip(cells(part, metrics, "printed", None), cells(part, metrics), strict=True)
        texts = [ours if printed == "--" else f"{printed} → {ours}" for printed, ours in pairs]
        yield [evidence.title(dataset), model_title(str(model)), *texts, str(part["n"].max())]


def _printed_range(printed: pd.Series, metric: Metric) -> str:
    """Return the printed values of all models as one cell: their range where they differ."""
    if printed.isna().all():
        return "--"
    low, high = (number(value, digits=metric.digits) for value in (printed.min(), printed.max()))
    return f"{low} → --" if low == high else f"{low} to {high} → --"
