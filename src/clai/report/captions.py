"""Captions of tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from clai.report.evidence import Evidence, run_dataset, run_model
from clai.report.labels import MINI_NOTE, model_title


def caption(fixed: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """The fixed sentences, then data, what was not run, seeds, hardware and, for synthetic data, the mark."""
    sentences = [" ".join(fixed.split())]
    shown = list(dict.fromkeys(evidence.title(key) for key in evidence.at_hand()))
    if shown:
        sentences.append(f"Data: {'; '.join(shown)}.")
    missing = [f"{evidence.title(key)}: {evidence.not_run(key)}" for key in evidence.expected if not evidence.has(key)]
    if missing:
        sentences.append(f"{'; '.join(missing)}.")
    for unit, word in (("seed", "Seeds"), ("fold", "Folds")):
        counts = replicate_text(evidence, runs, unit)
        if counts:
            sentences.append(f"{word}: {counts}.")
    hardware = sorted({str(run["hardware"]) for run in runs})
    if hardware:
        sentences.append(f"Hardware: {'; '.join(hardware)}.")
    if evidence.miniature:
        sentences.append(MINI_NOTE)
    return " ".join(sentences)


def replicate_text(evidence: Evidence, runs: Sequence[Mapping[str, Any]], unit: str) -> str:
    """The seeds or folds behind run records; named by dataset, or by model on a dataset, where they differ."""
    found: dict[str, dict[str, set[int]]] = {}
    for run in runs:
        if run[unit] is not None:
            models = found.setdefault(run_dataset(run), {})
            models.setdefault(run_model(run), set()).add(int(run[unit]))
    groups: dict[str, list[str]] = {}
    for dataset, models in found.items():
        texts = {model: ", ".join(map(str, sorted(values))) for model, values in models.items()}
        title = evidence.title(dataset)
        if len(set(texts.values())) == 1:
            groups.setdefault(next(iter(texts.values())), []).append(title)
            continue
        for model, text in texts.items():
            groups.setdefault(text, []).append(f"{model_title(model)} on {title}")
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{text} ({'; '.join(names)})" for text, names in groups.items())
