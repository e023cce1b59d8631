"""The registry of models, workflow/config/models.yaml: what the workflow, the tables and the figures know of each model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

Kind = Literal["samples", "rows", "embeddings"]

_READ: dict[Kind, tuple[str, ...]] = {
    "samples": (
        "device", "threads", "encoder", "target", "normalise_test_separately", "validation_share_recordings",
        "training",
    ),
    "rows": ("threads", "validation_share_recordings", "training.samples"),
    "embeddings": ("threads", "validation_share_recordings"),
}  # fmt: skip
"""Settings that decide the fit of every model of a kind."""


@dataclass(frozen=True)
class Entry:
    """A model in the registry, whose head explains the fields."""

    title: str
    colour: str
    fit: str
    of: Kind
    dash: str = "-."
    kernel: str | None = None
    reads: Sequence[str] = ()
    latent: bool = False
    recordings_only: bool = False

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the settings whose change fits the model again."""
        return (*_READ[self.of], *self.reads)


_REGISTRY = yaml.safe_load((Path(__file__).parents[3] / "workflow/config/models.yaml").read_text())
MODELS = {name: Entry(**entry) for name, entry in _REGISTRY.items()}
"""The registry, in the order of table rows."""


def fitted_on(kind: Kind) -> list[str]:
    """Return the models that are fitted on this, in table order."""
    return [name for name, model in MODELS.items() if model.of == kind]


CLAI = ["clai-m", "clai-c"]
"""The paper's models of Collaborative Learning, to which its printed values and claims apply."""
EMBEDDING = "clai-c"
"""The model whose embeddings others are fitted on: the earlier, cosine form of CLaI, whose long tails motivate the mixture."""
