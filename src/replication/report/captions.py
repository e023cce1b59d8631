"""Captions of tables and figures: sentences written by hand, and a line of data, seeds and hardware from the evidence."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from replication.report.evidence import Evidence, run_dataset, run_model
from replication.report.labels import MINI_NOTE


def caption(fixed: str, evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a caption: the fixed sentences in the first line, notes below them, and what the output rests on in the last line.

    Args:
        fixed: paragraphs, the first with the caption's sentences, each further one a note.
        runs: records of the runs behind the output.
    """
    paragraphs = [" ".join(paragraph.split()) for paragraph in fixed.split("\n\n")]
    line = " ".join(_basis(evidence, runs))
    return "\n".join(text for text in [*paragraphs, line] if text)


def _basis(evidence: Evidence, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on data, seeds, folds, hardware and what was not run; the mark of synthetic data is the last one."""
    data = "; ".join(dict.fromkeys(evidence.title(key) for key in evidence.at_hand()))
    hardware = "; ".join(sorted({str(run["hardware"]) for run in runs}))
    missing = "; ".join(
        f"{evidence.title(key)}, which needs {evidence.expected[key]['needs']}"
        for key in evidence.expected
        if not evidence.has(key)
    )
    parts = {
        "Data": data, "Seeds": replicate_text(evidence, runs, "seed"), "Folds": replicate_text(evidence, runs, "fold"),
        "Hardware": hardware, "Not run": missing,
    }  # fmt: skip
    sentences = [f"{name}: {text}." for name, text in parts.items() if text]
    return [*sentences, MINI_NOTE] if evidence.miniature else sentences


def replicate_text(evidence: Evidence, runs: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Return the seeds or folds of run records, such as 0-2; datasets, or models on one, are named where theirs differ.

    Args:
        unit: "seed" or "fold".
    """
    of_models: dict[str, dict[str, set[int]]] = {}
    for run in runs:
        if run[unit] is not None:
            models = of_models.setdefault(run_dataset(run), {})
            models.setdefault(run_model(run), set()).add(int(run[unit]))
    named: dict[str, list[str]] = {}
    for dataset, models in of_models.items():
        texts = {model: _ranges(numbers) for model, numbers in models.items()}
        title = evidence.title(dataset)
        if len(set(texts.values())) == 1:
            named.setdefault(next(iter(texts.values())), []).append(title)
            continue
        place = f" on {title}" if len(of_models) > 1 else ""
        for text in dict.fromkeys(texts.values()):
            titles = [evidence.model_title(dataset, model) for model in texts if texts[model] == text]
            named.setdefault(text, []).append(" and ".join(titles) + place)
    if len(named) == 1:
        return next(iter(named))
    return "; ".join(f"{text} ({'; '.join(names)})" for text, names in named.items())


def _ranges(numbers: set[int]) -> str:
    """Return 0-2, 5 for {0, 1, 2, 5}."""
    texts = []
    for _, pairs in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in pairs]
        texts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(texts)
