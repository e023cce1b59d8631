"""Training by gradient: the loop over epochs and batches, the same for every objective.

An objective is a function that computes the gradients of a batch (`clai.learning`). A training that resumes from a checkpoint
ends with the same bytes as one that ran through.
"""

import contextlib
import copy
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from clai.alignment import Target
from clai.batches import Items
from clai.checkpoints import Checkpoint, seeded_generators
from clai.optimisers import build_optimisers
from clai.stability import FAILURES, refuse_divergence

logger = logging.getLogger("clai")

Precision = Literal["bfloat16", "float32", "float64"]

Epoch = dict[str, float]
"""One row of the history."""
Figures = dict[str, Tensor]
"""Scalars that a step leaves for the history, its `loss` among them."""
Step = Callable[[Tensor, int | None, torch.Generator], Figures]
"""Computes the gradients of a batch and leaves them in the parameters. It takes the items (n,) of the batch, the condition of
the pass, and the generator of augmentation."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. The block `training` of config.yaml says what each setting means and why it has its value."""

    epochs: int
    batch_size: int
    optimiser: Literal["adamw", "sgd", "muon"]
    learning_rate: float
    momentum: float
    weight_decay: float
    learning_rate_schedule: Literal["one_cycle", "triangular", "constant"]
    warmup: float
    precision: Precision
    schedule: Literal["sequential", "joint"]
    references: int | Literal["all"]
    reference_reduction: Literal["mean", "sum"]
    pair_weighting: Literal["none", "balanced"]
    samples_per_class: int | None
    target: Target
    seed: int
    conditioning: Literal["class"] | None = "class"


