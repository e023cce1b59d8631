"""Encoders: shapes, conditions, and no look-ahead."""

import pytest
import torch

from clai.encoders import CausalGRU, ConditionedHead, Encoder, PaddedRecordings, ResNet1d, ResNet2d, build_trunk


@pytest.mark.parametrize(
    ("trunk", "x"),
    [
        (ResNet2d(3, 4, [1, 1]), torch.randn(5, 3, 28, 28)),
        (ResNet1d(2, 4, [1, 1, 1]), torch.randn(5, 2, 3000)),
    ],
)
def test_trunk_gives_features_and_head_one_embedding_a_condition(trunk: torch.nn.Module, x: torch.Tensor) -> None:
    encoder = Encoder(trunk, ConditionedHead(trunk.features, 7, 6))
    assert encoder(x).shape == (7, 5, 6)


def test_one_condition_is_a_slice_of_all() -> None:
    encoder = Encoder(ResNet2d(1, 2, [1]), ConditionedHead(2, 4, 3)).eval()
    x = torch.randn(6, 1, 8, 8)
    torch.testing.assert_close(encoder(x, 2), encoder(x)[2:3])


def test_resnet_of_width_64_with_two_blocks_a_stage_is_resnet_18() -> None:
    # 11.17 million parameters before the classification layer, as He et al.'s network with a 3 x 3 stem.
    assert sum(p.numel() for p in ResNet2d(3, 64, [2, 2, 2, 2]).parameters()) == 11_168_832


def test_recurrent_encoder_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    trunk = CausalGRU(4, 8, 1)
    encoder = Encoder(trunk, ConditionedHead(8, 1, 3)).eval()
    values, lengths = torch.randn(2, 10, 4), torch.tensor([10, 7])
    before = encoder(PaddedRecordings(values, lengths))[0]
    values = values.clone()
    values[0, 6:] += 5
    after = encoder(PaddedRecordings(values, lengths))[0]
    torch.testing.assert_close(after[:6], before[:6], rtol=0, atol=0)
    torch.testing.assert_close(after[10:], before[10:], rtol=0, atol=0)
    assert not torch.allclose(after[6:10], before[6:10])


def test_recurrent_encoder_leaves_padding_out() -> None:
    torch.manual_seed(0)
    trunk = CausalGRU(4, 8, 1)
    long, short = torch.randn(9, 4), torch.randn(4, 4)
    padded = torch.nn.utils.rnn.pad_sequence([long, short], batch_first=True)
    padded[1, 4:] = 1e6
    together = trunk(PaddedRecordings(padded, torch.tensor([9, 4])))
    alone = trunk(PaddedRecordings(short.unsqueeze(0), torch.tensor([4])))
    assert together.shape == (13, 8)
    torch.testing.assert_close(together[9:], alone)


def test_unknown_trunk_is_named() -> None:
    with pytest.raises(ValueError, match=r"encoder\.trunk is 'vit'"):
        build_trunk({"trunk": "vit", "width": 4}, 3)
