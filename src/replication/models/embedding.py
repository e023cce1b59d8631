"""The outputs of trained models for the samples of a run: embeddings, logits and the votes of reference samples."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor, nn

from clailearn.checkpoints import write_whole
from clailearn.computation import BLOCK
from clailearn.encoders import Encoder, move
from clailearn.files import load_tensors
from clailearn.inference import ParzenMeans, mean_of_views, parzen_means, sample_references
from clailearn.kernels import Kernel
from clailearn.trainer import Items, precision_context
from replication.models.items import Splits
from replication.models.run import Run

ImageView = Callable[[Tensor], Tensor]
"""What the encoder sees in place of images (N, channels, height, width)."""


class Embedded(NamedTuple):
    """Embeddings (K, N, L) and labels (N,) of one split, on the CPU; embeddings (V, K, N, L) of V further views that vote too."""

    z: Tensor
    y: Tensor
    z_views: Tensor | None = None

    @property
    def views(self) -> list[Tensor]:
        """Return the embeddings (K, N, L) of all views."""
        return [self.z, *([] if self.z_views is None else self.z_views)]


def draw_items(items: Items, count: int | None, seed: int) -> Tensor:
    """Return the positions of at most `count` items, drawn with the seed; of all in order if count is None."""
    if count is None:
        return torch.arange(len(items))
    return torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))[:count]


def plain(x: Tensor) -> Tensor:
    """Return encoder input as it is."""
    return x


def shifted(x: Tensor, pixels: int) -> Tensor:
    """Return images shifted down and to the right, or with less than 0 up and to the left, with reflected borders."""
    height, width = x.shape[-2:]
    padded = nn.functional.pad(x, [abs(pixels)] * 4, mode="reflect")
    first = abs(pixels) - pixels
    return padded[..., first : first + height, first : first + width]


def further_views(run: Run) -> list[ImageView]:
    """Return the views of a test sample that vote beside itself: its mirror image, and both shifted, as `inference` says."""
    by = run.image_setting("shift")
    flips: list[ImageView] = [plain, lambda x: x.flip(-1)] if run.image_setting("mirror") else [plain]
    shifts = [partial(shifted, pixels=pixels) for pixels in (by, -by)] if by else []
    return [*flips[1:], *(lambda x, flip=flip, move=move: move(flip(x)) for move in shifts for flip in flips)]


@torch.no_grad()
def outputs(
    run: Run, module: nn.Module, items: Items, positions: Tensor, dim: int = 0, view: ImageView = plain
) -> Tensor:
    """Return a module's outputs for items without augmentation, or for a view of them, joined along `dim`, on the CPU."""
    module.eval()
    blocks = []
    for block in positions.split(BLOCK):
        x = items.batch(block, None)[0]
        with precision_context(run.device, run.training.precision):
            blocks.append(module(view(x)).cpu())
    return torch.cat(blocks, dim)


def labels_of(items: Items, positions: Tensor) -> Tensor:
    """Return the labels of all samples of items, (samples,), on the CPU."""
    return torch.cat([items.batch(block, None)[1].cpu() for block in positions.split(BLOCK)])


def embed(
    run: Run, encoder: nn.Module, items: Items, positions: Tensor | None = None, views: Sequence[ImageView] = ()
) -> Embedded:
    """Embed all items, or those at the positions, without augmentation, and further views of them."""
    rows = torch.arange(len(items)) if positions is None else positions
    z = outputs(run, encoder, items, rows, dim=1)
    others = [outputs(run, encoder, items, rows, dim=1, view=view) for view in views]
    y = items.labels if positions is None else labels_of(items, positions)
    return Embedded(z, y, torch.stack(others) if others else None)


def embed_splits(run: Run, encoder: Encoder) -> dict[str, Embedded]:
    """Embed the training (reference), validation and test samples of a run; references have one view."""
    move(encoder, run.device)
    return {
        name: embed(run, encoder, getattr(run.splits, name), views=() if name == "train" else further_views(run))
        for name in Splits._fields
    }


def similarity_means(run: Run, kernel: Kernel, test: Embedded, reference: Embedded) -> ParzenMeans:
    """Return the mean similarities that the decision rules are functions of, with `inference.references`.

    The similarity of a test sample with several views is the mean over them. The run's device computes them; all tensors given
    and returned are on the CPU, and the kernel stays where it is.
    """
    number = run.settings["inference"]["references"]
    labels, z_reference, population = reference.y, reference.z, None
    if number != "all" and number < len(labels):
        items, population = sample_references(labels, number, run.id.seed)
        labels, z_reference = labels[items], z_reference[:, items]
    kernel = copy.deepcopy(kernel).to(run.device)
    given = (z_reference.to(run.device), labels, population)
    classes = max(run.conditions, 2)
    means = mean_of_views(*(parzen_means(kernel, z.to(run.device), *given, classes=classes) for z in test.views))
    return ParzenMeans(*(part.cpu() for part in means))


def save_embedded(path: str | Path, embedded: Mapping[str, Embedded]) -> None:
    """Write the tensors `z_<split>`, `y_<split>` and, where there are any, `z_views_<split>` as a safetensors file."""
    tensors = {
        f"{field}_{name}": tensor.contiguous() if field != "y" else tensor.clone()  # splits may share labels
        for name, part in embedded.items()
        for field, tensor in part._asdict().items()
        if tensor is not None
    }
    write_whole(Path(path), save(tensors))


def load_embedded(path: str | Path) -> dict[str, Embedded]:
    """Read the splits that `save_embedded` wrote."""
    tensors = load_tensors(path)
    return {
        name: Embedded(tensors[f"z_{name}"], tensors[f"y_{name}"], tensors.get(f"z_views_{name}"))
        for name in Splits._fields
    }
