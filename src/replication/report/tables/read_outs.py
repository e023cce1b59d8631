"""Table S19: read-outs on fixed embeddings. A row shows what the read-out adds, a column what the loss adds."""

from typing import Any

import pandas as pd

from replication.report.latex import escape, group, grouped, missing_group, row
from replication.report.statistics import spread
from replication.report.tables.parts import Sources, number
from replication.runs.controls import EMBEDDINGS, READ_OUTS

COLUMNS = ["dataset", "model", "read_out", "metric", "mean", "sd", "n", "with_seeds", "data"]
NOT_COMPUTED = "not computed: its evidence has no read_outs.csv"


def read_outs_frame(sources: Sources) -> pd.DataFrame:
    """Return the accuracy (per cent) of each embedding (`model`) and read-out over seeds; one row for a dataset without.

    `with_seeds` lists them with spaces between: a model may have runs with further ones.
    """
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:
        measured = evidence.frame(dataset, "read_outs.csv")
        measured = measured[measured["metric"] == "accuracy"]
        if measured.empty:
            data = NOT_COMPUTED if evidence.has(dataset) else evidence.data(dataset)
            rows.append({"dataset": dataset, "n": 0, "data": data})
        for model in [name for name in EMBEDDINGS if name in set(measured["model"])]:
            for read_out in READ_OUTS:
                of_read_out = measured[(measured["model"] == model) & (measured["read_out"] == read_out)]
                mean, sd, n = spread(100 * of_read_out.set_index("seed")["value"])
                rows.append({
                    "dataset": dataset, "model": model, "read_out": read_out, "metric": "accuracy",
                    "mean": mean, "sd": sd, "n": n, "with_seeds": " ".join(map(str, sorted(of_read_out["seed"].unique()))),
                    "data": evidence.data(dataset),
                })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def read_outs_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S19: datasets as groups, embeddings as rows, read-outs as columns."""
    evidence = sources.evidence
    columns = ["Embedding", *READ_OUTS.values()]
    groups: list[str] = []
    for dataset in evidence.expected:
        of_dataset = frame[(frame["dataset"] == dataset) & frame["model"].notna()]
        if of_dataset.empty:
            reason = NOT_COMPUTED if evidence.has(dataset) else evidence.not_run(dataset)
            groups.append(missing_group(evidence.title(dataset), len(columns), reason))
            continue
        lines = [
            row(
                rf"\quad {escape(EMBEDDINGS[str(model)].title)}",
                *(number(mean, sd, 2) for mean, sd in zip(part["mean"], part["sd"], strict=True)),
            )
            for model, part in of_dataset.groupby("model", sort=False)
        ]
        groups.append(group(evidence.title(dataset), len(columns), lines))
    return grouped(row(*columns), groups, "l" + "c" * len(READ_OUTS), text, "tab:read-outs", evidence.miniature)
