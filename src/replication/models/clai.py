"""CLaI-M and CLaI-C: Collaborative Learning with the kernel that the registry names, Collaborative Inference by votes."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from torch import Tensor, nn

from clailearn.alignment import alignment_scores, one_vs_rest, target_matrix
from clailearn.batches import Items
from clailearn.checkpoints import Checkpoint
from clailearn.encoders import Encoder, build_encoder, place
from clailearn.inference import decide
from clailearn.kernels import Kernel, build
from clailearn.learning import collaborative_learning, encoder_passes
from clailearn.trainer import Epoch
from replication.models.base import Floats, Network, View, draw_references, validation_figures
from replication.models.embedding import Embedded, draw_items, embed, further_views, similarity_means
from replication.models.run import Run
from replication.runs.registry import MODELS


def build_clai(
    settings: Mapping[str, Any], model: str, inputs: int, conditions: int, seed: int
) -> tuple[Encoder, Kernel]:
    """Build an untrained encoder and the kernel of a model of CLaI, initialised from the seed."""
    encoder = build_encoder(settings, inputs, conditions, seed)
    return encoder, build(str(MODELS[model].kernel), settings["embedding_size"], settings["kernel"]["metric"])


class CLaI(Network):
    """An encoder with a condition for each class, and the kernel that compares its embeddings."""

    network: Encoder
    kernel: Kernel

    def build(self, run: Run) -> Self:
        self.network, self.kernel = build_clai(run.settings, self.key, run.inputs, run.conditions, run.id.seed)
        self.module = nn.ModuleList([self.network, self.kernel])
        return self

    def learn(self, run: Run, validate: Callable[[], Epoch], checkpoint: Checkpoint | None) -> list[Epoch]:
        given = (self.network, self.kernel, run.splits.train, run.conditions, run.training)
        if run.training.schedule == "joint" or run.conditions == 1:
            return collaborative_learning(*given, validate, checkpoint)
        turns = Turns(lambda: self._validation_scores(run))
        return collaborative_learning(*given, lambda: validate() | turns.change(), checkpoint, turns.take)

    def validation(self, run: Run) -> Callable[[], Epoch]:
        """Return the function that votes on validation samples by the rule `printed`, with training items as references."""
        constants = self.floor(run)
        return lambda: constants | validation_figures(*self._validation_scores(run))

    def _validation_scores(self, run: Run) -> tuple[Floats, Tensor]:
        """Return f of validation samples by the votes of training items, and their labels."""
        splits = run.splits
        positions = draw_items(splits.val, run.settings["inference"]["validation_samples"], run.id.seed)
        reference = embed(run, self.network, splits.train, draw_references(run))
        validation = embed(run, self.network, splits.val, positions, further_views(run))
        return self.vote(run, validation, reference), validation.y

    def floor(self, run: Run) -> Epoch:
        """Return the floor of the loss, a mean over conditions, if the kernel knows it; else nothing."""
        shares = (one_vs_rest(run.splits.train.labels, run.conditions) > 0).double().mean(1).tolist()
        size, target = run.settings["embedding_size"], run.training.target
        floors = [self.kernel.loss_floor(target, share, size) for share in shares]
        known = [floor for floor in floors if floor is not None]
        return {"floor": sum(known) / len(floors)} if len(known) == len(floors) else {}

    def vote(self, run: Run, samples: Embedded, references: Embedded) -> Floats:
        """Return f of the rule `printed` for embedded samples, (N,) for two classes, (N, C) for more."""
        f = decide(similarity_means(run, self.kernel, samples, references), "printed")
        return (f.T if run.conditions > 1 else f[0]).double().numpy()

    def scores(self, run: Run, items: Items) -> Floats:
        place(self.network, run.device)
        references = embed(run, self.network, run.splits.train)
        return self.vote(run, embed(run, self.network, items, views=further_views(run)), references)

    def views(self) -> list[View]:
        return [View(self.network, self.kernel)]

    def passes(self, run: Run) -> float:
        return encoder_passes(len(run.splits.train), run.conditions, run.training)

    def forward(self, run: Run, x: Any) -> Tensor:
        return super().forward(run, x) if run.training.schedule == "joint" else self.network(x, 0)


class Turns:
    """What the later classes of an epoch do to those that had their turn (section III-D), where training takes one by one."""

    def __init__(self, measure: Callable[[], tuple[Floats, Tensor]]) -> None:
        self.measure = measure  # f (N, C) and the labels (N,) of validation samples
        self.own: list[float] = []
        self.last: list[float] = []

    def take(self, condition: int | None) -> None:
        """Measure the ROC-AUC of each class against the rest under its own condition, after the turn of a class."""
        from sklearn.metrics import roc_auc_score  # slow to import

        f, y = self.measure()
        self.last = [float(roc_auc_score(y == k, f[:, k])) for k in range(f.shape[1])]
        self.own = [*(self.own if condition else []), self.last[condition or 0]]

    def change(self) -> Epoch:
        """Return `turn_change`: ROC-AUC after the last turn minus that after its own, a mean over all classes but the last."""
        changes = [last - own for last, own in zip(self.last[:-1], self.own[:-1], strict=True)]
        return {"turn_change": sum(changes) / len(changes)}


class AlignmentMaximised(CLaI):
    """CLaI's encoder and kernel, trained to maximise the centred alignment itself: a control of claim 9."""

    learn = Network.learn

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        """Return 1 minus the mean over conditions of the centred alignment of one half of a batch with the other.

        Without centring, constant similarities of -1 already have a high alignment with `product`.
        """
        z = Network.forward(self, run, x)
        signs, half = one_vs_rest(labels, run.conditions).to(z.dtype), len(labels) // 2
        target = target_matrix(signs[:, :half], signs[:, half:], run.training.target)
        return 1 - alignment_scores(self.kernel(z[:, :half], z[:, half:]), target)[1].mean()
