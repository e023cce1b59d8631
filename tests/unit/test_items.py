"""Batches: normalisation, augmentation, and what the encoder sees of a recording."""

from typing import Any

import numpy as np
import pytest
import torch

from clailearn.errors import InputError
from replication.models.items import NO_AUGMENTATION, Images, Recordings

CPU = torch.device("cpu")


def pictures(n: int, height: int, width: int, **changes: Any) -> Images:
    """Return so many random pictures that are augmented like this."""
    x = np.random.default_rng(0).integers(0, 256, (n, height, width, 3), dtype=np.uint8)
    return Images(x, np.arange(n) % 3, [10.0, 20.0, 30.0], [2.0, 4.0, 8.0], NO_AUGMENTATION | changes, CPU)


def test_images_are_normalised_per_channel_and_given_channels_first() -> None:
    images = pictures(12, 8, 8)
    x, y = images.batch(torch.tensor([3, 5]), None)
    expected = (images.x[[3, 5]].double() - torch.tensor([10, 20, 30])) / torch.tensor([2, 4, 8])
    torch.testing.assert_close(x, expected.permute(0, 3, 1, 2).float())
    assert y.tolist() == [0, 2]
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_augmentation_repeats_with_its_generator_and_is_a_shift_or_mirror() -> None:
    images, items = pictures(12, 8, 8, crop=2, flip=True), torch.arange(12)
    first, second = (images.batch(items, torch.Generator().manual_seed(4))[0] for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    plain = images.batch(items, None)[0]
    black = ((torch.zeros(3) - images.normalised.mean) / images.normalised.sd)[:, None, None]
    seen = set()
    for augmented, original in zip(first, plain, strict=True):
        padded = black.expand(3, 12, 12).clone()
        padded[:, 2:10, 2:10] = original
        views = [padded[:, r : r + 8, c : c + 8] for r in range(5) for c in range(5)]
        pairs = [(turned, view.flip(2) if turned else view) for turned in (False, True) for view in views]
        found = {turned for turned, view in pairs if torch.equal(augmented, view)}
        assert found
        seen |= found
    assert seen == {False, True}


def test_borders_of_shifted_images_show_the_image_mirrored_there() -> None:
    shifted, original = augmented(crop=1, border="reflect")
    padded = torch.nn.functional.pad(original[None], (1, 1, 1, 1), mode="reflect")[0]
    views = [padded[:, r : r + 6, c : c + 6] for r in range(3) for c in range(3)]
    found = {[torch.equal(image, view) for view in views].index(True) for image in shifted}
    assert found == set(range(9))


def test_alternate_epochs_mirror_the_images_that_the_one_before_did_not() -> None:
    images, items = pictures(60, 8, 8, flip="alternate"), torch.arange(60)
    plain, epochs = images.batch(items, None)[0], []
    for epoch in (1, 2, 3):
        images.begin_epoch(epoch)
        epochs.append(images.batch(items, torch.Generator().manual_seed(epoch))[0])
    mirrored = [torch.equal(x, original.flip(-1)) for x, original in zip(epochs[0], plain, strict=True)]
    assert 20 < sum(mirrored) < 40
    torch.testing.assert_close(epochs[1], epochs[0].flip(-1), rtol=0, atol=0)
    torch.testing.assert_close(epochs[2], epochs[0], rtol=0, atol=0)


def augmented(**changes: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return 40 augmented images (40, 3, 6, 6) and the original (3, 6, 6) of all of them."""
    data, items = pictures(1, 6, 6, **changes), torch.zeros(40, dtype=torch.int64)
    return data.batch(items, torch.Generator().manual_seed(0))[0], data.batch(items[:1], None)[0][0]


def test_images_are_turned_by_all_multiples_of_a_right_angle() -> None:
    turned, original = augmented(turn=True)
    views = [original.rot90(k, (1, 2)) for k in range(4)]
    found = [[torch.equal(image, view) for view in views].index(True) for image in turned]
    assert set(found) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"turn": True}, r"turn: found images of 6 x 4 pixels"),
        ({"crop": 6, "border": "reflect"}, r"crop: found 6 for images of 6 x 4 pixels"),
    ],
)
def test_augmentations_that_the_size_of_images_forbids_are_refused(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=rf"training\.augmentation\.{found}"):
        pictures(2, 4, 6, **changes)


def test_colours_change_by_one_contrast_and_one_brightness_a_channel() -> None:
    changed, original = augmented(colour=0.2)
    for channel, before in zip(changed.transpose(0, 1).flatten(2), original.flatten(1), strict=True):
        design = torch.stack([before, torch.ones_like(before)], 1)
        contrast, brightness = torch.linalg.lstsq(design, channel.T).solution
        torch.testing.assert_close(design @ torch.stack([contrast, brightness]), channel.T, atol=1e-4, rtol=1e-4)
        for change in (contrast - 1, brightness):
            assert -0.2001 <= change.min() < -0.15
            assert 0.15 < change.max() <= 0.2001


def test_hours_of_recordings_are_drawn_one_after_the_other() -> None:
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    data = Recordings(x, np.array([0, 0, 1, 1, 0, 0, 0]), np.repeat([7, 9], [4, 3]), CPU)
    assert (len(data), data.sizes([torch.tensor([1]), torch.tensor([0, 1])])) == (2, [3, 7])
    drawn, labels = data.batch(torch.tensor([1, 0]), None)
    assert drawn.lengths.tolist() == [3, 4]
    np.testing.assert_array_equal(drawn.values, np.concatenate([x[4:], x[:4]]))
    assert labels.tolist() == [0, 0, 0, 0, 0, 1, 1]
