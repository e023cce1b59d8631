"""What a model is: fitted to the samples of a run, it scores samples. workflow/config/models.yaml lists all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor, nn

from clailearn.checkpoints import Checkpoint, write_whole
from clailearn.encoders import Classifier, ConvNet, Encoder, move
from clailearn.errors import InputError
from clailearn.files import fill_module, load_tensors
from clailearn.kernels import Cosine, Kernel, MahalanobisGaussian
from clailearn.trainer import Epoch, Figures, Items, Samples, TrainingSettings, precision_context, train
from replication.models.embedding import Embedded, draw_items, further_views, labels_of, outputs, plain
from replication.models.items import Splits
from replication.models.run import Run, refuse_rows
from replication.runs.registry import MODELS

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Rows = NDArray[Any]
"""Inputs (N, F) of floating-point numbers."""

# Two thousand images have 1.9 million patches of 12 values; more would change the filters by less than the seed.
_IMAGES_TO_WHITEN = 2000
_BOUNDS = ("lower_bound", "upper_bound")


class Model(ABC):
    """A model that is fitted to the training samples of a run; `choices` are what the fit chose on validation samples."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.choices: dict[str, Any] = {}

    @abstractmethod
    def fit(self, run: Run, checkpoint: Checkpoint | None) -> list[Epoch]:
        """Fit to the run's training samples, and return the history, a row an epoch; empty, and no checkpoint, without epochs."""

    @abstractmethod
    def scores(self, run: Run, items: Items) -> Floats:
        """Return log-odds (N,) of two classes, or scores (N, C) whose softmax is the probability; CLaI's are f as printed."""


def create(key: str) -> Any:
    """Return a model (`Model`), not fitted yet, of the class that its entry in the registry names."""
    return resolve_name(MODELS[key].fit)(key)


class RowClassifier(Model):
    """A classifier of vectors: of rows of features, of single hours by the encoder's inputs, or of embeddings.

    Its settings are the block of `baselines` that its entry in the registry reads, if any.
    """

    def fit(self, run: Run, checkpoint: Checkpoint | None) -> list[Epoch]:
        if run.embedded is None:
            refuse_rows(run.id.name, run.data.info["kind"], [self.key])
        blocks = [key.removeprefix("baselines.") for key in MODELS[self.key].reads]
        settings = run.settings["baselines"][blocks[0]] if blocks else {}
        train, val = ((items.x.numpy(), items.labels.numpy()) for items in run.splits[:2])  # type: ignore[attr-defined]
        self.fit_rows(*train, *val, seed=run.id.seed, **settings)
        return []

    def scores(self, run: Run, items: Items) -> Floats:
        return self.score_rows(items.x.numpy())  # type: ignore[attr-defined]

    @abstractmethod
    def fit_rows(self, *rows: Any, **settings: Any) -> Self:
        """Fit to training rows x (N, F) and class indices y (N,); x_val (M, F) and y_val (M,) make choices."""

    @abstractmethod
    def score_rows(self, x: Rows) -> Floats:
        """Return scores of rows (N, F), as `scores` does."""


def on_embeddings(run: Run, embedded: Mapping[str, Embedded]) -> Run:
    """Return a run whose items are embeddings (N, K L) of its samples, conditions side by side."""
    parts = (embedded[name] for name in Splits._fields)
    items = (Samples(part.z.transpose(0, 1).flatten(1).double(), part.y) for part in parts)
    return replace(run, embedded=Splits(*items))


class Space(NamedTuple):
    """A space of embeddings: the module that embeds samples as (K, N, L), and the kernel that compares the embeddings."""

    module: nn.Module
    kernel: Kernel


