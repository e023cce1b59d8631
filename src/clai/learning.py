"""Collaborative Learning: the schedules, the optimisation and its checkpoints.

Algorithm 3 takes the classes one after another, reshuffles for each, and compares an anchor batch with every later batch. Two
settings span the alternatives (`Settings.schedule`, `Settings.references`):

* `sequential` or `joint`: one class at a time, or all C at once from one trunk pass, as a (C, B, B) tensor (line 814).
* `all` or n: every later batch as reference, or n of them.

With `all`, `_accumulate` gives the printed algorithm's gradient at less cost. The printed one backpropagates through the
anchor's graph once per reference. Gradients are linear in what flows into a node, so it is enough to treat the anchor's
embedding as a leaf, let the references add up their gradients there, and go through the anchor's graph once at the end.

With n, an epoch cuts the shuffled items into groups of n + 1 batches, an anchor and its references, and embeds each group in
one pass: each item is embedded once an epoch, so the cost is linear, and BatchNorm normalises anchor and references alike.
"""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from clai.alignment import Target, alignment_loss, alignment_scores, balanced, one_vs_rest, target_matrix
from clai.batches import Items
from clai.checkpoints import Checkpoint, Draws, global_generators, set_global_generators
from clai.encoders import Encoder
from clai.errors import InputError
from clai.kernels import Kernel
from clai.stability import FAILURES, divergence

logger = logging.getLogger("clai")

Precision = Literal["bfloat16", "float32", "float64"]
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Settings:
    """How to train; config.yaml's `training` block says what each means and why it has its value."""

    epochs: int
    batch_size: int
    optimiser: Literal["adamw", "sgd"]
    learning_rate: float
    weight_decay: float
    learning_rate_schedule: Literal["one_cycle", "constant"]
    warmup: float
    precision: Precision
    compile: bool
    schedule: Literal["sequential", "joint"]
    references: int | Literal["all"]
    reference_reduction: Literal["mean", "sum"]
    pair_weighting: Literal["none", "balanced"]
    samples_per_class: int | None
    target: Target
    seed: int


Epoch = dict[str, float]
"""One row of the history."""


