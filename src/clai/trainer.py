"""Training by gradient: settings, the optimiser, the history and checkpoints; the same for every objective.

An objective makes the steps of an epoch (`clai.learning`); `Trainer` performs them. A training that resumes from a checkpoint
ends with the same bytes as one that ran through.
"""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, TypeVar, cast

import torch
from torch import Tensor, nn

from clai.alignment import Target
from clai.checkpoints import Checkpoint, Draws, global_generators, seeded_generators, set_global_generators
from clai.optimisers import build_optimisers
from clai.stability import FAILURES, divergence

logger = logging.getLogger("clai")

Precision = Literal["bfloat16", "float32", "float64"]

Epoch = dict[str, float]
"""One row of the history."""
Figures = dict[str, Tensor]
"""Scalars that a step leaves for the history, its `loss` among them."""
Steps = Iterator[Callable[[], Figures]]
"""The steps of an epoch. A step leaves gradients in the parameters and returns its figures."""

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. The block `training` of config.yaml says what each setting means and why it has its value."""

    epochs: int
    batch_size: int
    optimiser: Literal["adamw", "sgd", "muon"]
    learning_rate: float
    momentum: float
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

    @classmethod
    def of(cls, settings: Mapping[str, Any], conditions: int, seed: int) -> Self:
        """Take the settings of a run from the blocks `training` and `target` of a dataset's settings.

        Args:
            settings: of one dataset; further keys of `training` are left alone.
            conditions: C for a multiclass task, 1 for a binary one, which have a target each.
            seed: of the run.
        """
        names = [field.name for field in fields(cls) if field.name not in ("target", "seed")]
        target = settings["target"]["multiclass" if conditions > 1 else "binary"]
        return cls(**{name: settings["training"][name] for name in names}, target=target, seed=seed)


def precision_context(device: torch.device, precision: Precision) -> contextlib.AbstractContextManager[Any]:
    """Return autocast to bfloat16, or a context that does nothing."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def compiled(module: Module, settings: TrainingSettings) -> Module:
    """Return the module, or a compiled view of it that shares its parameters."""
    return cast(Module, torch.compile(module)) if settings.compile else module


