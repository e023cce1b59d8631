"""Which run: dataset or study, model or cell, seed and test fold."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, order=True)
class RunId:
    """The identity of a run, the only place that knows how a run's folder is named.

    name: key of a dataset or study. cell: the model of a dataset, or the cell of a study. fold: test fold of recordings, or None.

    >>> str(RunId("challenge2019", "gp", 0, 3))
    'challenge2019/gp/seed0/fold3'
    """

    name: str
    cell: str
    seed: int
    fold: int | None = None

    def __str__(self) -> str:
        return f"{self.name}/{self.cell}/{self.replicate}"

    @property
    def replicate(self) -> str:
        """Return `seed0`, or `seed0/fold3` where there are folds."""
        return f"seed{self.seed}" + ("" if self.fold is None else f"/fold{self.fold}")

    @classmethod
    def parse(cls, text: str | Path) -> Self:
        """Read the identity from a run's name, or from the path of one of its files; raise ValueError if it names no run.

        >>> RunId.parse("results/mini/cifar10/clai-m/seed1/metrics.csv")
        RunId(name='cifar10', cell='clai-m', seed=1, fold=None)
        """
        match = re.search(r"(?:^|/)([^/]+)/([^/]+)/seed(\d+)(?:/fold(\d+))?(?=/|$)", str(text))
        if match is None:
            raise ValueError(
                f"{text} names no run: expected <dataset or study>/<model or cell>/seed<n>, then /fold<n> where there are folds"
            )
        name, cell, seed, fold = match.groups()
        return cls(name, cell, int(seed), None if fold is None else int(fold))
