"""Collaborative Learning: its schedules and its step.

Algorithm 3 takes the classes one after another, reshuffles for each, and compares an anchor batch with every later batch. Two
settings span the alternatives (`TrainingSettings.schedule`, `TrainingSettings.references`):

* `sequential` or `joint`: one class at a time, or all C at once from one trunk pass, as a (C, B, B) tensor (section VII).
* `all` or n: every later batch as reference, or n of them.

With `all`, a step has the gradient of the printed algorithm at less cost. The printed one backpropagates through the anchor's
graph once per reference. Gradients are linear in the signal that enters a graph. A step therefore treats the anchor's
embedding as a leaf, lets the references add up their gradients there, and goes through the anchor's graph once at the end.

With n, an epoch cuts the shuffled items into groups of n + 1 batches, an anchor and its references, and embeds each group in
one pass. Each item is thus embedded at most once a pass over the data, so that the cost is linear, and BatchNorm normalises
anchor and references alike.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from clailearn.alignment import AlignmentLoss, alignment_loss, alignment_scores
from clailearn.checkpoints import Checkpoint
from clailearn.encoders import Encoder
from clailearn.errors import InputError
from clailearn.kernels import Kernel
from clailearn.parzen import Memory, ParzenLoss
from clailearn.trainer import Epoch, Figures, Items, TrainingSettings, precision_context, train


def collaborative_learning(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    conditions: int,
    settings: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
    after_pass: Callable[[int | None], None] | None = None,
) -> list[Epoch]:
    """Train an encoder and the kernel's metric.

    Args:
        encoder, kernel: trained in place.
        data: training items.
        conditions: C for a multiclass task, also if the encoder has no conditions; 1 for a binary one.
        settings, validate, checkpoint, after_pass: as `clailearn.trainer.train` takes them.

    Returns:
        The history of `train`: the loss and, of `AlignmentLoss`, both alignments, as means over steps and conditions.

    Raises:
        DivergenceError: see `clailearn.trainer.train`.
        InputError: there are fewer than two batches, or the Parzen loss is asked of one class or all references at a time.
    """
    if len(data) < 2 * settings.batch_size:
        raise InputError(
            f"training.batch_size {settings.batch_size} makes {len(data) // settings.batch_size} batches of {len(data)} items; "
            "at least 2 are needed: give a smaller number"
        )
    model = nn.ModuleList([encoder, kernel])
    step = partial(collaborative_step, encoder, kernel, data, conditions, settings)
    if settings.loss == "parzen":
        if settings.schedule != "joint" or settings.references == "all":
            raise InputError(
                f"training.schedule, training.references: found {settings.schedule} and {settings.references}, expected joint "
                "and a number for the Parzen loss, whose step has all classes and samples at once. Correct these settings"
            )
        model.append(memory := Memory(settings.memory, encoder.head.weight.shape[1]).to(encoder.head.weight))
        step = partial(parzen_step, encoder, kernel, memory, data, settings)
    return train(
        model,
        data,
        step,
        settings,
        validate,
        checkpoint,
        batches=_groups(len(data), settings),
        passes=_passes(conditions, settings),
        after_pass=after_pass,
    )


def _passes(conditions: int, settings: TrainingSettings) -> list[int | None]:
    """Return the condition of each pass over the data in an epoch; None stands for all at once."""
    if settings.schedule == "joint" or settings.conditioning is None or conditions == 1:
        return [None]
    return list(range(conditions))


def _groups(items: int, settings: TrainingSettings) -> list[slice]:
    """Return the place of the items of each step, an anchor batch and its references, in the shuffled order.

    The references are all later batches, or a group is n + 1 batches that no other group has.
    """
    size, batches = settings.batch_size, items // settings.batch_size
    if settings.references == "all":
        return [slice(anchor * size, batches * size) for anchor in range(batches - 1)]
    group = min(settings.references + 1, batches)
    return [slice(anchor * size, (anchor + group) * size) for anchor in range(0, batches - group + 1, group)]


def collaborative_step(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    conditions: int,
    settings: TrainingSettings,
    items: Tensor,
    condition: int | None,
    generator: torch.Generator,
) -> Figures:
    """Compare an anchor batch with its references: leave gradients in the parameters and return the figures.

    Args:
        encoder, kernel, data, conditions, settings: as in `collaborative_learning`.
        items: (n,), the anchor batch and then each reference batch.
        condition: the class in question; None for all at once.
        generator: draws augmentation, and samples where `samples_per_class` bounds them.
    """
    blocks = items.split(settings.batch_size)
    compare = partial(_compare, AlignmentLoss(kernel, settings.target, max(conditions, 2), settings.pair_weighting))
    scale = 1 / (len(blocks) - 1) if settings.reference_reduction == "mean" else 1.0
    rows = []
    if settings.references == "all":
        # Embed one reference at a time and free its graph before the next.
        ((embedded, labels),) = _embed(encoder, data, settings, blocks[:1], condition, generator)
        anchor = embedded.detach().requires_grad_()
        for block in blocks[1:]:
            (reference,) = _embed(encoder, data, settings, (block,), condition, generator)
            loss, figures = compare((anchor, labels), reference)
            (loss * scale).backward()
            rows.append(figures)
        embedded.backward(anchor.grad)
    else:
        # Embed the anchor and all references in one pass.
        first, *references = _embed(encoder, data, settings, blocks, condition, generator)
        total = torch.zeros((), device=first[0].device, dtype=first[0].dtype)
        for reference in references:
            loss, figures = compare(first, reference)
            total = total + loss * scale
            rows.append(figures)
        total.backward()
    return {key: torch.stack([row[key] for row in rows]).mean() for key in rows[0]}


def parzen_step(
    encoder: Encoder,
    kernel: Kernel,
    memory: Memory,
    data: Items,
    settings: TrainingSettings,
    items: Tensor,
    _: int | None,
    generator: torch.Generator,
) -> Figures:
    """Score the Parzen rule on a group of batches, each sample against all others of other items, and those of the memory.

    Leaves gradients in the parameters, and the samples in the memory. Arguments as those of `collaborative_step`.
    """
    x, labels = data.batch(items, generator)
    numbers = items.repeat_interleave(torch.tensor(data.sizes(list(items.split(1))))).to(labels.device)
    drawn = class_draw(labels, settings.samples_per_class, generator)
    if isinstance(drawn, Tensor):
        drawn = drawn.sort().values  # not in the order of classes, in which the memory would forget one class first
    labels, numbers = labels[drawn], numbers[drawn]
    with precision_context(encoder.head.weight.device, settings.precision):
        features = encoder.features(x)[drawn]
    past, past_labels, past_numbers = memory.held()
    embedded = encoder.head(torch.cat([features, past]))
    if settings.conditioning is None:
        embedded = embedded[0]
    left_out = numbers[:, None] == torch.cat([numbers, past_numbers])
    references = embedded, torch.cat([labels, past_labels])
    loss = ParzenLoss(kernel)(embedded[..., : len(labels), :], labels, *references, left_out)
    loss.backward()
    memory.keep(features, labels, numbers)
    return {"loss": loss.detach()}


def _embed(
    encoder: Encoder,
    data: Items,
    settings: TrainingSettings,
    blocks: tuple[Tensor, ...],
    condition: int | None,
    generator: torch.Generator,
) -> list[tuple[Tensor, Tensor]]:
    """Embed blocks of items in one pass; return embeddings (K, n, L) and labels (n,) of the samples drawn of each.

    An encoder without conditions has embeddings (n, L). Under the condition of one class the labels tell this class (1) from
    the rest (0).
    """
    x, labels = data.batch(torch.cat(blocks), generator)
    with precision_context(encoder.head.weight.device, settings.precision):
        embedded = encoder(x, condition)
    if settings.conditioning is None:
        embedded = embedded[0]
    sizes = data.sizes(list(blocks))
    parts = []
    for z, y in zip(embedded.split(sizes, dim=-2), labels.split(sizes), strict=True):
        drawn = class_draw(y, settings.samples_per_class, generator)
        parts.append((z[..., drawn, :], y[drawn] if condition is None else (y[drawn] == condition).long()))
    return parts


def _compare(
    loss: AlignmentLoss, anchor: tuple[Tensor, Tensor], reference: tuple[Tensor, Tensor]
) -> tuple[Tensor, Figures]:
    """Return the loss, a mean over conditions, of an anchor and a reference batch, and the figures of the history."""
    compared = loss.compare(*anchor, *reference)
    value = alignment_loss(*compared).mean()
    with torch.no_grad():
        raw, centred = alignment_scores(*compared)
    return value, {"loss": value.detach(), "alignment": raw.mean(), "centred_alignment": centred.mean()}


def class_draw(labels: Tensor, most: int | None, generator: torch.Generator) -> Tensor | slice:
    """Return the samples of a batch that enter the loss: all, or a draw of at most `most` of each class."""
    if most is None:
        return slice(None)
    shuffled = torch.randperm(len(labels), generator=generator).to(labels.device)
    return torch.cat([shuffled[labels[shuffled] == k][:most] for k in labels.unique()])


def encoder_passes(items: int, conditions: int, settings: TrainingSettings) -> float:
    """Return the items that an epoch of `collaborative_learning` sends through the encoder and back, relative to `items`."""
    embedded = sum(group.stop - group.start for group in _groups(items, settings))
    return len(_passes(conditions, settings)) * embedded / items
