"""Names, units and colours that tables and figures show."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from replication.runs.registry import EMBEDDINGS, MODELS, TITLES

MAJORITY = "majority-class"
"""Key of rows that always name the class most frequent in training. The registry of models does not have it."""

MODEL_OF = {"full": "clai-m", "cosine": "clai-c"}
"""The models behind the methods that studies call by a kernel; other methods have the model's name."""


def names_of(cell: str) -> set[str | None]:
    """Return the cell of a study, and the model for which it stands if it is called by a kernel."""
    return {cell, MODEL_OF.get(cell.partition("_")[0])}


VALUES = {
    name: {row["key"]: row["title"] for row in TITLES if row["column"] == name}
    for name in ("factor", "rule", "shares", "comparison", "variant")
}
"""The values of some columns of evidence in the order of tables, with their names there.

Rules and shares are those of `clailearn.inference`; `comparison` is what varies in the benchmark, `variant` its schedule. A
`factor` is what the cells of studies have variants of, such as full_zero.
"""
VARIANT_TITLES = {name: entry.title for name, entry in MODELS.items()} | VALUES["factor"]
"""Names of the variants in cells; others have their keys."""

CLASS_COLOURS: list[str] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
]  # fmt: skip
"""Colours of the paper's table 2, by class index."""


@dataclass(frozen=True)
class Metric:
    """A metric as a column of a table, with its name in the evidence.

    `digits` stand behind the point, 5 where values are mostly below 0.001. A value below `least` is written as such: the far
    tails of t are approximate. The better values are `higher` or `lower`, or neither.
    """

    key: str
    title: str
    percent: bool = False
    digits: int = 3
    least: float = 0.0
    better: str = ""

    @property
    def scale(self) -> float:
        """Factor from the evidence, where all metrics are fractions, to the table's unit."""
        return 100.0 if self.percent else 1.0


METRICS = {
    row["key"]: Metric(
        row["key"], row["title"], row["percent"] == "yes", int(row["digits"]), float(row["least"]), row["better"]
    )
    for row in TITLES
    if row["column"] == "metric"
}
"""The metrics of all tables by key."""


def chosen(keys: str, **titles: str) -> list[Metric]:
    """Return metrics by their keys, which spaces separate; `titles` gives some of them another title in one table."""
    return [replace(METRICS[key], title=titles.get(key, METRICS[key].title)) for key in keys.split()]


MINI_NOTE = "Miniature synthetic data: shows that the pipeline works, not how well the method does."


def models_in_order(models: Iterable[str]) -> list[str]:
    """Return each model or method once, in the order of the models; others behind, by name."""
    place = {name: number for number, name in enumerate(MODELS)}
    return sorted(set(models), key=lambda name: (place.get(MODEL_OF.get(name) or name, len(place)), name))


def model_title(model: str) -> str:
    """Return the name of a model, or of the one behind a method, in tables and figures; its key if it has no name here."""
    model = MODEL_OF.get(model, model)
    if model in MODELS:
        return MODELS[model].title
    if model == MAJORITY:
        return "Majority class, always"
    return EMBEDDINGS.get(model, model)
