"""What training and embedding draw batches from: images, signals or recordings on the device, indexed by item.

An item is what is shuffled: an image, an EEG epoch, or a whole recording (a collection of samples with labels, line 651). A
batch of items gives encoder input and the labels of all its samples; for recordings these are all hours of all of them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clai.encoders import Hourly


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
        self.inputs = x.shape[3]
        self.mean, self.sd = (torch.tensor(v, dtype=torch.float32, device=device) for v in (mean, sd))
        self.crop, self.flip = int(augmentation["crop"]), bool(augmentation["flip"])

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        x = self.x[items.to(self.x.device)]
        if generator is not None:
            x = self._augment(x, generator)
        # (N, H, W, channels) seen as (N, channels, H, W) is already in the channels-last layout that convolutions prefer.
        return ((x.float() - self.mean) / self.sd).permute(0, 3, 1, 2), self.labels[items].to(self.x.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [len(block) for block in blocks]

    def _augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Random shift by up to `crop` pixels (filled with black) and mirror, as one gather for the batch."""
        n, height, width, _ = x.shape
        crop = self.crop
        padded = torch.nn.functional.pad(x, (0, 0, crop, crop, crop, crop))
        down = torch.randint(0, 2 * crop + 1, (n, 1), generator=generator)
        right = torch.randint(0, 2 * crop + 1, (n, 1), generator=generator)
        mirror = torch.rand((n, 1), generator=generator) < 0.5 if self.flip else torch.zeros(n, 1, dtype=torch.bool)
        columns = torch.arange(width)
        rows = (down + torch.arange(height)).to(x.device)
        columns = (right + torch.where(mirror, columns.flip(0), columns)).to(x.device)
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
        x = torch.from_numpy(self.x[items.numpy()]).to(self.device)
        return (x - self.mean) / self.sd, self.labels[items].to(self.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        return [len(block) for block in blocks]


class Recordings:
    """ICU recordings as one long table of what is known at each hour (`clai.hourly`), shape (rows, inputs).

    Args:
        recording: the recording of each row, rows of one recording together and in order of time.
    """

    def __init__(
        self, inputs: NDArray[np.float32], y: NDArray[np.int64], recording: NDArray[np.int64], device: torch.device
    ) -> None:
        self.starts = np.flatnonzero(np.r_[True, recording[1:] != recording[:-1]])
        self.ends = np.r_[self.starts[1:], len(recording)]
        self.x = torch.from_numpy(inputs)
        self.labels = torch.tensor(y)
        self.inputs = self.x.shape[1]
        self.device = device

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Hourly, Tensor]:
        spans = [torch.arange(int(self.starts[i]), int(self.ends[i])) for i in items]
        rows = torch.cat(spans)
        lengths = torch.tensor([len(span) for span in spans])
        return Hourly(self.x[rows].to(self.device), lengths), self.labels[rows].to(self.device)

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        lengths = torch.from_numpy(self.ends - self.starts)
        return [int(lengths[block].sum()) for block in blocks]