def precision_context(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Autocast to bfloat16, or nothing to do."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def collaborative_learning(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    conditions: int,
    settings: Settings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train an encoder, and the kernel's metric with it, by alignment.

    Args:
        encoder, kernel: trained in place.
        data: training items.
        conditions: C for a multiclass task, 1 for a binary one.
        settings: how.
        validate: called after each epoch; its figures join the history. It may raise FloatingPointError for divergence.
        checkpoint: where to save the state, and to resume from; None to keep none.

    Returns:
        The history, a row an epoch: epoch, loss, alignment, centred_alignment (means over steps and conditions), pairs
        (similarities computed), learning_rate (that of the step to come), and what `validate` gives.

    Raises:
        DivergenceError: the loss, the weights or what `validate` gives are not finite, the loss is above `EXPLODED`, or a step or
            `validate` failed of such numbers; names epoch, step, learning rate and the last good checkpoint.
        InputError: there are fewer than two batches.
    """
    per_step = conditions if settings.schedule == "joint" else 1
    batches = len(data) // settings.batch_size
    if batches < 2:
        raise InputError(
            f"training.batch_size {settings.batch_size} makes {batches} batches of {len(data)} items; at least 2 are needed: "
            "give a smaller number"
        )

    def steps(generator: torch.Generator) -> Iterator[Callable[[], dict[str, Tensor]]]:
        for condition in [None] if settings.schedule == "joint" else range(conditions):
            order = torch.randperm(len(data), generator=generator)[: batches * settings.batch_size]
            blocks = list(order.split(settings.batch_size))
            if settings.references == "all":
                for t in range(batches - 1):
                    yield (
                        lambda t=t, condition=condition, blocks=blocks: _accumulate(  # type: ignore[misc]
                            encoder,
                            kernel,
                            data,
                            blocks[t],
                            blocks[t + 1 :],
                            conditions,
                            condition,
                            settings,
                            generator,
                        )
                    )
            else:
                size = min(settings.references + 1, batches)
                for first in range(0, batches - size + 1, size):
                    yield (
                        lambda first=first, size=size, condition=condition, blocks=blocks: _grouped(  # type: ignore[misc]
                            encoder,
                            kernel,
                            data,
                            blocks[first : first + size],
                            conditions,
                            condition,
                            settings,
                            generator,
                        )
                    )

    groups = batches // min(settings.references + 1, batches) if settings.references != "all" else batches - 1
    steps_per_epoch = groups * (conditions // per_step)
    modules = nn.ModuleList([encoder, kernel])
    encoder = compiled(encoder, settings)
    return _run(modules, steps, steps_per_epoch, settings, validate, checkpoint)


def _signs(labels: Tensor, conditions: int, condition: int | None, dtype: torch.dtype) -> Tensor:
    signs = one_vs_rest(labels, conditions).to(dtype)
    return signs if condition is None else signs[condition : condition + 1]


def class_draw(labels: Tensor, most: int | None, generator: torch.Generator) -> Tensor | slice:
    """Which samples of a batch enter the loss: all, or at most so many of each class, drawn."""
    if most is None:
        return slice(None)
    shuffled = torch.randperm(len(labels), generator=generator).to(labels.device)
    return torch.cat([shuffled[labels[shuffled] == k][:most] for k in labels.unique()])


def _compare(
    kernel: Kernel, anchor: Tensor, reference: Tensor, anchor_signs: Tensor, reference_signs: Tensor, settings: Settings
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss (mean over conditions) of an anchor and a reference batch, and what the history keeps of it."""
    similarity = kernel(anchor, reference)
    target = target_matrix(anchor_signs, reference_signs, settings.target)
    if settings.pair_weighting == "balanced":
        target = balanced(target, anchor_signs, reference_signs)
    loss = alignment_loss(similarity, target).mean()
    with torch.no_grad():
        raw, centred = alignment_scores(similarity, target)
        kept = {"loss": loss.detach(), "alignment": raw.mean(), "centred_alignment": centred.mean()}
    kept["pairs"] = torch.tensor(float(similarity.numel()))
    return loss, kept


def _accumulate(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    anchor_items: Tensor,
    reference_blocks: list[Tensor],
    conditions: int,
    condition: int | None,
    settings: Settings,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Gradients of an anchor batch against all later ones, each reference's graph freed before the next is built."""
    x, labels = data.batch(anchor_items, generator)
    chosen = class_draw(labels, settings.samples_per_class, generator)
    embedded, labels = _embed(encoder, x, condition, settings.precision)[:, chosen], labels[chosen]
    anchor = embedded.detach().requires_grad_()
    anchor_signs = _signs(labels, conditions, condition, anchor.dtype)
    scale = 1 / len(reference_blocks) if settings.reference_reduction == "mean" else 1.0
    totals: list[dict[str, Tensor]] = []
    for items in reference_blocks:
        x, labels = data.batch(items, generator)
        chosen = class_draw(labels, settings.samples_per_class, generator)
        reference, labels = _embed(encoder, x, condition, settings.precision)[:, chosen], labels[chosen]
        signs = _signs(labels, conditions, condition, anchor.dtype)
        loss, kept = _compare(kernel, anchor, reference, anchor_signs, signs, settings)
        (loss * scale).backward()
        totals.append(kept)
    embedded.backward(anchor.grad)
    return _summary(totals)


def _grouped(
    encoder: Encoder,
    kernel: Kernel,
    data: Items,
    blocks: list[Tensor],
    conditions: int,
    condition: int | None,
    settings: Settings,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Gradients of an anchor batch against its references, all embedded in one pass."""
    x, labels = data.batch(torch.cat(blocks), generator)
    embedded = _embed(encoder, x, condition, settings.precision)
    sizes = data.sizes(blocks)
    parts = []
    for z, own in zip(embedded.split(sizes, dim=1), labels.split(sizes), strict=True):
        chosen = class_draw(own, settings.samples_per_class, generator)
        parts.append((z[:, chosen], _signs(own[chosen], conditions, condition, embedded.dtype)))
    (anchor, anchor_signs), *references = parts
    scale = 1 / len(references) if settings.reference_reduction == "mean" else 1.0
    total = torch.zeros((), device=embedded.device, dtype=embedded.dtype)
    totals = []
    for reference, signs in references:
        loss, kept = _compare(kernel, anchor, reference, anchor_signs, signs, settings)
        total = total + loss * scale
        totals.append(kept)
    total.backward()
    return _summary(totals)


def _embed(encoder: Encoder, x: Any, condition: int | None, precision: Precision) -> Tensor:
    with precision_context(encoder.head.weight.device, precision):
        return encoder(x, condition)


def _summary(totals: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    summary = {key: torch.stack([kept[key] for kept in totals]).mean() for key in totals[0]}
    summary["pairs"] = summary["pairs"] * len(totals)
    return summary


def batchwise_learning(
    model: nn.Module,
    objective: Callable[[Any, Tensor], Tensor],
    data: Items,
    settings: Settings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Train on a loss of single batches, drawing as many items a step as a CLaI group of anchor and references.

    Args:
        model: trained in place.
        objective: loss of the encoder input and the labels (samples,) of a batch.

    Other arguments, returns and errors as `collaborative_learning`; the history has loss and learning_rate.
    """
    group = group_size(settings, len(data))

    def steps(generator: torch.Generator) -> Iterator[Callable[[], dict[str, Tensor]]]:
        order = torch.randperm(len(data), generator=generator)
        for items in order[: len(data) // group * group].split(group):

            def step(items: Tensor = items) -> dict[str, Tensor]:
                loss = objective(*data.batch(items, generator))
                loss.backward()
                return {"loss": loss.detach()}

            yield step

    return _run(model, steps, len(data) // group, settings, validate, checkpoint)


def compiled(module: Module, settings: Settings) -> Module:
    """The module, or a compiled view of it that shares its parameters."""
    return cast(Module, torch.compile(module)) if settings.compile else module


def draw_shift(data: Items, settings: Settings) -> Tensor:
    """What log-odds learned from draws of at most `samples_per_class` of each class lack, (classes,), on the CPU.

    A classifier of such draws is one of all samples but for a constant a class (King & Zeng 2001): the logarithm of the class's
    share of all samples over its share of the draws, here those of batches of items in order.
    """
    group = group_size(settings, len(data))
    blocks = list(torch.arange(len(data)).split(group))
    labels, classes = data.labels.cpu(), int(data.labels.max()) + 1
    counts = torch.stack([torch.bincount(own, minlength=classes) for own in labels.split(data.sizes(blocks))]).double()
    drawn = counts if settings.samples_per_class is None else counts.clamp_max(settings.samples_per_class)
    return counts.sum(0).log().log_softmax(0) - drawn.sum(0).log().log_softmax(0)


def group_size(settings: Settings, items: int) -> int:
    """Items of an anchor batch and its reference batches, but no more than there are; `references: all` counts as one."""
    references = settings.references if isinstance(settings.references, int) else 1
    return min(settings.batch_size * (1 + references), items)


def encoder_passes(items: int, conditions: int, settings: Settings) -> float:
    """Items that an epoch of `collaborative_learning` sends through the encoder and back, as a multiple of `items`."""
    batches = items // settings.batch_size
    if settings.references == "all":
        embedded = (batches - 1) + batches * (batches - 1) // 2  # each anchor once, each pair's reference
    else:
        size = min(settings.references + 1, batches)
        embedded = batches // size * size
    rounds = conditions if settings.schedule == "sequential" else 1
    return rounds * embedded * settings.batch_size / items


def _run(
    model: nn.Module,
    steps: Callable[[torch.Generator], Iterator[Callable[[], dict[str, Tensor]]]],
    steps_per_epoch: int,
    settings: Settings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
) -> list[Epoch]:
    """Epochs of optimisation steps, with validation, history and checkpoints; what all objectives share."""
    optimiser = _optimiser(model, settings)
    scheduler = _scheduler(optimiser, settings, steps_per_epoch)
    generator = torch.Generator().manual_seed(settings.seed)
    device = next(model.parameters()).device
    history: list[Epoch] = []
    kept: list[dict[str, Tensor]] = []  # what the steps of this epoch gave
    rates: list[float] = []  # and the learning rate of each
    saved = None if checkpoint is None else checkpoint.load()
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        scheduler.load_state_dict(saved["scheduler"])
        history, rates = saved["history"], saved["rates"]
        kept = [dict(zip(saved["kept"], row, strict=True)) for row in zip(*saved["kept"].values(), strict=True)]
    draws = Draws(steps(generator), generator, saved and saved["draws"])

    def check(error: Exception | None = None) -> None:
        advice = "lower training.learning_rate"
        if checkpoint is not None:
            advice += f". The last good state {checkpoint.where()}"
        losses = [row["loss"] for row in kept]
        found = divergence(model, losses, rates, len(history) + 1, steps_per_epoch, advice, error)
        if found is not None:
            raise found from error

    def state() -> dict[str, Any]:
        if kept:
            check()  # so that what is saved is good
        return {
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "scheduler": scheduler.state_dict(),
            "global": global_generators(device),
            "draws": draws.state(),
            "history": history,
            "kept": {key: torch.stack([row[key] for row in kept]) for key in (kept[0] if kept else ())},
            "rates": rates,
        }

    while len(history) < settings.epochs:
        epoch = len(history) + 1
        started = time.perf_counter()
        model.train()
        # Dropout draws from the global generator: seeded anew each epoch, unless resumed in the middle of one.
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(settings.seed + epoch)
            if saved is not None and draws.position > 0:
                set_global_generators(saved["global"], device)
            saved = None
            for step in draws:
                optimiser.zero_grad(set_to_none=True)
                rates.append(float(optimiser.param_groups[0]["lr"]))
                try:
                    kept.append(step())
                except FAILURES as error:
                    check(error)
                    raise
                optimiser.step()
                scheduler.step()
                if checkpoint is not None:
                    checkpoint.offer(f"step {draws.position} of {steps_per_epoch} of epoch {epoch}", state)
        check()
        means = {key: float(torch.stack([row[key].float() for row in kept]).mean()) for key in kept[0]}
        if "pairs" in means:
            means["pairs"] *= len(kept)
        rate = float(optimiser.param_groups[0]["lr"])
        model.eval()
        try:
            measured = validate()
            if not all(map(math.isfinite, measured.values())):
                raise FloatingPointError(f"validation gives {measured}")
        except FAILURES as error:
            check(error)
            raise
        row: Epoch = {"epoch": epoch, **means, "learning_rate": rate, **measured}
        seconds = time.perf_counter() - started
        history.append(row)
        shown = "  ".join(f"{key} {value:.4g}" for key, value in row.items() if key not in ("epoch", "pairs"))
        logger.info("epoch %d/%d  %s  (%.1f s)", epoch, settings.epochs, shown, seconds)
        draws, kept, rates = Draws(steps(generator), generator, None), [], []
        if checkpoint is not None:
            checkpoint.offer(f"epoch {epoch}", state)
    model.eval()
    return history


def _optimiser(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    # Decay shrinks weights, not the biases, BatchNorm scales and kernel metrics that have no direction to regularise.
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim > 1 and not name.endswith("root")]
    others = [p for name, p in named if p.ndim <= 1 or name.endswith("root")]
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(groups, lr=settings.learning_rate)
    return torch.optim.SGD(groups, lr=settings.learning_rate)


def _scheduler(
    optimiser: torch.optim.Optimizer, settings: Settings, steps_per_epoch: int
) -> torch.optim.lr_scheduler.LRScheduler:
    total = settings.epochs * steps_per_epoch + 1
    if settings.learning_rate_schedule == "constant" or total < 4:
        return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)
    # A cycle must rise for more than one step, which a small warm-up of a short run would not.
    warmup = max(settings.warmup, 2 / total)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=total, pct_start=warmup, cycle_momentum=False
    )
