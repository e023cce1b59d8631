"""The registry of models is complete: classes, kernels and settings that it names exist."""

from pathlib import Path

import pytest

from clai.kernels import KERNELS
from replication.models.base import Network, RowClassifier, create
from replication.models.clai import CLaI
from replication.runs.models import MODELS
from replication.runs.settings import load_settings, select

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_of_a_class_for_what_it_is_fitted_on(name: str) -> None:
    model, entry = create(name), MODELS[name]
    assert isinstance(model, Network if entry.of == "samples" else RowClassifier)
    assert isinstance(model, CLaI) == (entry.kernel in KERNELS)
    assert hasattr(model, "latent") == entry.latent


def test_every_setting_that_a_model_reads_has_a_default() -> None:
    settings = load_settings(REPOSITORY)
    for model in MODELS.values():
        assert select(settings, model.settings)
