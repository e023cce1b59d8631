"""Training by gradient: the loop over epochs and batches, the same for every objective.

An objective is a function that computes the gradients of a batch (`clailearn.learning`). A training that resumes from a
checkpoint ends with the same bytes as one that ran through.
"""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from clailearn.alignment import Target
from clailearn.checkpoints import Checkpoint, seeded_generators
from clailearn.errors import DivergenceError
from clailearn.optimisers import build_optimisers

logger = logging.getLogger("clailearn")

EXPLODED = 1e3
"""Loss above which training has diverged. The alignment loss is at most 4; cross-entropy over C classes starts at log C."""

# Errors that torch and scikit-learn raise for values that are not finite, and for other reasons too.
_FAILURES = (ArithmeticError, RuntimeError, ValueError)

Precision = Literal["bfloat16", "float32", "float64"]

Epoch = dict[str, float]
"""One row of the history."""
Figures = dict[str, Tensor]
"""Scalars that a step leaves for the history, its `loss` among them."""
Step = Callable[[Tensor, int | None, torch.Generator], Figures]
"""Computes the gradients of a batch and leaves them in the parameters. It takes the items (n,) of the batch, the condition of
the pass, and the generator of augmentation."""


class Items(Protocol):
    """A split of a dataset from which batches are drawn, indexed by item.

    An item is the unit that training shuffles: a vector, an image, or a whole recording, a collection of samples with labels. A
    batch of items gives encoder input and the labels of all samples in it.
    """

    labels: Tensor
    """Class indices of all samples, shape (samples,), on the CPU, in the order of items."""

    def __len__(self) -> int:
        """Return the number of items."""

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        """Return encoder input and labels (samples,) of the items; a generator draws augmentation, None leaves it out."""

    def begin_epoch(self, epoch: int) -> None:
        """Learn which epoch of a training the next batches are for, from 1 on; nothing, unless it is overridden."""
        return

    def sizes(self, blocks: list[Tensor]) -> list[int]:
        """Return the number of samples in each block of items, one an item unless it is overridden."""
        return [len(block) for block in blocks]


class Samples(Items):
    """Items that are single samples, vectors (N, inputs) or tensors (N, ...), drawn as they are."""

    def __init__(self, x: Any, labels: Tensor) -> None:
        self.x, self.labels = x, labels

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        return self.x[items.to(self.x.device)], self.labels[items].to(self.x.device)


class LazySamples(Samples):
    """Samples as given, in memory or mapped; a batch alone becomes encoder input, which may take eight times as much."""

    def __init__(self, x: Any, labels: Tensor, to_input: Callable[[Any], Tensor]) -> None:
        super().__init__(x, labels)
        self.to_input = to_input

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        x = self.to_input(self.x[items.numpy()])
        return x, self.labels[items].to(x.device)


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. config.yaml says what most settings mean, docs/choices.md why they have their values."""

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
    loss: Literal["alignment", "parzen"] = "alignment"
    memory: int = 0


def precision_context(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Return autocast to bfloat16, which other precisions switch off."""
    # Within another autocast the cache of weights in bfloat16 would outlive the steps that change them.
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False)


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
) -> list[Epoch]:
    """Train a model in place from the checkpoint, or from the start, to the last epoch.

    Args:
        data: training items, which each pass shuffles, and which are told each epoch.
        settings: optimiser, learning rate, epochs and seed.
        validate: called after each epoch; its figures join the history. It may raise FloatingPointError for divergence.
        checkpoint: where to save the state after each epoch, and to resume from; None to keep none.
        batches: places of each batch in the shuffled order.
        passes: the condition of each pass over the batches in an epoch.
        after_pass: called with the condition after each pass; it changes no weight.

    Returns:
        The history, a row an epoch: epoch, the means of the figures of its steps, learning_rate (of the
        step to come) and the figures of `validate`.

    Raises:
        DivergenceError: the loss, the weights or what `validate` gives are not finite, or the loss is above `EXPLODED`.
    """
    training = _Training(model, settings, len(passes) * len(batches), checkpoint)
    history = training.history
    for epoch in range(len(history) + 1, settings.epochs + 1):
        began, steps = time.perf_counter(), Steps(training.steps, training.device)
        with steps.refusing_divergence(model, epoch, training.advice()):
            data.begin_epoch(epoch)
            with seeded_generators(settings.seed + epoch, training.device):  # whatever was drawn before the epoch
                for condition in passes:
                    model.train()
                    order = torch.randperm(len(data), generator=training.generator)
                    for batch in batches:
                        model.zero_grad()
                        steps.rates.append(training.learning_rate)
                        steps.add(step(order[batch], condition, training.generator))
                        training.descend()
                    if after_pass is not None:
                        if training.device.type == "cuda":
                            torch.cuda.synchronize()  # The steps have finished.
                        paused = time.perf_counter()
                        after_pass(condition)
                        began += time.perf_counter() - paused
            figures = steps.means()
            seconds = time.perf_counter() - began  # A GPU has then finished the steps.
            model.eval()
            if not all(map(math.isfinite, (validated := validate()).values())):
                raise FloatingPointError(f"validation gives {validated}")
        training.keep({"epoch": epoch, **figures, "learning_rate": training.learning_rate, **validated}, seconds)
    model.eval()
    return history


