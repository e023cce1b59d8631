"""The formulae of docs/theory.md hold in numbers, and rules agree with scikit-learn's classifier where they should."""

import numpy as np
import pytest
import torch

from clailearn.alignment import alignment_loss, alignment_scores, one_vs_rest, target_matrix
from clailearn.inference import RULES, decide, parzen_means
from clailearn.kernels import build
from replication.experiments.simulations import BANDWIDTHS, SHARES, check_all, simulate

SHARE, BANDWIDTH = pytest.mark.parametrize("share", SHARES), pytest.mark.parametrize("bandwidth", BANDWIDTHS)


def signs_of(share: float) -> torch.Tensor:
    """Return signs (1, 100), positives first."""
    return one_vs_rest((torch.arange(100) < round(share * 100)).long(), 1).double()


def test_the_bound_holds_and_the_parzen_rule_is_scikit_learns_kernel_bayes_classifier() -> None:
    checks = check_all([0])
    assert checks.query("check == 'bound'")["value"].min() >= 0
    of_rules = checks.query("check == 'parzen'")
    assert len(of_rules) == len({*RULES, "derivation"}) * len(SHARES) * len(BANDWIDTHS)
    found = of_rules.set_index(["rule", "share", "bandwidth"])["value"]
    assert (found["parzen"] == 1).all()
    equal = found.xs(0.5, level="share")
    assert (equal == 1).all()


@SHARE
@BANDWIDTH
def test_the_offset_of_f_moves_decisions_in_a_band(share: float, bandwidth: float) -> None:
    kernel, z, labels, z_test, _ = simulate(share, bandwidth, seed=0)
    means = parzen_means(kernel, z_test, z, labels)
    far = decide(parzen_means(kernel, z_test[:, :1] + 2e3, z, labels), "printed")
    assert far.item() == pytest.approx(1 - 2 * share, abs=1e-7)
    margin = share * means.log_positive.exp() - (1 - share) * means.log_negative.exp()
    between = (margin > min(0, share - 0.5)) & (margin <= max(0, share - 0.5))
    assert torch.equal(between, (decide(means, "printed") > 0) != (decide(means, "parzen") > 0))


@SHARE
def test_an_encoder_that_tells_nothing_apart_has_the_loss_and_alignment_of_the_formulae(share: float) -> None:
    p, signs = share, signs_of(share)
    matrix = target_matrix(signs, signs, "product")
    in_one_point = torch.ones_like(matrix)
    assert alignment_loss(in_one_point, matrix).item() == pytest.approx(8 * p * (1 - p), abs=1e-12)
    aligned, centred = (score.item() for score in alignment_scores(in_one_point, matrix))
    assert aligned == pytest.approx((1 - 2 * p) ** 2, abs=1e-12)
    assert centred == 0
    signs = signs.repeat(1, 2)  # Two points, as many as the smallest share has, do not spread evenly.
    angles = torch.zeros_like(signs)
    for side in (signs > 0, signs < 0):
        angles[side] = 2 * np.pi * torch.arange(int(side.sum())).double() / side.sum()
    spread = torch.stack([angles.cos(), angles.sin()], -1)
    loss = alignment_loss(build("cosine", 2, "identity")(spread, spread), target_matrix(signs, signs, "zero"))
    assert loss.item() == pytest.approx(p * (2 - p) + 1 / 2, abs=1e-12)


@SHARE
@pytest.mark.parametrize(("name", "fall"), [("cosine", 4), ("gaussian", 16)])
def test_coinciding_embeddings_are_unstable_in_proportion_to_class_shares(share: float, name: str, fall: float) -> None:
    kernel, signs, step = build(name, 2, "identity").double(), signs_of(share), 1e-3
    target = target_matrix(signs, signs, "product")
    z = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, signs.shape[-1], 2).clone().requires_grad_()
    loss = alignment_loss(kernel(z, z), target).sum()
    (gradient,) = torch.autograd.grad(loss, z)
    assert gradient.abs().max() < 1e-12
    # Orthogonal to z, so that the cosine kernel sees an angle; in units of the kernel's coordinates, whose scale is isotropic.
    unit = kernel.coordinates(z)[0, 0].norm().item()
    moved = z.detach().clone()
    moved[0, signs[0] > 0, 1] = np.tan(step) if kernel.inner_product else step / unit
    after = alignment_loss(kernel(moved, moved), target).sum()
    assert (loss - after).item() / step**2 == pytest.approx(fall * share * (1 - share), rel=1e-4)
