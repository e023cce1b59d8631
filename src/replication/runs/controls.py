"""Embeddings of other losses than CLaI's, and of none: what the controls of claims rest on.

`EMBEDDINGS` lists what kernels look at. The trainings of `OBJECTIVES` share trunk, settings and number of passes, and are traced:
after each epoch the alignment of their embedding is measured. `prototypical` and the two `alignment` embeddings come from there
alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from replication.runs.identity import RunId
from replication.runs.models import CLAI
from replication.runs.settings import has_recordings, runs_of_model, seeds_of

SEEDS = (0, 1, 2)
"""Seeds of the runs that controls rest on, as far as a model has them: controls need a direction, not a small interval."""
MINIATURE_SEEDS = (0,)
TRACED_DATASETS = ("sleepedf-bands",)
"""Where trainings by all objectives are traced: a training takes a minute there. Their trunk must not be whitened."""
UNTRAINED = "untrained"
INPUTS = "inputs"


class Embedding(NamedTuple):
    """An embedding: its title, the model whose network and settings it has, and `module:class` that trains it, if another."""

    title: str
    model: str
    fit: str | None = None


_MAXIMISED = "replication.models.clai:AlignmentMaximised"
EMBEDDINGS: dict[str, Embedding] = {
    "clai-m": Embedding("CLaI-M", "clai-m"),
    "clai-c": Embedding("CLaI-C", "clai-c"),
    "alignment-m": Embedding("Alignment maximised (M)", "clai-m", _MAXIMISED),
    "alignment-c": Embedding("Alignment maximised (C)", "clai-c", _MAXIMISED),
    "cross-entropy": Embedding("Cross-entropy", "cross-entropy"),
    "supervised-contrastive": Embedding("Supervised contrastive", "supervised-contrastive"),
    "prototypical": Embedding(
        "Prototypical loss", "supervised-contrastive", "replication.models.network_classifiers:Prototypical"
    ),
    UNTRAINED: Embedding("Untrained", "clai-m"),
    INPUTS: Embedding("Inputs of the encoder", "clai-m"),
}
OBJECTIVES: list[str] = [name for name in EMBEDDINGS if name not in (UNTRAINED, INPUTS)]
"""The embeddings whose training can be traced."""
TRACED_ONLY: list[str] = [name for name in OBJECTIVES if EMBEDDINGS[name].fit is not None]
"""The embeddings whose model only a traced training leaves."""
COMPARED: list[str] = ["cross-entropy", UNTRAINED, INPUTS]
"""Whose classes are compared beside those of CLaI's embeddings; `inputs` are the samples as the encoder receives them."""
SIGNALS: list[str] = [*CLAI, "cross-entropy"]
"""Whose signals are described as the kernel sees them."""


def traced_runs(settings: Mapping[str, Any], dataset: str, objectives: Sequence[str] = OBJECTIVES) -> list[RunId]:
    """Return the traced trainings of a dataset by these objectives, of the models that it has."""
    if dataset not in TRACED_DATASETS:
        return []
    fitted = [name for name in objectives if EMBEDDINGS[name].model in settings["datasets"][dataset]["models"]]
    return [run for name in fitted for run in runs_of(settings, dataset, name)]


def compared_runs(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the runs whose classes are compared; the inputs are the same in every run, so they count once."""
    return [run for name in COMPARED for run in runs_of(settings, dataset, name)[: 1 if name == INPUTS else None]]


def voting_runs(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the runs of CLaI-M whose rules are compared."""
    return runs_of(settings, dataset, "clai-m")


def signal_runs(settings: Mapping[str, Any], dataset: str) -> list[RunId]:
    """Return the runs on recordings whose signals are described as the kernel sees them: CLaI's, and those of cross-entropy."""
    models = settings["datasets"][dataset]["models"] if has_recordings(settings, dataset) else []
    return [run for model in SIGNALS if model in models for run in runs_of_model(settings, dataset, model)]


def runs_of(settings: Mapping[str, Any], dataset: str, name: str) -> list[RunId]:
    """Return the runs of an embedding with `SEEDS`; of a trained model those that the dataset has as well."""
    seeds = MINIATURE_SEEDS if settings["miniature"] else SEEDS
    if EMBEDDINGS[name].model == name:
        fitted = name in settings["datasets"][dataset]["models"]
        return [run for run in runs_of_model(settings, dataset, name) if fitted and run.seed in seeds]
    return [RunId(dataset, name, seed) for seed in seeds if seed in seeds_of(settings, dataset)]


def parts_of(settings: Mapping[str, Any], run: RunId) -> list[str]:
    """Return what the evaluation of a trained model adds for controls: `classes`, `rules` and `signals`, where they apply."""
    runs = {"classes": compared_runs, "rules": voting_runs, "signals": signal_runs}
    return [part for part, listed in runs.items() if run in listed(settings, run.name)]
