"""CLaI-M and CLaI-C: Collaborative Learning with the kernel that the registry names, Collaborative Inference by votes.

Beside them the Parzen rule trained by its own score, and trainings that maximise the alignment.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from scipy import integrate, optimize
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

from clailearn.alignment import Target, alignment_scores, one_vs_rest, target_matrix
from clailearn.checkpoints import Checkpoint
from clailearn.encoders import Encoder, build_encoder, move
from clailearn.errors import InputError
from clailearn.inference import ParzenMeans, Rule, decide, log_posteriors, scores_by
from clailearn.kernels import Kernel, build
from clailearn.learning import collaborative_learning, encoder_passes
from clailearn.trainer import Epoch, Items
from replication.models.base import Floats, Network, Space, draw_references
from replication.models.embedding import Embedded, embed, further_views, similarity_means
from replication.models.run import Run
from replication.runs.registry import MODELS


def build_clai(
    settings: Mapping[str, Any], model: str, inputs: int, conditions: int, seed: int
) -> tuple[Encoder, Kernel]:
    """Build an untrained encoder and the kernel of a model of CLaI, initialised from the seed.

    Behind a free linear head, M = L' L adds no function: the head could be L times as large. Columns of W_k that stay orthonormal
    turn and project features, and leave their scales to M.
    """
    encoder = build_encoder(settings, inputs, conditions, seed)
    if settings["encoder"]["head"] == "orthonormal":
        # The default map, by reflections, has its signs in the diagonal of the parameter, which weight decay rounds to 0.
        orthogonal(encoder.head, "weight", orthogonal_map="matrix_exp")
    return encoder, build(str(MODELS[model].kernel), settings["embedding_size"], settings["kernel"]["metric"])


def loss_floor(kernel: Kernel, target: Target, share: float, size: int) -> float:
    """Return the least expected alignment loss of one condition, whatever the encoder, for a kernel of `FLOORS`.

    Only the target `zero` has a floor above 0. It asks negatives to be opposite to (or far from) all positives and yet unrelated
    to each other. With positives in one point and class share p, the loss is 2 p (1 - p) E(S+- + 1)^2 + (1 - p)^2 E(S--)^2.

    share: p, of the condition's positive class, in (0, 1). size: embedding dimensions L, at least 2.
    """
    return FLOORS[kernel.name](share, size) if target == "zero" else 0.0


def _cosine_floor(share: float, size: int) -> float:
    """Return the floor of the cosine kernel.

    Negatives lie at cosine -s from the positives and spread evenly in the other L - 1 dimensions. Then S+- = -s and
    E(S--)^2 = s^4 + (1 - s^2)^2 / (L - 1), minimised over s.
    """
    rest = (1 - share) ** 2

    def loss(s: float) -> float:
        return 2 * share * (1 - share) * (1 - s) ** 2 + rest * (s**4 + (1 - s**2) ** 2 / (size - 1))

    return float(optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded").fun)


def _gaussian_floor(share: float, size: int) -> float:
    """Return the least known loss of the Gaussian kernel.

    Positives are far away, S+- = -1, and negatives lie evenly on a sphere of radius r in L dimensions, so that 2 exp(-d) - 1 is
    near 0 for most pairs; minimised over r. This arrangement is attainable. A slightly better one may exist.
    """
    # u is the cosine of the angle between two even points on the sphere, with density (1 - u^2)^((L-3)/2); u = sin(angle)
    # keeps the integrand smooth for L = 2 as well.
    norm = integrate.quad(lambda a: math.cos(a) ** (size - 2), -math.pi / 2, math.pi / 2)[0]

    def loss(squared_radius: float) -> float:
        def integrand(a: float) -> float:
            similarity = 2 * math.exp(-2 * squared_radius * (1 - math.sin(a))) - 1
            return similarity**2 * math.cos(a) ** (size - 2)

        return float(integrate.quad(integrand, -math.pi / 2, math.pi / 2)[0]) / norm

    return (1 - share) ** 2 * float(optimize.minimize_scalar(loss, bounds=(0, 4), method="bounded").fun)


def voted(means: ParzenMeans, rule: Rule) -> Floats:
    """Return f of samples by a decision rule, (N,) or (N, C); of `parzen` for many classes the log-posteriors."""
    f = log_posteriors(means) if rule == "parzen" and len(means.share) > 1 else decide(means, rule)
    return (f.T if len(f) > 1 else f[0]).double().numpy()


FLOORS: dict[str, Callable[[float, int], float]] = {"cosine": _cosine_floor, "gaussian": _gaussian_floor}
"""The floor of the loss with the target `zero` by kernel, a function of class share and embedding size; figure 3 draws it."""


class Voting(Network):
    """An encoder with a condition for each class, a kernel that compares its embeddings, and a rule by which references vote."""

    network: Encoder

    def build(self, run: Run) -> Self:
        return self.around(*build_clai(run.settings, self.key, run.inputs, run.conditions, run.id.seed))

    def around(self, network: Encoder, kernel: Kernel) -> Self:
        self.network, self.kernel = network, kernel
        self.module = nn.ModuleList([network, kernel])
        return self

    @abstractmethod
    def vote(self, run: Run, samples: Embedded, references: Embedded) -> Floats:
        """Return the scores of embedded samples, (N,) for two classes, (N, C) for more."""

    def scores_at(self, run: Run, items: Items, positions: Tensor) -> Floats:
        """Return the scores of items while the model trains, with some training items as references."""
        references = embed(run, self.network, run.splits.train, draw_references(run))
        return self.vote(run, embed(run, self.network, items, positions, further_views(run)), references)

    def scores(self, run: Run, items: Items) -> Floats:
        move(self.network, run.device)
        references = embed(run, self.network, run.splits.train)
        return self.vote(run, embed(run, self.network, items, views=further_views(run)), references)

    def spaces(self) -> list[Space]:
        return [Space(self.network, self.kernel)]

    def passes(self, run: Run) -> float:
        return encoder_passes(len(run.splits.train), run.conditions, run.training)


class CLaI(Voting):
    """The paper's method: aligned similarities, and the rule `printed`."""

    def learn(self, run: Run, validate: Callable[[], Epoch], checkpoint: Checkpoint | None) -> list[Epoch]:
        given = (self.network, self.kernel, run.splits.train, run.conditions, run.training)
        if run.training.schedule == "joint" or run.conditions == 1:
            return collaborative_learning(*given, validate, checkpoint)
        turns = Turns(lambda: self.validation_scores(run))
        return collaborative_learning(*given, lambda: validate() | turns.change(), checkpoint, turns.take)

    def validation(self, run: Run) -> Callable[[], Epoch]:
        """Return the function that votes on validation samples, beside the floor of the loss if the kernel's is known."""
        measure = super().validation(run)
        if self.kernel.name not in FLOORS:
            return measure
        shares = (one_vs_rest(run.splits.train.labels, run.conditions) > 0).double().mean(1).tolist()
        floors = [loss_floor(self.kernel, run.training.target, p, run.settings["embedding_size"]) for p in shares]
        return lambda: {"floor": sum(floors) / len(floors)} | measure()

    def vote(self, run: Run, samples: Embedded, references: Embedded) -> Floats:
        return voted(similarity_means(run, self.kernel, samples, references), "printed")

    def forward(self, run: Run, x: Any) -> Tensor:
        return super().forward(run, x) if run.training.schedule == "joint" else self.network(x, 0)


