"""The votes of single references about the predicted class of an input."""

from typing import NamedTuple

from torch import Tensor


class Vote(NamedTuple):
    """The vote of one reference: its position in the training data, its class, its similarity in [-1, 1], and its vote.

    The vote is similarity times weight, negative for a reference of another class. The weights of all references add up to 1.
    """

    item: int
    label: str
    similarity: float
    vote: float


class Votes(NamedTuple):
    """The strongest votes about the predicted class of one input.

    Attributes:
        label: the predicted class.
        score: f of this class, the sum of the votes of all references of the model.
        support: the most similar references of the predicted class, the most similar first.
        opposition: the most similar references of other classes, likewise.
    """

    label: str
    score: float
    support: list[Vote]
    opposition: list[Vote]


class References(NamedTuple):
    """References: embeddings (K, R, L), class indices (R,), positions in the training data (R,), members of each class (C,).

    The members of a class are those of the whole training data, for whom its references stand.
    """

    z: Tensor
    y: Tensor
    item: Tensor
    population: Tensor
