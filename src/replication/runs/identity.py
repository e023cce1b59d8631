"""Which run: dataset or study, model or cell, seed and test fold."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, order=True)
class RunId:
    """The identity of a run. It is the only place that knows how a run's folder is named.

    dataset, model: keys of a dataset and a model, or of a study and its cell. seed: of initialisation, shuffling and validation
    samples. fold: test fold of recordings; None for datasets with a fixed test set.

    >>> str(RunId("challenge2019", "gp", 0, 3))
    'challenge2019/gp/seed0/fold3'
    """

    dataset: str
    model: str
    seed: int
    fold: int | None = None

    def __str__(self) -> str:
        return f"{self.dataset}/{self.model}/{self.replicate}"

    @property
    def replicate(self) -> str:
        """Return `seed0`, or `seed0/fold3` where there are folds."""
        return f"seed{self.seed}" + ("" if self.fold is None else f"/fold{self.fold}")

    @classmethod
    def parse(cls, text: str | Path) -> Self:
        """Read the identity from a run's name, or from the path of one of its files.

        >>> RunId.parse("results/mini/cifar10/clai-m/seed1/metrics.csv")
        RunId(dataset='cifar10', model='clai-m', seed=1, fold=None)

        Raises:
            ValueError: the text names no run.
        """
        match = re.search(r"(?:^|/)([^/]+)/([^/]+)/seed(\d+)(?:/fold(\d+))?(?=/|$)", str(text))
        if match is None:
            raise ValueError(
                f"{text} names no run: expected <dataset>/<model>/seed<n>, then /fold<n> where there are folds"
            )
        dataset, model, seed, fold = match.groups()
        return cls(dataset, model, int(seed), None if fold is None else int(fold))
