"""The registry of models names classes and kernels that exist."""

import pytest

from clai.kernels import KERNELS
from replication.models.base import Network, RowClassifier, create
from replication.models.clai import CLaI
from replication.runs.models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_of_a_class_for_what_it_is_fitted_on(name: str) -> None:
    model, entry = create(name), MODELS[name]
    assert isinstance(model, Network if entry.of == "samples" else RowClassifier)
    assert isinstance(model, CLaI) == (entry.kernel in KERNELS)
    assert hasattr(model, "latent") == entry.latent
