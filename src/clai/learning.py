"""Collaborative Learning: its schedules and steps; and training on single batches, for objectives to compare it with.

Algorithm 3 takes the classes one after another, reshuffles for each, and compares an anchor batch with every later batch. Two
settings span the alternatives (`TrainingSettings.schedule`, `TrainingSettings.references`):

* `sequential` or `joint`: one class at a time, or all C at once from one trunk pass, as a (C, B, B) tensor (line 814).
* `all` or n: every later batch as reference, or n of them.

With `all`, a step has the gradient of the printed algorithm at less cost. The printed one backpropagates through the anchor's
graph once per reference. Gradients are linear in the signal that enters a graph. A step therefore treats the anchor's
embedding as a leaf, lets the references add up their gradients there, and goes through the anchor's graph once at the end.

With n, an epoch cuts the shuffled items into groups of n + 1 batches, an anchor and its references, and embeds each group in
one pass: each item is embedded once an epoch, so the cost is linear, and BatchNorm normalises anchor and references alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from clai.alignment import alignment_loss, alignment_scores, balanced, one_vs_rest, target_matrix
from clai.batches import Items
from clai.checkpoints import Checkpoint
from clai.encoders import Encoder
from clai.errors import InputError
from clai.kernels import Kernel
from clai.trainer import Epoch, Figures, Steps, Trainer, TrainingSettings, compiled, precision_context


def collaborative_learning(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    conditions: int,
    settings: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train an encoder and the kernel's metric by alignment.

    Args:
        encoder, kernel: trained in place.
        data: training items.
        conditions: C for a multiclass task, 1 for a binary one.
        settings, validate, checkpoint: as `clai.trainer.Trainer` takes them.

    Returns:
        The history, a row an epoch: epoch, loss, alignment, centred_alignment (means over steps and conditions), pairs
        (similarities computed), learning_rate (of the step to come), and the figures of `validate`.

    Raises:
        DivergenceError: see `clai.trainer.Trainer.train`.
        InputError: there are fewer than two batches.
    """
    batches = len(data) // settings.batch_size
    if batches < 2:
        raise InputError(
            f"training.batch_size {settings.batch_size} makes {batches} batches of {len(data)} items; at least 2 are needed: "
            "give a smaller number"
        )
    model = nn.ModuleList([encoder, kernel])
    view = compiled(encoder, settings)
    groups = _groups(batches, settings.references)
    rounds = _rounds(conditions, settings)

    def steps(generator: torch.Generator) -> Steps:
        context = Context(view, kernel, data, conditions, settings, generator)
        for condition in rounds:
            order = torch.randperm(len(data), generator=generator)[: batches * settings.batch_size]
            blocks = order.split(settings.batch_size)
            for group in groups:
                yield Step(context, blocks[group.start : group.stop], condition)

    return Trainer(model, steps, len(rounds) * len(groups), settings, validate, checkpoint).train()


def _rounds(conditions: int, settings: TrainingSettings) -> list[int | None]:
    """Return the conditions of each pass over the data; None stands for all at once."""
    return [None] if settings.schedule == "joint" else list(range(conditions))


def _groups(batches: int, references: int | Literal["all"]) -> list[range]:
    """Return the batches of each step, the anchor first: with every later batch, or in disjoint groups of n + 1."""
    if references == "all":
        return [range(anchor, batches) for anchor in range(batches - 1)]
    size = min(references + 1, batches)
    return [range(anchor, anchor + size) for anchor in range(0, batches - size + 1, size)]


@dataclass(frozen=True)
class Context:
    """Hold what all steps of a training share.

    Args:
        encoder, kernel: in training.
        data: training items.
        conditions: C for a multiclass task, 1 for a binary one.
        settings: of the training.
        generator: draws augmentation, and samples where `samples_per_class` bounds them.
    """

    encoder: Encoder
    kernel: Kernel
    data: Items
    conditions: int
    settings: TrainingSettings
    generator: torch.Generator