class Network(Model):
    """A model with weights in `module`, on the CPU after `fit`; `network`, a part, maps the inputs of samples."""

    module: nn.Module
    network: Encoder | Classifier

    @abstractmethod
    def build(self, run: Run) -> Self:
        """Set the untrained module, initialised from the run's seed; filters that follow from data are not set yet."""

    def start(self, run: Run) -> Self:
        """Set the untrained module as a training begins with it, on the run's device."""
        move(self.build(run).module, run.device)
        if isinstance(self.network.trunk, ConvNet):
            # Prepared images may be in the order of their classes, so the first ones would be of one class.
            drawn = draw_items(run.splits.train, _IMAGES_TO_WHITEN, run.id.seed)
            self.network.trunk.whiten(run.splits.train.batch(drawn, None)[0])
        return self

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        """Return the loss of a batch, encoder input and labels (samples,), for a model that learns from single batches."""
        raise NotImplementedError

    def copies(self, run: Run) -> int:
        """Return how often an item is in its batch, each time with an augmentation of its own."""
        return 1

    def learn(self, run: Run, validate: Callable[[], Epoch], checkpoint: Checkpoint | None) -> list[Epoch]:
        """Train in place on the loss of single batches, each with `copies` of a CLaI group of anchor and references."""
        data, copies = run.splits.train, self.copies(run)
        size = group_size(run.training, len(data))
        batches = [slice(first, first + size) for first in range(0, len(data) - size + 1, size)]

        def step(rows: Tensor, condition: int | None, generator: torch.Generator) -> Figures:
            loss = self.loss(run, *data.batch(rows.repeat(copies), generator))
            loss.backward()
            return {"loss": loss.detach()}

        return train(self.module, data, step, run.training, validate, checkpoint, batches=batches)

    def validation(self, run: Run) -> Callable[[], Epoch]:
        """Return the function that measures the model after each epoch, on drawn validation samples."""
        return lambda: validation_figures(*self.validation_scores(run))

    def validation_scores(self, run: Run) -> tuple[Floats, Tensor]:
        """Return the scores of the drawn validation samples while the model trains, and their labels."""
        items, number = run.splits.val, run.settings["inference"]["validation_samples"]
        positions = draw_items(items, number, run.id.seed)
        return self.scores_at(run, items, positions), labels_of(items, positions)

    def scores(self, run: Run, items: Items) -> Floats:
        move(self.module, run.device)
        return self.scores_at(run, items, torch.arange(len(items)))

    def scores_at(self, run: Run, items: Items, positions: Tensor) -> Floats:
        """Return the scores of the items at these positions, of each the mean over its views.

        They are the outputs (samples, C) of the module, or of two classes their difference (samples,).
        """
        views = (plain, *further_views(run))
        scores = [outputs(run, self.module, items, positions, view=view).double().numpy() for view in views]
        return np.mean([log_odds(part) for part in scores], axis=0)

    def spaces(self) -> list[Space]:
        """Return the spaces that controls look at, the usual one first."""
        return both_spaces(Features(self.network), self.network.standardise.num_features)

    def fit(self, run: Run, checkpoint: Checkpoint | None) -> list[Epoch]:
        """Train from the start, or from the checkpoint; raise InputError if a batch is larger than half the training items."""
        run.check()
        history = self.start(run).learn(run, self.validation(run), checkpoint)
        self.module.cpu()
        return history

    def save(self, path: str | Path) -> None:
        """Write parameters and buffers as a safetensors file, but the bounds of GPyTorch's constraints, which are infinite."""
        kept = {name: t.contiguous() for name, t in self.module.state_dict().items() if not name.endswith(_BOUNDS)}
        write_whole(Path(path), save(kept))

    def load(self, run: Run, path: str | Path) -> Self:
        """Read what `save` wrote for a run, ready to evaluate."""
        self.build(run)
        bounds = {name: t for name, t in self.module.state_dict().items() if name.endswith(_BOUNDS)}
        fill_module(self.module, load_tensors(path) | bounds, path)
        self.module.eval()
        return self

    def passes(self, run: Run) -> float:
        """Return how often an epoch sends the training samples through the network and back."""
        items = len(run.splits.train)
        group = group_size(run.training, items)
        return self.copies(run) * (items // group * group / items)

    def forward(self, run: Run, x: Any) -> Tensor:
        """Return the network's outputs for a batch as one pass of training computes them."""
        with precision_context(run.device, run.training.precision):
            output: Tensor = self.network(x)
        return output


class Features(nn.Module):
    """The standardised features of a trunk as embeddings of one condition, (1, N, F)."""

    def __init__(self, model: Classifier | Encoder) -> None:
        super().__init__()
        self.trunk, self.standardise = model.trunk, model.standardise

    def forward(self, x: Any) -> Tensor:
        features = self.trunk(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.standardise(features.float()).unsqueeze(0)


def both_spaces(module: nn.Module, size: int) -> list[Space]:
    """Return embeddings without a kernel of their own with both kernels of the paper: cosine, and Gaussian with M = I / L."""
    return [Space(module, kernel) for kernel in (Cosine(), MahalanobisGaussian(size, "identity"))]


def log_odds(scores: Floats) -> Floats:
    """Return scores (N, C) as they are, of two classes as the difference of the second and the first (N,)."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def validation_figures(scores: Floats, labels: Tensor) -> Epoch:
    """Return the accuracy of scores, (N,) or (N, C), and for two classes that both occur the area under the ROC curve."""
    if not np.isfinite(scores).all():  # Their accuracy would be a number all the same.
        raise FloatingPointError("scores are not finite")
    y = labels.numpy()
    predicted = scores > 0 if scores.ndim == 1 else scores.argmax(1)
    figures = {"validation_accuracy": float((predicted == y).mean())}
    if scores.ndim == 1 and len(set(y.tolist())) > 1:
        from sklearn.metrics import roc_auc_score  # slow to import, and many classes need none

        figures["validation_auroc"] = float(roc_auc_score(y, scores))
    return figures


def draw_references(run: Run) -> Tensor:
    """Draw the training items that serve as references while the model trains, and a sample of each class that the draw lacks.

    Refuse a draw of recordings that lacks a class.
    """
    data = run.splits.train
    references = draw_items(data, run.settings["inference"]["validation_references"], run.id.seed)
    if run.data.info["kind"] != "recordings":
        lacking = set(data.labels.tolist()).difference(data.labels[references].tolist())
        first = [int((data.labels == label).nonzero()[0]) for label in sorted(lacking)]
        references = torch.cat([references, torch.tensor(first, dtype=torch.int64)])
    present, expected = labels_of(data, references).unique().numel(), max(2, run.conditions)
    if present < expected:
        raise InputError(
            f"inference.validation_references: its {len(references)} training items hold {present} of {expected} classes: "
            "give a larger number"
        )
    return references


def draw_shift(data: Items, settings: TrainingSettings) -> Tensor:
    """Return the correction (classes,) of log-odds that were learned from draws of at most `samples_per_class` of each class.

    A classifier of such draws is one of all samples but for a constant a class (King & Zeng 2001): the logarithm of the class's
    share of all samples over its share of the draws. These are the draws from the batches of an epoch (`Network.learn`) in an
    order drawn with the seed, because a batch of one class loses more samples to its draw than a mixed one. A class that is in
    none of these batches counts as drawn once.
    """
    classes = int(data.labels.max()) + 1
    if settings.samples_per_class is None:
        return torch.zeros(classes, dtype=torch.float64)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(settings.seed))
    size = group_size(settings, len(data))
    blocks = [block for block in order.split(size) if len(block) == size]
    counts = torch.stack([torch.bincount(labels_of(data, block), minlength=classes) for block in blocks])
    drawn = counts.clamp_max(settings.samples_per_class).sum(0).clamp_min(1)
    return torch.bincount(data.labels).double().log().log_softmax(0) - drawn.double().log().log_softmax(0)


def group_size(settings: TrainingSettings, items: int) -> int:
    """Return the items of an anchor batch and its references, at most all items; `references: all` counts as one."""
    references = settings.references if isinstance(settings.references, int) else 1
    return min(settings.batch_size * (1 + references), items)
