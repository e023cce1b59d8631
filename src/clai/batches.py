"""What training and embedding draw batches from: images, signals or recordings on the device, indexed by item.

An item is what is shuffled: an image, an EEG epoch, or a whole recording (a collection of samples with labels, line 651). A
batch of items gives encoder input and the labels of all its samples; for recordings these are all hours of all of them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clai.encoders import Hourly, to_device


class Items(Protocol):
    """A split of a dataset, ready to be drawn from."""

    labels: Tensor
    """Class indices of all samples, shape (samples,), on the CPU, in item order."""
    inputs: int
    """Channels or variables that the encoder takes."""

    def __len__(self) -> int:
        """Number of items."""

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        """Encoder input and labels (samples,) of the items; with a generator, augmented."""

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        """Number of samples in each block of items."""


class Splits(NamedTuple):
    """Training, validation and test items of one run."""

    train: Items
    val: Items
    test: Items


class Vectors:
    """Vectors (N, inputs), or tensors (N, ...) for a trunk that takes them, drawn as they are.

    Args:
        labels: class indices (N,), on the CPU.
    """

    def __init__(self, x: Tensor, labels: Tensor) -> None:
        self.x, self.labels, self.inputs = x, labels, x.shape[1]

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        return self.x[items.to(self.x.device)], self.labels[items].to(self.x.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [len(block) for block in blocks]


class Images:
    """Images (N, H, W, channels) uint8, kept so on the device; normalised and augmented a batch at a time.

    Args:
        mean, sd: per channel, in units of the pixel values.
        augmentation: `crop`, the padding in pixels of the random shift; `flip`, whether to mirror half of them.
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
        self.x = torch.tensor(x).to(device)
        self.labels = torch.tensor(y)
        self.y = self.labels.to(device)
        self.inputs = x.shape[3]
        self.mean, self.sd = (torch.tensor(v, dtype=torch.float32, device=device) for v in (mean, sd))
        self.crop, self.flip = int(augmentation["crop"]), bool(augmentation["flip"])

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        # All that the host draws goes to the device in one piece.
        drawn = [items] if generator is None else [items, *self._views(len(items), generator)]
        own, *views = to_device(torch.stack(drawn), self.x.device)
        x = self.x[own]
        if generator is not None:
            x = self._augment(x, *views)
        # (N, H, W, channels) seen as (N, channels, H, W) is already in the channels-last layout that convolutions prefer.
        return ((x.float() - self.mean) / self.sd).permute(0, 3, 1, 2), self.y[own]

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [len(block) for block in blocks]

    def _views(self, n: int, generator: torch.Generator) -> list[Tensor]:
        """Shift down, shift to the right and whether to mirror (0 or 1), each (n,), for n images."""
        down, right = (torch.randint(0, 2 * self.crop + 1, (n,), generator=generator) for _ in range(2))
        mirror = (torch.rand((n,), generator=generator) < 0.5) if self.flip else torch.zeros(n)
        return [down, right, mirror.long()]

    def _augment(self, x: Tensor, down: Tensor, right: Tensor, mirror: Tensor) -> Tensor:
        """Images shifted, with what comes in from outside black, and mirrored, as one gather for the batch."""
        n, height, width, _ = x.shape
        crop = self.crop
        padded = torch.nn.functional.pad(x, (0, 0, crop, crop, crop, crop))
        columns = torch.arange(width, device=x.device)
        rows = down[:, None] + torch.arange(height, device=x.device)
        columns = right[:, None] + torch.where(mirror[:, None] > 0, columns.flip(0), columns)
        return padded[torch.arange(n, device=x.device)[:, None, None], rows[:, :, None], columns[:, None, :]]


class Signals:
    """EEG epochs (N, channels, samples) float32 in microvolts, standardised per channel with training statistics."""

    def __init__(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.int64],
        mean: list[float],
        sd: list[float],
        device: torch.device,
    ) -> None:
        self.x = x  # may be memory-mapped: only the batch at hand is read
        self.labels = torch.tensor(y)
        self.inputs = x.shape[1]
        self.device = device
        self.mean, self.sd = (torch.tensor(v, dtype=torch.float32, device=device).unsqueeze(1) for v in (mean, sd))

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        x = to_device(torch.from_numpy(self.x[items.numpy()]), self.device)
        return (x - self.mean) / self.sd, to_device(self.labels[items], self.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [len(block) for block in blocks]


class Recordings:
    """ICU recordings as one long table of what is known at each hour (`clai.datasets.hourly_inputs`), shape (rows, inputs).

    Args:
        recording: the recording of each row, rows of one recording together and in order of time.
    """

    def __init__(
        self, inputs: NDArray[np.float32], y: NDArray[np.int64], recording: NDArray[np.int64], device: torch.device
    ) -> None:
        starts = np.flatnonzero(np.r_[True, recording[1:] != recording[:-1]])
        self.starts = torch.from_numpy(starts)
        self.lengths = torch.from_numpy(np.diff(starts, append=len(recording)))
        self.x = torch.from_numpy(inputs)
        self.labels = torch.tensor(y)
        self.inputs = self.x.shape[1]
        self.device = device

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Hourly, Tensor]:
        lengths = self.lengths[items]
        # A recording's rows follow one another: its first row, less the rows drawn before it, plus a count of all rows.
        first = self.starts[items] - (lengths.cumsum(0) - lengths)
        rows = first.repeat_interleave(lengths) + torch.arange(int(lengths.sum()))
        return Hourly(to_device(self.x[rows], self.device), lengths), to_device(self.labels[rows], self.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [int(self.lengths[block].sum()) for block in blocks]