class Steps:
    """What the steps of an epoch, `number` of them, leave.

    Attributes:
        rates: learning rate of each step, which a step appends before it computes; one more than losses where it fails.
        figures: scalars by name, `loss` among them, as a tensor (steps,) on the device.
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self.number, self.device, self.done = number, device, 0
        self.rates: list[float] = []
        # A tensor of all steps: scalars of each step would lie between large tensors, and keep freed memory in pieces.
        self.figures: dict[str, Tensor] = {}

    def add(self, figures: Mapping[str, Tensor]) -> None:
        """Keep the figures of the next step."""
        for key, value in figures.items():
            if key not in self.figures:
                self.figures[key] = torch.zeros(self.number, dtype=torch.float32, device=self.device)
            self.figures[key][self.done] = value
        self.done += 1

    def means(self) -> dict[str, float]:
        """Return the means of the figures, after the last step."""
        return {key: float(values.mean()) for key, values in self.figures.items()}

    @contextlib.contextmanager
    def refusing_divergence(self, module: nn.Module, epoch: int, advice: str) -> Iterator[None]:
        """Raise DivergenceError if the steps of an epoch, and the validation after it, leave the finite numbers or explode.

        advice: end of the message, which says what to do and which state is saved.
        """
        failure = None
        try:
            yield
        except _FAILURES as error:
            failure = error
        # The gradient of a finite loss need not be finite.
        not_finite = [name for name, weights in module.named_parameters() if not bool(weights.isfinite().all())]
        numerical = isinstance(failure, (FloatingPointError, torch.linalg.LinAlgError))
        exploded = failure is not None and any(
            bool((p.abs() > EXPLODED).any()) for p in module.parameters() if p.requires_grad
        )
        losses = self.figures["loss"][: self.done].tolist() if self.figures else []
        bad = [step for step, loss in enumerate(losses) if not abs(loss) <= EXPLODED]
        if bad or not_finite or numerical or exploded:
            at = bad[0] if bad else len(self.rates) - 1
            loss = losses[at] if at < len(losses) else math.nan
            found = "" if bad or at == len(losses) else " but what the weights give is not finite"
            if not_finite:
                found = f" and weights are not finite, {not_finite[0]} first"
            raise DivergenceError(
                f"training diverged in epoch {epoch}: at step {at + 1} of {self.number} the loss is {loss:.3g}{found}, "
                f"the learning rate {self.rates[at]:.3g}; {advice}"
            ) from failure
        if failure is not None:
            raise failure


class _Training:
    """The state of a training, resumed from its checkpoint: optimisers, learning rates, generator and history."""

    def __init__(self, model: nn.Module, settings: TrainingSettings, steps: int, checkpoint: Checkpoint | None) -> None:
        self.epochs, self.steps, self.checkpoint = settings.epochs, steps, checkpoint
        self.device = next(model.parameters()).device
        self.rounded = settings.precision == "bfloat16"
        self.optimisers = build_optimisers(
            model,
            settings.optimiser,
            learning_rate=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            rounded=self.rounded,
        )
        self.schedulers = [_scheduler(optimiser, settings, steps) for optimiser in self.optimisers]
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.history: list[Epoch] = []
        self._stateful: list[Any] = [model, *self.optimisers, *self.schedulers]
        if checkpoint is not None and (saved := checkpoint.load()) is not None:
            for part, state in zip(self._stateful, saved["states"], strict=True):
                part.load_state_dict(state)
            self.generator.set_state(saved["generator"])
            self.history = saved["history"]

    @property
    def learning_rate(self) -> float:
        """Return the learning rate of the step to come."""
        return float(self.schedulers[0].get_last_lr()[0])

    def descend(self) -> None:
        """Move the weights by their gradients."""
        for optimiser, scheduler in zip(self.optimisers, self.schedulers, strict=True):
            optimiser.step()
            scheduler.step()

    def advice(self) -> str:
        """Return what to do about divergence, in words."""
        block = "" if self.checkpoint is None else "training."  # as an estimator or config.yaml names it
        # Kernels of bfloat16 have left weights alone wrong before (`encoders._fitting`).
        mend = f", or set {block}precision to float32" if self.rounded else ""
        saved = "" if self.checkpoint is None else f". The last good state {self.checkpoint.where()}"
        return f"lower {block}learning_rate{mend}{saved}"

    def keep(self, row: Epoch, seconds: float) -> None:
        """Add the row of an epoch to the history, log it, and save the state after it; `seconds` is the time of its steps."""
        self.history.append(row)
        shown = "  ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "epoch")
        logger.info("epoch %d/%d  %s  (%.1f s)", row["epoch"], self.epochs, shown, seconds)
        if self.checkpoint is not None:
            self.checkpoint.epoch_seconds.append(round(seconds, 4))
            state = {
                "states": [part.state_dict() for part in self._stateful],
                "generator": self.generator.get_state(),
                "history": self.history,
            }
            self.checkpoint.save(f"epoch {row['epoch']}", state)


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
