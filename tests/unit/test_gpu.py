"""The method on a GPU has the CPU's numbers, up to rounding, and gives the same fit each time."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from clailearn import CLaIClassifier
from clailearn.inference import parzen_means
from clailearn.kernels import build

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA"),
    pytest.mark.parametrize("kernel", ["gaussian", "cosine"]),
]


def fitted(kernel: str, device: str, **parameters: Any) -> CLaIClassifier:
    X, y = load_wine(return_X_y=True)
    model = CLaIClassifier(kernel=kernel, device=device, calibration=None, random_state=0, **parameters)
    return model.fit(StandardScaler().fit_transform(X), y)


def test_a_training_step_has_the_loss_of_the_cpu(kernel: str) -> None:
    """One step an epoch: the loss of the first is that of the initial weights, that of the second follows the gradient."""
    gpu, cpu = (fitted(kernel, device, epochs=2, batch_size=89).history_ for device in ("cuda", "cpu"))
    assert [epoch["loss"] for epoch in gpu] == pytest.approx([epoch["loss"] for epoch in cpu], rel=1e-9)


def test_a_fit_is_repeatable(kernel: str) -> None:
    first, again = (fitted(kernel, "cuda", epochs=3, precision="float32").model_ for _ in range(2))
    for name, weights in first.module.state_dict().items():
        assert torch.equal(weights, again.module.state_dict()[name]), name
    assert torch.equal(first.references.z, again.references.z)


def test_votes_are_those_of_the_cpu(kernel: str) -> None:
    generator = torch.Generator().manual_seed(0)
    test, references = (torch.randn(3, n, 8, generator=generator, dtype=torch.float64) for n in (40, 500))
    labels = torch.randint(0, 3, (500,), generator=generator)
    similarity = build(kernel, 8, "full").double()
    gpu, cpu = (
        parzen_means(similarity.to(device), test.to(device), references.to(device), labels.to(device))
        for device in ("cuda", "cpu")
    )
    for one, other in zip(gpu, cpu, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other.numpy(), rtol=1e-9, atol=1e-12)
