"""Claims on training: its loss and its speed (3a, 3b)."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from replication.report.claims.finding import DIFFERENCE, PER_CENT, Finding, Part, Unit, claim, start, weigh
from replication.report.claims.hypothesis import EPOCHS_MARGIN, LESS, MARGIN, Hypothesis, Reading
from replication.report.claims.sources import (
    M_MINUS_C,
    MULTICLASS,
    OF_TABLE_1,
    ON_EVERY_DATASET,
    TARGET_CHOICE,
    Source,
    cells,
    missing_targets,
    multiclass_sources,
)
from replication.report.evidence import Evidence
from replication.runs.models import CLAI

EPOCHS = Unit(1, "epochs", signed=True)
EPOCHS_CHOICE = {"epochs": ("ours", "120")}
SOONER = Hypothesis("better", EPOCHS_MARGIN, sign=-1)


def training_sources(evidence: Evidence, datasets: list[str]) -> Iterator[Source]:
    """Yield the evidence of `multiclass_sources` with its epochs as a reading, and that on as many epochs as figure 3 has.

    Args:
        datasets: the datasets and substitutes at hand.
    """
    ours, printed = EPOCHS_CHOICE["epochs"]
    for source in multiclass_sources(evidence, datasets):
        yield replace(source, reading=replace(source.reading, epochs=ours))
    if "sleepedf-bands" in datasets and evidence.has("epochs-120"):
        yield Source("epochs-120", Reading(target="zero", network=OF_TABLE_1, epochs=printed), cells("zero"))


def epochs_to(history: pd.DataFrame, accuracy: float) -> pd.Series:
    """Return, by seed, the first epoch whose validation accuracy reaches `accuracy`; the last epoch + 1 if none does.

    Args:
        history: columns seed, epoch and validation_accuracy of one model.
    """
    measured = history.dropna(subset=["validation_accuracy"])
    reached = measured[measured["validation_accuracy"] >= accuracy].groupby("seed")["epoch"].min()
    never = measured.groupby("seed")["epoch"].max() + 1
    return reached.reindex(measured["seed"].unique()).fillna(never).sort_index()


def _curves(history: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Return the rows of each CLaI model that have a value of `column`, in the order of epochs; none if a model has none."""
    rows = history.dropna(subset=[column]).sort_values("epoch")
    curves = {model: rows[rows["model"] == model] for model in CLAI}
    return curves if all(len(curve) for curve in curves.values()) else {}


@claim(
    "3a",
    "CLaI-M trains to a lower loss",
    claim="CLaI-M reaches a lower training loss than CLaI-C by the end of training.",
    place="738, figure 3 (745)",
    test=(
        "Difference in the training loss of the last epoch, paired by seed: as it stands (raw, the paper's), and above "
        "the floor below which the kernel cannot go with this target. The floors differ, so that the raw loss does not "
        "tell faster learning from a lower floor."
    ),
    rule=f"Reproduced if the difference is better (lower) than 0 {ON_EVERY_DATASET}; margin {MARGIN:g}.",
    limits=(
        "Figure 3 has 120 epochs and does not name its dataset. The study `epochs-120` alone has so many, on part of the band "
        "powers and with the target `zero` (figure 3)."
    ),
)
def lower_loss(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "history.csv")
    finding.choices = {**TARGET_CHOICE, **EPOCHS_CHOICE, "loss": ("raw", "above its floor")}
    finding.missing += missing_targets(evidence, present)
    for source in training_sources(evidence, present):
        finding.cite(evidence, source.key, "history.csv")
        curves = _curves(source.frame(evidence, "history.csv"), "loss")
        if not curves:
            finding.missing.append(f"the training loss of both models on {evidence.title(source.key)}")
            continue
        ends = {model: curve.groupby("seed").last() for model, curve in curves.items()}
        for loss in finding.choices["loss"]:
            final = {
                model: end["loss"] - (end["floor"] if loss == "above its floor" else 0) for model, end in ends.items()
            }
            reading = replace(source.reading, loss=loss)
            differences = (final["clai-m"] - final["clai-c"]).dropna()
            finding.add(weigh(evidence, source.key, f"final loss, {M_MINUS_C}", differences, DIFFERENCE, LESS, reading))
    return finding


@claim(
    "3b",
    "CLaI-M learns in fewer epochs",
    claim="CLaI-M converges faster than CLaI-C.",
    place="abstract (69), 738, 798",
    test=(
        "Difference in the epochs that the models take to one validation accuracy, paired by seed. The accuracy is "
        "the lower of the two models' final means. A run that never gets there counts its last epoch + 1."
    ),
    rule=(f"Reproduced if the difference is better (fewer) than 0 {ON_EVERY_DATASET}; margin {EPOCHS_MARGIN:g} epoch."),
    limits="A one-cycle learning rate brings both models there late, so that the test sees little of the first epochs.",
)
def converges_faster(evidence: Evidence, printed_values: pd.DataFrame) -> Finding:
    finding, present = start(evidence, MULTICLASS, "history.csv")
    finding.choices = {**TARGET_CHOICE, **EPOCHS_CHOICE}
    finding.missing += missing_targets(evidence, present)
    for source in training_sources(evidence, present):
        finding.cite(evidence, source.key, "history.csv")
        curves = _curves(source.frame(evidence, "history.csv"), "validation_accuracy")
        if not curves:
            finding.missing.append(f"validation accuracy of both models on {evidence.title(source.key)}")
            continue
        goal = min(curve.groupby("seed")["validation_accuracy"].last().mean() for curve in curves.values())
        differences = (epochs_to(curves["clai-m"], goal) - epochs_to(curves["clai-c"], goal)).dropna()
        finding.add(
            weigh(
                evidence, source.key, f"time to the accuracy, {M_MINUS_C}", differences, EPOCHS, SOONER, source.reading
            ),
            Part(evidence.title(source.key), f"the accuracy, target {source.reading.target}", goal, PER_CENT),
        )
    return finding
