"""Encoders: shapes, conditions, and no look-ahead."""

import pytest
import torch

from clailearn import encoders


def test_one_condition_is_a_slice_of_all() -> None:
    encoder = encoders.Encoder(encoders.ResNet2d(1, 2, [1]), encoders.ConditionedHead(2, 4, 3)).eval()
    x = torch.randn(6, 1, 8, 8)
    torch.testing.assert_close(encoder(x, 2), encoder(x)[2:3])


def test_resnet_of_width_64_with_two_blocks_a_stage_is_resnet_18() -> None:
    # 11.17 million parameters before the classification layer, as He et al.'s network with a 3 x 3 stem.
    assert sum(p.numel() for p in encoders.ResNet2d(3, 64, [2, 2, 2, 2]).parameters()) == 11_168_832


@pytest.mark.parametrize(("trunk", "axes"), [("resnet2d", 2), ("convnet", 2), ("resnet1d", 1)])
def test_the_least_size_of_a_trunk_is_the_smallest_that_it_takes(trunk: str, axes: int) -> None:
    (size,) = [sizes[trunk] for sizes in encoders.TRUNKS.values() if trunk in sizes]
    built = encoders.build_trunk({"trunk": trunk, "width": 4, "blocks": [1], "pool": True}, 1).eval()
    assert built(torch.zeros(3, 1, *[size] * axes)).shape == (3, built.features)
    with pytest.raises(RuntimeError):
        built(torch.zeros(3, 1, *[size - 1] * axes))


def test_filters_of_the_convnet_whiten_patches_of_the_images() -> None:
    torch.manual_seed(0)
    # Neighbouring pixels of smooth images resemble each other.
    images = torch.nn.functional.avg_pool2d(torch.randn(200, 3, 20, 20), 4, 1) * torch.arange(1, 4)[:, None, None]
    trunk = encoders.ConvNet(3, 4)
    trunk.whiten(images, regularisation=0.0)
    responses = torch.nn.functional.conv2d(images, trunk.whitening).transpose(0, 1).flatten(1)
    torch.testing.assert_close(responses[:12], -responses[12:])
    covariance = responses[:12] @ responses[:12].T / responses.shape[1]
    torch.testing.assert_close(covariance, torch.eye(12), atol=1e-3, rtol=0)
    variances = 1 / trunk.whitening[:12].flatten(1).square().sum(1)
    trunk.whiten(images)
    added = 1 / trunk.whitening[:12].flatten(1).square().sum(1) - variances
    torch.testing.assert_close(added, torch.full((12,), 5e-4), rtol=0.01, atol=0)


def test_training_leaves_whitening_and_scales_of_the_convnet_alone() -> None:
    torch.manual_seed(0)
    trunk = encoders.ConvNet(1, 2)
    trunk.whiten(torch.randn(8, 1, 12, 12))
    fixed = {"whitening", *(name for name, p in trunk.named_parameters() if not p.requires_grad)}
    assert len(fixed) == 7
    before = {name: value.clone() for name, value in trunk.state_dict().items()}
    optimiser = torch.optim.AdamW(trunk.parameters(), lr=0.1, weight_decay=0.1)
    trunk(torch.randn(8, 1, 12, 12)).sum().backward()
    optimiser.step()
    changed = {name for name, value in trunk.state_dict().items() if not value.equal(before[name])}
    assert not fixed & changed
    assert {name for name, p in trunk.named_parameters() if p.requires_grad} <= changed


def test_convnet_has_the_size_and_the_momentum_that_its_source_gives() -> None:
    # Jordan (2024), section 3: widths 64, 256 and 256; the count leaves out the classification layer.
    convolutions = 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256)
    trunk = encoders.ConvNet(3, 64)
    assert sum(p.numel() for p in trunk.parameters() if p.ndim == 4) == convolutions
    assert {layer.momentum for layer in trunk.modules() if isinstance(layer, torch.nn.BatchNorm2d)} == {0.4}


@pytest.mark.parametrize("layers", [1, 2])
def test_hours_taken_a_few_at_a_time_have_the_states_and_gradients_of_one_pass(layers: int) -> None:
    torch.manual_seed(0)
    trunk = encoders.CausalGRU(3, 4, layers, 0.0).double()
    stays = [torch.randn(n, 3, dtype=torch.float64) for n in (5, 53, 1, 16, 17, 53, 32)]
    weights = torch.randn(sum(map(len, stays)), 4, dtype=torch.float64)
    results = []
    for states in (
        trunk(encoders.Hourly(torch.cat(stays), torch.tensor([len(stay) for stay in stays]))),
        torch.cat([trunk.gru(stay)[0] for stay in stays]),
    ):
        results.append([states, *torch.autograd.grad((states * weights).sum(), list(trunk.parameters()))])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_head_of_every_method_sees_features_of_mean_0_and_variance_1() -> None:
    torch.manual_seed(0)
    x = 5 + 3 * torch.randn(64, 3)
    encoder = encoders.Encoder(encoders.MLP(3, 8, 1), encoders.ConditionedHead(8, 2, 4))
    classifier = encoders.Classifier(encoders.MLP(3, 8, 1), 8, 3)
    for module, head in ((encoder, encoder.head), (classifier, classifier.logits)):
        seen: list[torch.Tensor] = []
        head.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0]))
        module(x)
        spread = seen[0].detach().std(0, correction=0)
        torch.testing.assert_close(seen[0].mean(0), torch.zeros(8), atol=1e-5, rtol=0)
        assert all(abs(float(s) - 1) < 1e-2 or float(s) == 0 for s in spread)


def test_dropout_of_all_inputs_of_the_recurrent_trunk_leaves_nothing_of_them() -> None:
    trunk = encoders.build_trunk({"trunk": "gru", "width": 4, "layers": 1, "dropout": 1.0}, 3)
    first, second = (trunk(encoders.Hourly(torch.randn(6, 3), torch.tensor([4, 2]))) for _ in range(2))
    assert torch.equal(first, second)


def test_a_head_begins_with_its_seed_and_within_the_root_of_its_features() -> None:
    settings = {"encoder": {"trunk": "mlp", "width": 100, "layers": 1}, "embedding_size": 50}
    first, again, other = (encoders.build_encoder(settings, 3, 3, seed).head.weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert 0.099 < first.abs().max() <= 0.1
