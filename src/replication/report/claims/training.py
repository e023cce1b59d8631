"""Claims on training: its loss and its speed (3a, 3b)."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from replication.report.claims.finding import DIFFERENCE, PAIR, POINTS, Finding, Place
from replication.report.claims.hypothesis import LESS, MORE
from replication.report.claims.sources import (
    KERNELS,
    M_MINUS_C,
    MULTICLASS,
    TARGETS,
    Source,
    multiclass_sources,
    recorded,
)
from replication.report.printed_values import printed_value

EPOCHS_120 = "epochs-120"


def _sources(finding: Finding) -> Iterator[tuple[Source, pd.DataFrame]]:
    """Yield the evidence on training with its history; of fewer epochs than figure 3 has, the epochs are an option of ours."""
    present = finding.start(MULTICLASS, TARGETS)
    evidence, epochs = finding.evidence, printed_value(finding.printed, "text", "figure3", "epochs shown")[0]
    sources = list(multiclass_sources(finding, present))
    if evidence.has(EPOCHS_120) and evidence.dataset_of(EPOCHS_120) in present:
        sources += [
            Source(EPOCHS_120, target, {"clai-m": f"full_{target}", "clai-c": f"cosine_{target}"}) for target in TARGETS
        ]
    for source in sources:
        history = source.frame(finding, "history.csv").sort_values("epoch")
        short = history["epoch"].max() < epochs
        yield replace(source, option="epochs" if short else ""), history


def lower_loss(finding: Finding) -> None:
    for source, history in _sources(finding):
        loss, floor = (
            history.pivot_table(column, "seed", "cell", aggfunc="last").reindex(columns=PAIR)
            for column in ("loss", "floor")
        )
        options = {source.option: loss} if source.option else {"": loss, "above floor": loss - floor}
        for option, ends in options.items():
            difference, place = (ends["clai-m"] - ends["clai-c"]).dropna(), Place(source.target, option)
            finding.add(source.key, f"final training loss, {M_MINUS_C}", difference, DIFFERENCE, LESS, place)


def converges_faster(finding: Finding) -> None:
    for source, history in _sources(finding):
        if len(recorded(finding.evidence, source.key, source.models.values(), "batch_size")) > 1:
            title = finding.evidence.title(source.key)
            finding.missing.append(
                f"{title}: runs of both kernels with one batch size, so that an epoch has as many steps"
            )
            continue
        quantity = f"mean validation accuracy, {M_MINUS_C}"
        finding.add(source.key, quantity, lead(history, *PAIR), POINTS, MORE, source.place)
    history = finding.frame("ablation", "history.csv")
    for target in TARGETS:
        quantity = f"mean validation accuracy, {KERNELS['full']} minus {KERNELS['identity']}"
        difference = lead(history, f"full_{target}", f"identity_{target}")
        finding.add("ablation", quantity, difference, POINTS, MORE, Place(target), role="control")
    if history.empty:
        finding.not_controlled.append("M = I in place of a learned M")


def lead(history: pd.DataFrame, model: str, other: str) -> pd.Series:
    """Return, by seed, the mean over epochs of the validation accuracy of `model` minus that of `other`.

    Args:
        history: columns cell, seed, epoch and validation_accuracy.
    """
    measured = history.dropna(subset=["validation_accuracy"])
    curves = measured.pivot_table("validation_accuracy", ["seed", "epoch"], "cell").reindex(columns=[model, other])
    return (curves[model] - curves[other]).dropna().groupby("seed").mean()
