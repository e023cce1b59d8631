"""The training, validation and test items of a run, normalised as config.yaml says, as sources of batches.

An item is an image, an EEG epoch, a row of features, or a recording with its hours.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clailearn.computation import Normalisation
from clailearn.encoders import Hourly, to_device
from clailearn.errors import InputError
from clailearn.trainer import Items, LazySamples, Samples
from replication.datasets.prepared import DEVELOPMENT, Prepared, normalisation, require_classes
from replication.datasets.recordings import CLASSES, draw_patients, hourly_inputs
from replication.runs.run import RunId

Rows = NDArray[np.bool_]

DEVELOPMENT_TEST_SHARE = 0.3
"""Share of the development patients who test the cells of a study that is `scored_on` development."""
LEVELS = 1001
"""Steps in which a random change of colour is drawn; whole numbers travel to the device together with the other draws."""
NO_AUGMENTATION = {"crop": 0, "flip": False, "turn": False, "colour": 0.0, "border": "black"}
"""For images that are evaluated alone."""


class Splits(NamedTuple):
    """Training, validation and test items of one run."""

    train: Items
    val: Items
    test: Items


class Images(Samples):
    """Images (N, H, W, channels) uint8 on the device, normalised and augmented a batch at a time.

    mean, sd: per channel, in units of the pixel values. augmentation: as `training.augmentation` in config.yaml; it alternates
    mirror images with the epochs (Jordan 2024, section 3.6), and has contrast and brightness of each channel of an image change.

    Raises:
        InputError: images that are not square are to be turned, or are to be shifted by their size or more and reflected.
    """

    def __init__(
        self,
        x: NDArray[np.uint8],
        y: NDArray[np.int64],
        mean: list[float],
        sd: list[float],
        augmentation: Mapping[str, Any],
        device: torch.device,
    ) -> None:
        super().__init__(torch.tensor(x).to(device), torch.tensor(y))
        self.y = self.labels.to(device)
        self.normalised = Normalisation("images", mean, sd, device)
        self.crop, self.flip = int(augmentation["crop"]), augmentation["flip"]
        if self.flip == "alternate":
            # Which images an odd epoch mirrors; the same in each run.
            self.sides = torch.randint(0, 2, (len(y),), generator=torch.Generator().manual_seed(0)).bool()
        self.odd = True
        self.turn, self.colour = bool(augmentation["turn"]), float(augmentation["colour"])
        self.reflect = augmentation["border"] == "reflect"
        if self.turn and x.shape[1] != x.shape[2]:
            raise InputError(
                f"config key training.augmentation.turn: found images of {x.shape[2]} x {x.shape[1]} pixels, expected square "
                "ones; set it to false"
            )
        if self.reflect and self.crop >= min(x.shape[1:3]):
            raise InputError(
                f"config key training.augmentation.crop: found {self.crop} for images of {x.shape[2]} x {x.shape[1]} pixels, "
                "expected less than their size, as their borders are reflected"
            )

    def begin_epoch(self, epoch: int) -> None:
        self.odd = epoch % 2 == 1

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        # The host draws, and sends its draws to the device in one piece.
        drawn = [items] if generator is None else [items, *self._draw_changes(items, generator)]
        rows, *changes = to_device(torch.stack(drawn), self.x.device)
        x = self.x[rows]
        if changes:
            x = self._move(x, *changes[:4])
        x = self.normalised(x)
        if levels := changes[4:]:
            x = self._stain(x, torch.stack(levels, 1))
        # (N, H, W, channels) permuted to (N, channels, H, W) has the channels-last layout, which convolutions prefer.
        return x.permute(0, 3, 1, 2), self.y[rows]

    def _draw_changes(self, items: Tensor, generator: torch.Generator) -> list[Tensor]:
        """Draw, for each of n items, its shift down and to the right, whether to mirror it (0 or 1), its quarter turns, and,
        where colours change, for each channel one of LEVELS levels of contrast and one of brightness; each (n,)."""
        n = len(items)
        down, right = (torch.randint(0, 2 * self.crop + 1, (n,), generator=generator) for _ in range(2))
        if self.flip == "alternate":
            mirror = self.sides[items] == self.odd
        else:
            mirror = (torch.rand((n,), generator=generator) < 0.5) if self.flip else torch.zeros(n)
        turns = torch.randint(0, 4, (n,), generator=generator) if self.turn else torch.zeros(n)
        colours = (2 * self.x.shape[3] if self.colour else 0, n)
        levels = torch.randint(0, LEVELS, colours, generator=generator)
        return [down, right, mirror.long(), turns.long(), *levels]

    def _move(self, x: Tensor, down: Tensor, right: Tensor, mirror: Tensor, turns: Tensor) -> Tensor:
        """Turn, mirror and shift images, in one gather for the batch."""
        n, height, width, _ = x.shape
        crop = self.crop
        row = torch.arange(height, device=x.device)[None, :, None]
        column = torch.arange(width, device=x.device)[None, None, :]
        turns, mirror, down, right = (drawn[:, None, None] for drawn in (turns, mirror, down, right))
        if self.turn:
            row, column = torch.where(turns % 2 > 0, column, row), torch.where(turns % 2 > 0, row, column)
            row = torch.where(turns > 1, height - 1 - row, row)
            column = torch.where((turns == 1) | (turns == 2), width - 1 - column, column)
        column = torch.where(mirror > 0, width - 1 - column, column)
        image = torch.arange(n, device=x.device)[:, None, None]
        if self.reflect:
            return x[image, _reflected(down + row - crop, height), _reflected(right + column - crop, width)]
        padded = torch.nn.functional.pad(x, (0, 0, crop, crop, crop, crop))
        return padded[image, down + row, right + column]

    def _stain(self, x: Tensor, levels: Tensor) -> Tensor:
        """Change contrast and brightness of the channels of normalised images (n, H, W, channels) by levels (n, 2 channels)."""
        change = self.colour * (2 * levels / (LEVELS - 1) - 1)
        contrast, brightness = change[:, None, None, :].chunk(2, dim=-1)
        return x * (1 + contrast) + brightness


def _reflected(positions: Tensor, size: int) -> Tensor:
    """Return positions in 0 .. size - 1, those beyond an end as far on its other side."""
    return size - 1 - (size - 1 - positions.abs()).abs()


class Recordings(Items):
    """ICU recordings as one table (rows, inputs), a row an hour of a recording.

    inputs, y, recording: encoder input, class index and recording of each row; those of a recording are in order of time.
    """

    def __init__(
        self, inputs: NDArray[np.float32], y: NDArray[np.int64], recording: NDArray[np.int64], device: torch.device
    ) -> None:
        _, self.lengths = torch.unique_consecutive(torch.tensor(recording), return_counts=True)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.x = torch.from_numpy(inputs)
        self.labels = torch.tensor(y)
        self.device = device

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Hourly, Tensor]:
        lengths = self.lengths[items]
        # Row of a drawn hour: first row of its recording, less the hours drawn before it, plus its number among the drawn hours.
        first = self.starts[items] - (lengths.cumsum(0) - lengths)
        rows = first.repeat_interleave(lengths) + torch.arange(int(lengths.sum()))
        return Hourly(to_device(self.x[rows], self.device), lengths), to_device(self.labels[rows], self.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [int(self.lengths[block].sum()) for block in blocks]


def recording_rows(data: Prepared, settings: Mapping[str, Any], run_id: RunId) -> tuple[Rows, Rows, Rows]:
    """Return the training, validation and test rows of recordings, (rows,) each.

    A run tests on its fold and trains on the others. In a study that is `scored_on` development, all three parts are of
    development patients; `split_seed` draws those for testing. Raises InputError where a part lacks a class.
    """
    folds, patients, y = (np.asarray(data[f"{name}_all"]) for name in ("folds", "patients", "y"))
    if settings.get("scored_on") == "development":
        own = folds == DEVELOPMENT
        test = draw_patients(patients, y, own, DEVELOPMENT_TEST_SHARE, settings["split_seed"])
    else:
        own, test = folds != DEVELOPMENT, folds == run_id.fold
    val = draw_patients(patients, y, own & ~test, settings["validation_share_recordings"], run_id.seed)
    parts = {"training": own & ~test & ~val, "validation": val, "test": test}
    advice = (
        f"Change validation_share_recordings ({settings['validation_share_recordings']}), lower datasets.{run_id.name}.folds, "
        "or admit more recordings."
    )
    require_classes(y, {f"{run_id}: the hours for {part}": rows for part, rows in parts.items()}, CLASSES, advice)
    return parts["training"], parts["validation"], parts["test"]


def drawn_rows(settings: Mapping[str, Any], run_id: RunId, rows: int) -> NDArray[np.int64] | None:
    """Return the training rows, in order, that the run's seed draws where `training.samples` is fewer than `rows`; else None."""
    samples = settings["training"]["samples"]
    if samples is None or samples >= rows:
        return None
    return np.sort(np.random.default_rng(run_id.seed).permutation(rows)[:samples])