@dataclass(frozen=True)
class Step:
    """Compare an anchor batch with its references, when called: leave gradients in the parameters and return the figures.

    Args:
        context: of the training.
        blocks: items of the anchor batch, then of each reference batch.
        condition: the class in question; None for all at once.
    """

    context: Context
    blocks: tuple[Tensor, ...]
    condition: int | None

    def __call__(self) -> Figures:
        one_by_one = self.context.settings.references == "all"
        figures = self._one_by_one() if one_by_one else self._together()
        summary = {key: torch.stack([row[key] for row in figures]).mean() for key in figures[0]}
        summary["pairs"] = summary["pairs"] * len(figures)
        return summary

    def _one_by_one(self) -> list[Figures]:
        """Embed one reference at a time and free its graph before the next."""
        ((embedded, signs),) = self._embed(self.blocks[:1])
        anchor = embedded.detach().requires_grad_()
        rows = []
        for block in self.blocks[1:]:
            (reference,) = self._embed((block,))
            loss, figures = self._compare((anchor, signs), reference)
            (loss * self._scale).backward()
            rows.append(figures)
        embedded.backward(anchor.grad)
        return rows

    def _together(self) -> list[Figures]:
        """Embed the anchor and all references in one pass."""
        anchor, *references = self._embed(self.blocks)
        total = torch.zeros((), device=anchor[0].device, dtype=anchor[0].dtype)
        rows = []
        for reference in references:
            loss, figures = self._compare(anchor, reference)
            total = total + loss * self._scale
            rows.append(figures)
        total.backward()
        return rows

    @property
    def _scale(self) -> float:
        return 1 / (len(self.blocks) - 1) if self.context.settings.reference_reduction == "mean" else 1.0

    def _embed(self, blocks: tuple[Tensor, ...]) -> list[tuple[Tensor, Tensor]]:
        """Embed blocks of items in one pass; return embeddings (K, n, L) and signs (K, n) of the samples drawn of each."""
        encoder, data, settings = self.context.encoder, self.context.data, self.context.settings
        x, labels = data.batch(torch.cat(blocks), self.context.generator)
        with precision_context(encoder.head.weight.device, settings.precision):
            embedded = encoder(x, self.condition)
        signs = one_vs_rest(labels, self.context.conditions).to(embedded.dtype)
        if self.condition is not None:
            signs = signs[self.condition : self.condition + 1]
        sizes = data.sizes(list(blocks))
        parts = []
        for z, y, s in zip(embedded.split(sizes, dim=1), labels.split(sizes), signs.split(sizes, dim=1), strict=True):
            drawn = class_draw(y, settings.samples_per_class, self.context.generator)
            parts.append((z[:, drawn], s[:, drawn]))
        return parts

    def _compare(self, anchor: tuple[Tensor, Tensor], reference: tuple[Tensor, Tensor]) -> tuple[Tensor, Figures]:
        """Return the loss, a mean over conditions, of an anchor and a reference batch, and the figures of the history."""
        (z_anchor, y_anchor), (z_reference, y_reference) = anchor, reference
        similarity = self.context.kernel(z_anchor, z_reference)
        target = target_matrix(y_anchor, y_reference, self.context.settings.target)
        if self.context.settings.pair_weighting == "balanced":
            target = balanced(target, y_anchor, y_reference)
        loss = alignment_loss(similarity, target).mean()
        with torch.no_grad():
            raw, centred = alignment_scores(similarity, target)
            figures = {"loss": loss.detach(), "alignment": raw.mean(), "centred_alignment": centred.mean()}
        figures["pairs"] = torch.tensor(float(similarity.numel()))
        return loss, figures


def class_draw(labels: Tensor, most: int | None, generator: torch.Generator) -> Tensor | slice:
    """Return the samples of a batch that enter the loss: all, or a draw of at most `most` of each class."""
    if most is None:
        return slice(None)
    shuffled = torch.randperm(len(labels), generator=generator).to(labels.device)
    return torch.cat([shuffled[labels[shuffled] == k][:most] for k in labels.unique()])


def batchwise_learning(
    model: nn.Module,
    objective: Callable[[Any, Tensor], Tensor],
    data: Items,
    settings: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
    views: int = 1,
) -> list[Epoch]:
    """Train on a loss of single batches, drawing as many items a step as a CLaI group of anchor and references.

    Args:
        model: trained in place.
        objective: loss of the encoder input and the labels (samples,) of a batch.
        data, settings, validate, checkpoint: as in `collaborative_learning`.
        views: how often an item is in its batch, each time with an augmentation of its own.

    Returns:
        The history, a row an epoch: epoch, loss, learning_rate and the figures of `validate`.

    Raises:
        DivergenceError: see `clai.trainer.Trainer.train`.
    """
    group = group_size(settings, len(data))

    def steps(generator: torch.Generator) -> Steps:
        def step(items: Tensor) -> Figures:
            loss = objective(*data.batch(items.repeat(views), generator))
            loss.backward()
            return {"loss": loss.detach()}

        order = torch.randperm(len(data), generator=generator)
        for items in order[: len(data) // group * group].split(group):
            yield partial(step, items)

    return Trainer(model, steps, len(data) // group, settings, validate, checkpoint).train()


def draw_shift(data: Items, settings: TrainingSettings) -> Tensor:
    """Return the correction of log-odds that were learned from draws of at most `samples_per_class` of each class.

    A classifier of such draws is one of all samples but for a constant a class (King & Zeng 2001): the logarithm of the class's
    share of all samples over its share of the draws. These are the draws of an epoch in an order drawn with the seed. The order
    of the data would not do: a batch of one class loses more samples to its draw than a mixed one. Shape (classes,), on the CPU.
    """
    classes = int(data.labels.max()) + 1
    if settings.samples_per_class is None:
        return torch.zeros(classes, dtype=torch.float64)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(settings.seed))
    blocks = order.split(group_size(settings, len(data)))
    counts = torch.stack(
        [torch.bincount(data.batch(block, None)[1].cpu(), minlength=classes) for block in blocks]
    ).double()
    drawn = counts.clamp_max(settings.samples_per_class)
    return counts.sum(0).log().log_softmax(0) - drawn.sum(0).log().log_softmax(0)


def group_size(settings: TrainingSettings, items: int) -> int:
    """Return the items of an anchor batch and its references, at most all items; `references: all` counts as one."""
    references = settings.references if isinstance(settings.references, int) else 1
    return min(settings.batch_size * (1 + references), items)


def encoder_passes(items: int, conditions: int, settings: TrainingSettings) -> float:
    """Return the items that an epoch of `collaborative_learning` sends through the encoder and back, relative to `items`."""
    groups = _groups(items // settings.batch_size, settings.references)
    embedded = sum(len(group) for group in groups) * settings.batch_size
    return len(_rounds(conditions, settings)) * embedded / items