class ParzenVote(Voting):
    """The same encoder and kernel, trained by the log odds of the rule `parzen`, which then votes. Ours, not the paper's."""

    def build(self, run: Run) -> Self:
        own = run.settings["baselines"]["parzen_vote"]
        settings = {**run.settings, "embedding_size": own["embedding_size"]}
        conditions = run.conditions if own["conditioning"] else 1
        return self.around(*build_clai(settings, self.key, run.inputs, conditions, run.id.seed))

    def learn(self, run: Run, validate: Callable[[], Epoch], checkpoint: Checkpoint | None) -> list[Epoch]:
        own = run.settings["baselines"]["parzen_vote"]
        training = replace(run.training, loss="parzen", memory=own["memory"], conditioning=own["conditioning"])
        given = (self.network, self.kernel, run.splits.train, run.conditions, training)
        return collaborative_learning(*given, validate, checkpoint)

    def vote(self, run: Run, samples: Embedded, references: Embedded) -> Floats:
        scores = scores_by(similarity_means(run, self.kernel, samples, references), "parzen").double().numpy()
        return scores if run.conditions > 1 else scores[:, 1]


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
        if absent := set(range(f.shape[1])) - set(y.tolist()):
            raise InputError(
                f"inference.validation_samples: found none of class {min(absent)} among {len(y)}, expected some of each, by "
                "which turns of classes are measured. Raise it"
            )
        self.last = [float(roc_auc_score(y == k, f[:, k])) for k in range(f.shape[1])]
        self.own = [*(self.own if condition else []), self.last[condition or 0]]

    def change(self) -> Epoch:
        """Return `turn_change`: ROC-AUC after the last turn minus that after its own, a mean over all classes but the last."""
        changes = [last - own for last, own in zip(self.last[:-1], self.own[:-1], strict=True)]
        return {"turn_change": sum(changes) / len(changes)}


class AlignmentMaximised(CLaI):
    """CLaI's encoder and kernel, trained to maximise the alignment A itself (equation 5): a control of claim 9."""

    learn = Network.learn
    centred = False

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        """Return 1 minus the mean over conditions of the alignment of one half of a batch with the other."""
        z = Network.forward(self, run, x)
        signs, half = one_vs_rest(labels, run.conditions).to(z.dtype), len(labels) // 2
        target = target_matrix(signs[:, :half], signs[:, half:], run.training.target)
        return 1 - alignment_scores(self.kernel(z[:, :half], z[:, half:]), target)[self.centred].mean()


class CentredAlignmentMaximised(AlignmentMaximised):
    """The same with the centred alignment, to which a constant similarity adds nothing."""

    centred = True