def precision_context(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Return autocast to bfloat16, or a context that does nothing."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def train(
    model: nn.Module,
    data: Items,
    step: Step,
    settings: TrainingSettings,
    validate: Callable[[], Epoch],
    checkpoint: Checkpoint | None,
    *,
    batches: Sequence[slice],
    passes: Sequence[int | None] = (None,),
    after_pass: Callable[[int | None], None] | None = None,
    stop: Callable[[list[Epoch]], bool] | None = None,
) -> list[Epoch]:
    """Train a model in place from the checkpoint, or from the start, to the last epoch.

    Args:
        data: training items, which each pass shuffles, and which are told each epoch.
        step: computes the gradients of a batch.
        settings: optimiser, learning rate, epochs and seed.
        validate: called after each epoch; its figures join the history. It may raise FloatingPointError for divergence.
        checkpoint: where to save the state after each epoch, and to resume from; None to keep none.
        batches: places of each batch in the shuffled order.
        passes: the condition of each pass over the batches in an epoch.
        after_pass: called with the condition after each pass; it changes no weight.
        stop: told the history after each epoch, whether to train no further; None: to the last epoch.

    Returns:
        The history, a row an epoch: epoch, the means of the figures of its steps (of `pairs` the sum), learning_rate (of the
        step to come) and the figures of `validate`.

    Raises:
        DivergenceError: the loss, the weights or the figures of `validate` are not finite, the loss is above `EXPLODED`, or a
            step or `validate` failed of such numbers; names epoch, step, learning rate and the last good checkpoint.
    """
    device = next(model.parameters()).device
    steps = len(passes) * len(batches)
    optimisers = build_optimisers(
        model,
        settings.optimiser,
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        rounded=settings.precision == "bfloat16",
    )
    schedulers = [_scheduler(optimiser, settings, steps) for optimiser in optimisers]
    stateful: list[Any] = [model, *optimisers, *schedulers]
    generator = torch.Generator().manual_seed(settings.seed)
    history: list[Epoch] = []
    saved = None if checkpoint is None else checkpoint.load()
    if saved is not None:
        for part, state in zip(stateful, saved["states"], strict=True):
            part.load_state_dict(state)
        generator.set_state(saved["generator"])
        history = saved["history"]

    for epoch in range(len(history) + 1, settings.epochs + 1):
        began = time.perf_counter()
        # A tensor of all steps: scalars of each step would lie between large tensors, and keep freed memory in pieces.
        figures: Figures = {}
        done = 0
        rates: list[float] = []
        advice = "lower learning_rate"  # as an estimator names it
        if checkpoint is not None:
            advice = f"lower training.learning_rate. The last good state {checkpoint.where()}"
        try:
            model.train()
            data.begin_epoch(epoch)
            with seeded_generators(settings.seed + epoch, device):  # an epoch does not depend on draws before it
                for condition in passes:
                    order = torch.randperm(len(data), generator=generator)
                    for batch in batches:
                        model.zero_grad(set_to_none=True)
                        rates.append(float(schedulers[0].get_last_lr()[0]))
                        for key, value in step(order[batch], condition, generator).items():
                            figures.setdefault(key, torch.zeros(steps, dtype=torch.float32, device=device))[done] = (
                                value
                            )
                        done += 1
                        for optimiser, scheduler in zip(optimisers, schedulers, strict=True):
                            optimiser.step()
                            scheduler.step()
                    if after_pass is not None:
                        after_pass(condition)
                        model.train()
            means = {key: float(values.mean()) for key, values in figures.items()}  # A GPU has then finished the steps.
            if "pairs" in means:
                means["pairs"] *= steps
            trained = time.perf_counter()
            model.eval()
            validated = validate()
            if not all(map(math.isfinite, validated.values())):
                raise FloatingPointError(f"validation gives {validated}")
        except FAILURES as error:
            refuse_divergence(model, figures.get("loss", torch.zeros(0))[:done], rates, epoch, steps, advice, error)
            raise
        refuse_divergence(model, figures["loss"], rates, epoch, steps, advice)
        finished = time.perf_counter()

        history.append({"epoch": epoch, **means, "learning_rate": float(schedulers[0].get_last_lr()[0]), **validated})
        shown = "  ".join(f"{key} {value:.4g}" for key, value in history[-1].items() if key not in ("epoch", "pairs"))
        logger.info("epoch %d/%d  %s  (%.1f s)", epoch, settings.epochs, shown, finished - began)
        if checkpoint is not None:
            checkpoint.times["epoch_seconds"].append(round(trained - began, 4))
            checkpoint.times["validation_seconds"].append(round(finished - trained, 4))
            state = {
                "states": [part.state_dict() for part in stateful],
                "generator": generator.get_state(),
                "history": history,
            }
            checkpoint.save(f"epoch {epoch}", state)
        if stop is not None and stop(history):
            break
    model.eval()
    return history


class EarlyStopping:
    """Ends a training once a figure of its history has not risen for some epochs, and brings back the weights of the best epoch.

    Args:
        model: in training.
        figure: of the history; larger is better, and of equal epochs the first is best.
        patience: epochs without a rise after which to stop.
    """

    def __init__(self, model: nn.Module, figure: str, patience: int) -> None:
        self.model, self.figure, self.patience = model, figure, patience
        self.best: dict[str, Any] = {}

    def __call__(self, history: list[Epoch]) -> bool:
        """Return whether to stop; keep the weights of a best epoch."""
        figures = [epoch[self.figure] for epoch in history]
        since = len(figures) - 1 - figures.index(max(figures))
        if since == 0:
            self.best = copy.deepcopy(self.model.state_dict())
        return since >= self.patience

    def restore(self) -> None:
        """Give the model the weights of its best epoch."""
        self.model.load_state_dict(self.best)


def _scheduler(
    optimiser: torch.optim.Optimizer, settings: TrainingSettings, steps_per_epoch: int
) -> torch.optim.lr_scheduler.LRScheduler:
    total = settings.epochs * steps_per_epoch + 1
    if settings.learning_rate_schedule == "constant" or total < 4:
        return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)
    # A cycle must rise for more than one step, which a small warm-up of a short run would not.
    warmup = max(settings.warmup, 2 / total)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        settings.learning_rate,
        total_steps=total,
        pct_start=warmup,
        anneal_strategy="linear" if settings.learning_rate_schedule == "triangular" else "cos",
        cycle_momentum=False,
    )