class Trainer:
    """Optimise a model over epochs of steps, with validation, history and checkpoints.

    Args:
        model: trained in place.
        steps: makes the steps of an epoch, drawing from the generator.
        steps_per_epoch: number of steps that `steps` makes.
        settings: optimiser, learning rate, epochs and seed.
        validate: called after each epoch; its figures join the history. It may raise FloatingPointError for divergence.
        checkpoint: where to save the state, and to resume from; None to keep none.
    """

    def __init__(
        self,
        model: nn.Module,
        steps: Callable[[torch.Generator], Steps],
        steps_per_epoch: int,
        settings: TrainingSettings,
        validate: Callable[[], Epoch],
        checkpoint: Checkpoint | None,
    ) -> None:
        self.model, self.settings, self.steps_per_epoch = model, settings, steps_per_epoch
        self.make_steps, self.validate, self.checkpoint = steps, validate, checkpoint
        self.optimisers = build_optimisers(
            model,
            settings.optimiser,
            learning_rate=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            rounded=settings.precision == "bfloat16",
        )
        self.schedulers = [_scheduler(optimiser, settings, steps_per_epoch) for optimiser in self.optimisers]
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.device = next(model.parameters()).device
        self.history: list[Epoch] = []
        self.figures: list[Figures] = []  # of each step of this epoch
        self.rates: list[float] = []  # learning rate of each step of this epoch
        self.seconds = 0.0  # that earlier processes spent on the steps of this epoch
        self.began = time.perf_counter()  # when this epoch would have begun in one process
        self.resumed_generators: Mapping[str, Tensor] | None = None
        self.draws = Draws(steps(self.generator), self.generator, None)

    def train(self) -> list[Epoch]:
        """Train from the checkpoint, or from the start, to the last epoch; return the history.

        Raises:
            DivergenceError: the loss, the weights or the figures of `validate` are not finite, the loss is above `EXPLODED`,
                or a step or `validate` failed of such numbers; names epoch, step, learning rate and the last good checkpoint.
        """
        self.restore()
        while len(self.history) < self.settings.epochs:
            self.epoch()
        self.model.eval()
        return self.history

    def restore(self) -> None:
        """Continue from the checkpoint, where it holds a state that fits."""
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None:
            return
        self.model.load_state_dict(saved["model"])
        for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        for scheduler, state in zip(self.schedulers, saved["schedulers"], strict=True):
            scheduler.load_state_dict(state)
        self.history, self.rates, self.seconds = saved["history"], saved["rates"], saved["seconds"]
        columns = saved["figures"]
        self.figures = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        self.draws = Draws(self.make_steps(self.generator), self.generator, saved["draws"])
        self.resumed_generators = saved["global"] if self.draws.position > 0 else None

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs; raise DivergenceError instead of a state that is not good."""
        if self.figures:
            self._check()
        names = self.figures[0] if self.figures else ()
        return {
            "model": self.model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "schedulers": [scheduler.state_dict() for scheduler in self.schedulers],
            "global": global_generators(self.device),
            "draws": self.draws.state(),
            "history": self.history,
            "figures": {name: torch.stack([row[name] for row in self.figures]) for name in names},
            "rates": self.rates,
            "seconds": time.perf_counter() - self.began,
        }

    def epoch(self) -> None:
        """Perform the steps that are left of an epoch, validate, and add a row to the history."""
        number = len(self.history) + 1
        self.began = time.perf_counter() - self.seconds
        self.model.train()
        # Dropout draws from the global generator. Each epoch seeds it, unless it resumes in the middle of one.
        with seeded_generators(self.settings.seed + number, self.device):
            if self.resumed_generators is not None:
                set_global_generators(self.resumed_generators, self.device)
            for step in self.draws:
                self._perform(step)
                self._offer(f"step {self.draws.position} of {self.steps_per_epoch} of epoch {number}")
        self._check()  # reads all losses, so a GPU has then finished the steps
        training = time.perf_counter() - self.began
        row: Epoch = {"epoch": number, **self._means(), "learning_rate": self._rate(), **self._validated()}
        validation = time.perf_counter() - self.began - training
        self.history.append(row)
        if self.checkpoint is not None:
            self.checkpoint.epochs.append({"training": training, "validation": validation})
        shown = "  ".join(f"{key} {value:.4g}" for key, value in row.items() if key not in ("epoch", "pairs"))
        logger.info("epoch %d/%d  %s  (%.1f s)", number, self.settings.epochs, shown, training + validation)
        self.draws = Draws(self.make_steps(self.generator), self.generator, None)
        self.figures, self.rates, self.resumed_generators = [], [], None
        self.seconds, self.began = 0.0, time.perf_counter()
        self._offer(f"epoch {number}")

    def _perform(self, step: Callable[[], Figures]) -> None:
        self.model.zero_grad(set_to_none=True)
        self.rates.append(self._rate())
        try:
            self.figures.append(step())
        except FAILURES as error:
            self._check(error)
            raise
        for optimiser, scheduler in zip(self.optimisers, self.schedulers, strict=True):
            optimiser.step()
            scheduler.step()

    def _validated(self) -> Epoch:
        self.model.eval()
        try:
            figures = self.validate()
            if not all(map(math.isfinite, figures.values())):
                raise FloatingPointError(f"validation gives {figures}")
        except FAILURES as error:
            self._check(error)
            raise
        return figures

    def _means(self) -> Epoch:
        """Return the means over the steps of the epoch, and the sum of `pairs`."""
        means = {key: float(torch.stack([row[key].float() for row in self.figures]).mean()) for key in self.figures[0]}
        if "pairs" in means:
            means["pairs"] *= len(self.figures)
        return means

    def _rate(self) -> float:
        return float(self.optimisers[0].param_groups[0]["lr"])

    def _offer(self, place: str) -> None:
        if self.checkpoint is not None:
            self.checkpoint.offer(place, self.state)

    def _check(self, error: Exception | None = None) -> None:
        """Raise DivergenceError if the epoch so far has diverged; `error` is the failure that led here."""
        advice = "lower learning_rate"  # as an estimator names it
        if self.checkpoint is not None:
            advice = f"lower training.learning_rate. The last good state {self.checkpoint.where()}"
        losses = [row["loss"] for row in self.figures]
        number = len(self.history) + 1
        diverged = divergence(self.model, losses, self.rates, number, self.steps_per_epoch, advice, error)
        if diverged is not None:
            raise diverged from error


def _scheduler(
    optimiser: torch.optim.Optimizer, settings: TrainingSettings, steps_per_epoch: int
) -> torch.optim.lr_scheduler.LRScheduler:
    total = settings.epochs * steps_per_epoch + 1
    if settings.learning_rate_schedule == "constant" or total < 4:
        return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)
    # A cycle must rise for more than one step, which a small warm-up of a short run would not.
    warmup = max(settings.warmup, 2 / total)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=total, pct_start=warmup, cycle_momentum=False
    )
