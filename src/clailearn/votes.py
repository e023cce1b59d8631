"""References, and the vote of each about the predicted class of an input."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clailearn.inference import Rule
from clailearn.kernels import Kernel


class Vote(NamedTuple):
    """The vote of one reference: its position in the training data, its class, its similarity in [-1, 1], its vote, its file.

    For the rule `printed` the vote is similarity times weight, with the opposite sign for a reference of another class. The
    weights of all references add up to 1. The file is empty where the data were no folder of pictures.
    """

    item: int
    label: Any
    similarity: float
    vote: float
    file: str = ""


class Votes(NamedTuple):
    """The strongest votes about the predicted class of one input.

    Attributes:
        label: the predicted class.
        score: f of this class, the sum of the votes of all references of the model.
        support: the most similar references of the predicted class, the most similar first.
        opposition: the most similar references of other classes, likewise.
    """

    label: Any
    score: float
    support: list[Vote]
    opposition: list[Vote]


class References(NamedTuple):
    """References: embeddings (K, R, L), class indices (R,), positions in the training data (R,), members of each class (C,).

    `files` (R,) names the picture of each, where the data were a folder of pictures.
    The members of a class are those of the whole training data, for whom its references stand.
    """

    z: Tensor
    y: Tensor
    item: Tensor
    population: Tensor
    files: Sequence[str] = ()

    def with_others(self, z: Tensor, y: Tensor, item: Tensor) -> "References":
        """Return these references and others, each of which stands for itself."""
        y = y.to(self.y.device)
        population = self.population + torch.bincount(y, minlength=len(self.population))
        return References(
            torch.cat([self.z, z], dim=1), torch.cat([self.y, y]), torch.cat([self.item, item]), population
        )

    def only(self, kept: Tensor) -> "References":
        """Return those at the rows that `kept` (R,) says; of the members of a class, one a reference leaves with the others."""
        kept = kept.to(self.y.device)
        population = self.population - torch.bincount(self.y[~kept], minlength=len(self.population))
        return References(self.z[:, kept], self.y[kept], self.item[kept.to(self.item.device)], population)

    def renumbered(self, numbers: Tensor, classes: int) -> "References":
        """Return them with the numbers (C,) for their classes, 0 to `classes` - 1; -1 for a class that has none of them."""
        numbers = numbers.to(self.y.device)
        population = self.population.new_zeros(classes)
        population[numbers[numbers >= 0]] = self.population[numbers >= 0]
        return self._replace(y=numbers[self.y], population=population)


@torch.no_grad()
def strongest_votes(
    kernel: Kernel,
    views: Sequence[Tensor],
    references: References,
    scores: NDArray[np.float64],
    classes: Sequence[Any],
    rule: Rule,
    k: int,
) -> Iterator[Votes]:
    """Yield the k most similar references for and against the predicted class of each input.

    Args:
        views: embeddings (K, P, L) of the inputs; of several views of them, the mean similarity counts.
        scores: of the inputs, `clailearn.inference.scores_by`.
        classes: the names of the classes (C,).
    """
    z_reference, y, item, population, files = references
    weights = (population.to(z_reference.dtype) / torch.bincount(y, minlength=len(population)) / population.sum())[y]
    for row, label in enumerate(scores.argmax(1).tolist()):
        condition = label if len(z_reference) > 1 else 0
        logs = [kernel.log_parzen(z[condition, row : row + 1], z_reference[condition])[0] for z in views]
        log_parzen = torch.stack(logs).logsumexp(0) - math.log(len(logs))
        similarity = 2 * log_parzen.exp() - 1
        vote = _votes(rule, y == label, weights, log_parzen)
        order = similarity.argsort(descending=True, stable=True)
        sides = [
            [
                Vote(int(item[n]), classes[int(y[n])], float(similarity[n]), float(vote[n]), files[n] if files else "")
                for n in order[side[order]][:k].tolist()
            ]
            for side in (y == label, y != label)
        ]
        score = vote.sum() if rule == "parzen" else scores[row, label]
        yield Votes(classes[label], float(score), *sides)


def _votes(rule: Rule, own: Tensor, weights: Tensor, log_parzen: Tensor) -> Tensor:
    """Return the vote of each reference (R,) for the class of the references `own` (R,); their sum is its f by the rule.

    weights: share (R,) of the training data for which a reference stands.
    """
    sign = torch.where(own, 1.0, -1.0).to(log_parzen.dtype)
    if rule == "parzen":
        return sign * (weights.log() + log_parzen).softmax(0)
    similarity, share = 2 * log_parzen.exp() - 1, weights[own].sum()
    if rule == "centred":
        sign = sign - (2 * share - 1)
    if rule == "balanced":
        sign = sign / torch.where(own, share, 1 - share)
    return sign * weights * similarity