def splits_of(data: Prepared, settings: Mapping[str, Any], run_id: RunId, device: torch.device) -> Splits:
    """Return the normalised items of a run.

    The run's seed draws validation patients and `training.samples`. Recordings are normalised with statistics of the run's own
    training rows, without validation rows.
    """
    kind = data.info["kind"]
    if kind == "recordings":
        x, y, groups, hours = (np.asarray(data[f"{name}_all"]) for name in ("x", "y", "groups", "hours"))
        rows = recording_rows(data, settings, run_id)
        found = normalisation(x[rows[0]], kind, data.info["variables"], f"training data of fold {run_id.fold}")
        inputs = [hourly_inputs(x[r], groups[r], hours[r], found["mean"], found["sd"]) for r in rows]
        return Splits(*(Recordings(known, y[r], groups[r], device) for known, r in zip(inputs, rows, strict=True)))
    separately = kind != "features" and settings["normalise_test_separately"]

    def items(split: str) -> Items:
        statistics = data.info["normalisation"]["test" if split == "test" and separately else "train"]
        x, y, mean, sd = data[f"x_{split}"], data[f"y_{split}"], statistics["mean"], statistics["sd"]
        if split == "train" and (rows := drawn_rows(settings, run_id, len(y))) is not None:
            advice = f"Raise training.samples, which is {len(rows)}."
            require_classes(y, {f"{run_id}: the samples for training": rows}, data.info["classes"], advice)
            x, y = x[rows], y[rows]
        if split == "train" and settings["training"].get("shuffled_labels"):
            y = np.random.default_rng(run_id.seed).permutation(y)
        if kind == "features":
            return Samples(Normalisation(kind, mean, sd)(torch.tensor(x)).to(device), torch.tensor(y))
        if kind == "images":
            return Images(x, y, mean, sd, settings["training"]["augmentation"], device)
        normalised = Normalisation(kind, mean, sd, device)
        return LazySamples(x, torch.tensor(y), lambda block: normalised(to_device(torch.from_numpy(block), device)))

    return Splits(*map(items, Splits._fields))
