"""Batches: normalisation, augmentation, and what the encoder sees of a recording."""

import numpy as np
import pytest
import torch

from clai.batches import Images, Recordings

CPU = torch.device("cpu")


@pytest.fixture
def images() -> Images:
    x = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
    return Images(x, np.arange(12) % 3, [10.0, 20.0, 30.0], [2.0, 4.0, 8.0], {"crop": 2, "flip": True}, CPU)


def test_images_are_normalised_per_channel_and_given_channels_first(images: Images) -> None:
    x, y = images.batch(torch.tensor([3, 5]), None)
    expected = (images.x[[3, 5]].double() - torch.tensor([10, 20, 30])) / torch.tensor([2, 4, 8])
    torch.testing.assert_close(x, expected.permute(0, 3, 1, 2).float())
    assert y.tolist() == [0, 2]
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_augmentation_repeats_with_its_generator_and_is_a_shift_or_mirror(images: Images) -> None:
    items = torch.arange(12)
    first, second = (images.batch(items, torch.Generator().manual_seed(4))[0] for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    plain = images.batch(items, None)[0]
    black = ((torch.zeros(3) - images.mean) / images.sd)[:, None, None]
    for augmented, original in zip(first, plain, strict=True):
        padded = black.expand(3, 12, 12).clone()
        padded[:, 2:10, 2:10] = original
        views = [padded[:, r : r + 8, c : c + 8] for r in range(5) for c in range(5)]
        assert any(torch.equal(augmented, v) or torch.equal(augmented, v.flip(2)) for v in views)


def recordings(x: np.ndarray) -> Recordings:
    groups = np.repeat([7, 9], [4, 3])
    return Recordings(x.astype(np.float32), np.array([0, 0, 1, 1, 0, 0, 0]), groups, [1.0, 2.0], [2.0, 4.0], CPU)


def test_hour_holds_the_last_value_so_far_and_whether_it_was_measured() -> None:
    nan = np.nan
    x = np.array([[nan, 6], [3, nan], [nan, nan], [5, 10], [nan, 2], [nan, nan], [1, nan]])
    padded, labels = recordings(x).batch(torch.tensor([0, 1]), None)
    assert padded.lengths.tolist() == [4, 3]
    assert labels.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert padded.values[0].tolist() == [[0, 1, 0, 1], [1, 1, 1, 0], [1, 1, 0, 0], [2, 2, 1, 1]]
    # Nothing is carried over from the recording before: its second one starts at the training mean.
    assert padded.values[1, :3].tolist() == [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_later_hours_do_not_change_earlier_ones() -> None:
    x = np.random.default_rng(0).normal(size=(7, 2))
    changed = x.copy()
    changed[2:4] = np.nan
    before, after = (recordings(v).batch(torch.tensor([0]), None)[0].values for v in (x, changed))
    torch.testing.assert_close(after[:, :2], before[:, :2], rtol=0, atol=0)


def test_block_sizes_count_hours() -> None:
    data = recordings(np.zeros((7, 2)))
    assert data.sizes([torch.tensor([1]), torch.tensor([0, 1])]) == [3, 7]
