"""The outputs of trained models for the samples of a run: embeddings, logits and the votes of reference samples."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from clai.batches import Items, Splits
from clai.checkpoints import write_whole
from clai.encoders import Classifier, Encoder
from clai.experiments.run import Run
from clai.inference import ParzenMeans, parzen_means, sample_references
from clai.kernels import Kernel
from clai.trainer import Precision, precision_context

# Items whose output is computed at once.
_BLOCK = 512


class Embedded(NamedTuple):
    """Embeddings (K, N, L) and labels (N,) of one split, on the CPU."""

    z: Tensor
    y: Tensor

    def vectors(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the embeddings of all conditions side by side, (N, K L), and the labels (N,)."""
        return self.z.permute(1, 0, 2).flatten(1).double().numpy(), self.y.numpy()


def place(module: nn.Module, device: torch.device) -> None:
    """Move a module to a device, in the memory layout that convolutions prefer."""
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def draw_items(items: Items, count: int | None, seed: int) -> Tensor:
    """Return the positions of at most `count` items, drawn with the seed; of all in order if count is None."""
    if count is None:
        return torch.arange(len(items))
    return torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))[:count]


@torch.no_grad()
def outputs(module: nn.Module, items: Items, precision: Precision, positions: Tensor, dim: int = 0) -> Tensor:
    """Return a module's outputs for items without augmentation, joined along `dim`, on the CPU."""
    module.eval()
    device = next(module.parameters()).device
    blocks = []
    for block in positions.split(_BLOCK):
        with precision_context(device, precision):
            blocks.append(module(items.batch(block, None)[0]).cpu())
    return torch.cat(blocks, dim)


def labels_of(items: Items, positions: Tensor) -> Tensor:
    """Return the labels of all samples of items, (samples,), on the CPU."""
    return torch.cat([items.batch(block, None)[1].cpu() for block in positions.split(_BLOCK)])


def embed(encoder: Encoder, items: Items, precision: Precision, positions: Tensor | None = None) -> Embedded:
    """Embed all items, or those at the positions, without augmentation."""
    if positions is None:
        return Embedded(outputs(encoder, items, precision, torch.arange(len(items)), dim=1), items.labels)
    return Embedded(outputs(encoder, items, precision, positions, dim=1), labels_of(items, positions))


def embed_splits(run: Run, encoder: Encoder) -> dict[str, Embedded]:
    """Embed the training (reference), validation and test samples of a run."""
    place(encoder, run.device)
    return {name: embed(encoder, getattr(run.splits, name), run.training.precision) for name in Splits._fields}


def classifier_outputs(run: Run, classifier: Classifier) -> tuple[Embedded, Embedded]:
    """Return logits (1, N, C) and labels of the test and of the validation samples of a run."""
    place(classifier, run.device)
    test, val = (
        Embedded(
            outputs(classifier, items, run.training.precision, torch.arange(len(items))).unsqueeze(0), items.labels
        )
        for items in (run.splits.test, run.splits.val)
    )
    return test, val


def similarity_means(run: Run, kernel: Kernel, test: Embedded, reference: Embedded) -> ParzenMeans:
    """Return the mean similarities that the decision rules are functions of, computed on the CPU.

    References are all, or a sample of them where `inference.references` is a number; the run's seed draws it. Embeddings of an
    encoder without conditions serve all conditions.

    Raises:
        ValueError: the run has no block size.
    """
    if run.block is None:
        raise ValueError(f"{run.id}: block is None, expected a number of samples: open the run with inference.block")
    number, equal = run.settings["inference"]["references"], run.settings["inference"]["reference_shares"] == "equal"
    z, z_reference = (part.z.expand(run.conditions, -1, -1) for part in (test, reference))
    labels = reference.y
    if number == "all" or number >= len(labels):
        return parzen_means(kernel, z, z_reference, labels, run.block, equal=equal)
    items, population = sample_references(labels, number, run.id.seed)
    return parzen_means(kernel, z, z_reference[:, items], labels[items], run.block, population, equal)


def save_embedded(path: str | Path, embedded: Mapping[str, Embedded]) -> None:
    """Write embeddings and labels of all splits as a safetensors file with tensors `z_<split>` and `y_<split>`."""
    tensors = {f"z_{name}": part.z.contiguous() for name, part in embedded.items()}
    write_whole(Path(path), save(tensors | {f"y_{name}": part.y.contiguous() for name, part in embedded.items()}))


def load_embedded(path: str | Path) -> dict[str, Embedded]:
    """Read the splits that `save_embedded` wrote."""
    tensors = load_file(path)
    return {name: Embedded(tensors[f"z_{name}"], tensors[f"y_{name}"]) for name in Splits._fields}
