"""The outputs of trained models for the samples of a run: embeddings, logits and the votes of reference samples."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor, nn

from clai.batches import Items, Splits, Vectors
from clai.checkpoints import write_whole
from clai.encoders import Encoder, place
from clai.inference import ParzenMeans, mean_of_views, parzen_means, sample_references
from clai.kernels import Kernel
from clai.tensors import load_tensors
from clai.trainer import Precision, precision_context
from replication.models.run import Run

# Items whose output is computed at once.
_BLOCK = 512


class Embedded(NamedTuple):
    """Embeddings (K, N, L) and labels (N,) of one split, on the CPU; embeddings of the mirrored images where they vote too."""

    z: Tensor
    y: Tensor
    z_mirrored: Tensor | None = None

    def vectors(self) -> Vectors:
        """Return the embeddings of all conditions side by side, (N, K L), in double precision."""
        return Vectors(self.z.permute(1, 0, 2).flatten(1).double(), self.y)


def draw_items(items: Items, count: int | None, seed: int) -> Tensor:
    """Return the positions of at most `count` items, drawn with the seed; of all in order if count is None."""
    if count is None:
        return torch.arange(len(items))
    return torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))[:count]


@torch.no_grad()
def outputs(
    module: nn.Module, items: Items, precision: Precision, positions: Tensor, dim: int = 0, mirrored: bool = False
) -> Tensor:
    """Return a module's outputs for items without augmentation, or for mirrored images, joined along `dim`, on the CPU."""
    module.eval()
    device = next(module.parameters()).device
    blocks = []
    for block in positions.split(_BLOCK):
        x = items.batch(block, None)[0]
        with precision_context(device, precision):
            blocks.append(module(x.flip(-1) if mirrored else x).cpu())
    return torch.cat(blocks, dim)


def labels_of(items: Items, positions: Tensor) -> Tensor:
    """Return the labels of all samples of items, (samples,), on the CPU."""
    return torch.cat([items.batch(block, None)[1].cpu() for block in positions.split(_BLOCK)])


def embed(
    encoder: nn.Module, items: Items, precision: Precision, positions: Tensor | None = None, mirror: bool = False
) -> Embedded:
    """Embed all items, or those at the positions, without augmentation; with `mirror`, the mirrored images too."""
    rows = torch.arange(len(items)) if positions is None else positions
    z = outputs(encoder, items, precision, rows, dim=1)
    z_mirrored = outputs(encoder, items, precision, rows, dim=1, mirrored=True) if mirror else None
    return Embedded(z, items.labels if positions is None else labels_of(items, positions), z_mirrored)


def embed_splits(run: Run, encoder: Encoder) -> dict[str, Embedded]:
    """Embed the training (reference), validation and test samples of a run; references are never mirrored."""
    place(encoder, run.device)
    return {
        name: embed(encoder, getattr(run.splits, name), run.training.precision, mirror=run.mirror and name != "train")
        for name in Splits._fields
    }


def similarity_means(run: Run, kernel: Kernel, test: Embedded, reference: Embedded) -> ParzenMeans:
    """Return the mean similarities that the decision rules are functions of, on the CPU, with `inference.references`."""
    number = run.settings["inference"]["references"]
    labels, z_reference, population = reference.y, reference.z, None
    if number != "all" and number < len(labels):
        items, population = sample_references(labels, number, run.id.seed)
        labels, z_reference = labels[items], z_reference[:, items]
    return means_of_views(kernel, test, z_reference, labels, population, max(run.conditions, 2))


def means_of_views(
    kernel: Kernel,
    test: Embedded,
    z_reference: Tensor,
    labels: Tensor,
    population: Tensor | None,
    classes: int | None = None,
) -> ParzenMeans:
    """Return `parzen_means`; the similarity of a test sample with a mirrored embedding is the mean over both."""
    views = [z for z in (test.z, test.z_mirrored) if z is not None]
    means = [parzen_means(kernel, z, z_reference, labels, population, classes=classes) for z in views]
    return means[0] if len(means) == 1 else mean_of_views(*means)


@torch.no_grad()
def coordinates(kernel: Kernel, z: Tensor) -> Tensor:
    """Return embeddings (K, N, L) in coordinates in which distances order pairs as the kernel does, side by side (N, K D)."""
    return kernel.coordinates(z).transpose(0, 1).flatten(1)


def save_embedded(path: str | Path, embedded: Mapping[str, Embedded]) -> None:
    """Write the tensors `z_<split>`, `y_<split>` and, where there are any, `z_mirrored_<split>` as a safetensors file."""
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
        name: Embedded(tensors[f"z_{name}"], tensors[f"y_{name}"], tensors.get(f"z_mirrored_{name}"))
        for name in Splits._fields
    }
