"""Names, units and colours that tables and figures show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from replication.runs.registry import EMBEDDINGS, MODELS

MAJORITY = "majority-class"
"""Key of rows that always name the class most frequent in training. The registry of models does not have it."""

MODEL_OF = {"full": "clai-m", "cosine": "clai-c"}
"""The models behind the methods that studies call by a kernel; other methods have the model's name."""

# The variants that name the cells of studies, such as full_zero; others have their keys.
VARIANT_TITLES: dict[str, str] = {
    **{name: entry.title for name, entry in MODELS.items()}, "cross-entropy": "Cross-entropy",
    "cosine": "Cosine (CLaI-C)", "identity": "Gaussian, M = I", "full": "Gaussian, full M (CLaI-M)",
    "sequential-all-long": "sequential, all references, to convergence",
    "sequential-all-once": "sequential, all references, 1 epoch", "joint-all-once": "joint, all references, 10 epochs",
    "joint-1-once": "joint, one reference, 104 epochs",
    "joint-all-long": "joint, all references, to convergence", "joint-1-long": "joint, one reference, to convergence",
    "half-hour": "16 epochs", "four-epochs": "4 epochs", "sixteen-epochs": "16 epochs",
    "rate-1": "rate 0.01", "rate-2": "rate 0.02", "rate-4": "rate 0.04",
    "rate-16": "rate 0.16", "rate-64": "rate 0.64", "rate-256": "rate 2.56",
    "rate-tuned": "rate 0.009", "rate-quarter": "rate 0.00225", "rate-sixteenth": "rate 0.00056",
    "unweighted": "printed loss",
}  # fmt: skip


VALUES = {
    "rule": {name: name for name in ("printed", "centred", "balanced", "parzen")},
    "shares": {name: name for name in ("population", "equal")},
    "comparison": {"joint": "classes in turn, or all at once", "batches": "batches M", "classes": "classes C"},
    "variant": {
        "printed": "as printed", "sequential": "sequential, all references", "joint": "joint, all references",
    },
}  # fmt: skip
"""The values of some columns of evidence in the order of tables, with their names there.

Rules and shares are those of `clailearn.inference`; `comparison` is what varies in the benchmark, `variant` its schedule.
"""

CLASS_COLOURS: list[str] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
]  # fmt: skip
"""Colours of the paper's table 2, by class index."""


@dataclass(frozen=True)
class Metric:
    """A metric as a column of a table, with its name in the evidence.

    `decimals` are the digits behind the point of what is not in per cent: 5 where values are mostly below 0.001. A value below
    `least` is written as such: the far tails of t are approximate.
    """

    key: str
    title: str
    percent: bool = False
    decimals: int = 3
    least: float = 0.0

    @property
    def scale(self) -> float:
        """Factor from the evidence, where all metrics are fractions, to the table's unit."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Digits behind the point."""
        return 2 if self.percent else self.decimals


METRICS = {
    metric.key: metric
    for metric in (
        Metric("accuracy", "Accuracy", percent=True),
        Metric("precision", "Precision", percent=True),
        Metric("recall", "Recall", percent=True),
        Metric("macro_f1", "Macro F1", percent=True),
        Metric("roc_auc", "ROC-AUC", percent=True),
        Metric("kappa", "Cohen's kappa"),
        Metric("ece", "ECE"),
        Metric("ece_scaled", "ECE, scaled"),
        Metric("auroc", "AUROC"),
        Metric("auprc", "AUPRC"),
        Metric("f1", "F1"),
        Metric("f1_validation", "F1"),
        Metric("utility", "Utility"),
        Metric("prevalence", "Positive share"),
        Metric("ece_calibrated", "ECE, calibrated", decimals=5),
        Metric("ece_positive_rate", "Positive-rate ECE"),
        Metric("ece_positive_rate_calibrated", "Positive-rate ECE, calibrated", decimals=5),
        Metric("brier", "Brier score"),
        Metric("brier_reliability", "Reliability", decimals=5),
        Metric("brier_resolution", "Resolution", decimals=5),
        Metric("brier_calibrated", "Brier score, calibrated"),
        Metric("alignment", "Alignment"),
        Metric("centred_alignment", "Centred alignment"),
        Metric("above_floor", "Loss − floor"),
        Metric("validation_accuracy", "Validation", percent=True),
        Metric("best_validation", "Validation, best epoch", percent=True),
        Metric("shift", "Validation minus test", percent=True),
        Metric("operations", "Operations (trillions)", decimals=0),
        Metric("training_minutes", "Train (min)", decimals=1),
        Metric("cpu_minutes", "CPU (min)", decimals=1),
        Metric("log_loss", "Log loss"),
        Metric("log_loss_scaled", "Log loss, scaled"),
        Metric("log_loss_calibrated", "Log loss, calibrated", decimals=4),
        Metric("brier_scaled", "Brier score, scaled"),
        Metric("aurc", "AURC", decimals=4),
        Metric("seconds", "Seconds per epoch"),
        Metric("predicted", "Seconds of the passes"),
        Metric("peak_memory_mb", "Peak memory (MiB)", decimals=0),
        *(
            Metric(key, title, decimals=0)
            for key, title in (("n", "n"), ("samples", "Samples"), ("seeds", "Seeds"), ("trials", "Trials"))
        ),
        Metric("p", "p", decimals=4, least=0.001),
        Metric("p_holm", "p, adjusted", decimals=4, least=0.001),
    )
}
"""The metrics of all tables by key."""


def chosen(keys: str, **titles: str) -> list[Metric]:
    """Return metrics by their keys, which spaces separate; `titles` gives some of them another title in one table."""
    return [replace(METRICS[key], title=titles.get(key, METRICS[key].title)) for key in keys.split()]


MINI_NOTE = "Miniature synthetic data: shows that the pipeline works, not how well the method does."


def in_order(models: Iterable[str], known: Sequence[str] = tuple(MODELS)) -> list[str]:
    """Return each model once, in the order of those that are known; others behind, by name."""
    return sorted(set(models), key=lambda model: (known.index(model) if model in known else len(known), model))


def model_title(model: str) -> str:
    """Return the name of a model, or of the one behind a method, in tables and figures; its key if it has no name here."""
    model = MODEL_OF.get(model, model)
    if model in MODELS:
        return MODELS[model].title
    if model == MAJORITY:
        return "Majority class, always"
    if model in EMBEDDINGS:
        return EMBEDDINGS[model].title
    return model
