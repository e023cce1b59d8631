"""How well a model notices what its training did not have: classes that it left out, blends of samples, and noise.

Every model has three scores that are high for familiar samples. Its own is the largest f of a vote, or of other models their
`familiarity`. The Parzen density and the nearest reference see its embedding alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from clailearn.batches import Items
from clailearn.inference import decide, parzen_means
from replication.models.base import Floats, Network, View
from replication.models.clai import CLaI
from replication.models.embedding import Embedded, coordinates, embed
from replication.models.run import Run

OUTSIDE: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "blends": lambda x, generator: (x + x[torch.randperm(len(x), generator=generator)]) / 2,
    "noise": lambda x, generator: torch.randn(x.shape, generator=generator).to(x),
}
"""What stands in for test inputs, by name: the mean of two drawn ones, and normal noise. Inputs are standardised."""


class Replaced(Items):
    """Items whose inputs are replaced by those of an outside set; the seed draws them."""

    def __init__(self, items: Items, replace: Callable[[Tensor, torch.Generator], Tensor], seed: int) -> None:
        self.items, self.replace, self.seed = items, replace, seed
        self.labels, self.inputs = items.labels, items.inputs

    def __len__(self) -> int:
        return len(self.items)

    def batch(self, items: Tensor, generator: torch.Generator | None) -> tuple[Any, Tensor]:
        x, labels = self.items.batch(items, generator)
        return self.replace(x, torch.Generator().manual_seed(self.seed + int(items[0]))), labels


def measure_unseen(run: Run, model: Network, view: View) -> pd.DataFrame:
    """Return by score (`rule`) and outside set (`shares`) the AUROC of telling test samples from it: metric unseen_auroc.

    References are the run's training samples, of the classes that training had. Test samples are those of these classes;
    `left-out` are those of the others.
    """
    references = embed(run, view.module, run.splits.train)
    inside, *outside = (
        _scores(run, model, view, references, items)
        for items in (
            run.whole.test,
            *(Replaced(run.splits.test, replace, run.id.seed) for replace in OUTSIDE.values()),
        )
    )
    new = np.isin(run.whole.test.labels.numpy(), run.left_out)
    rows = []
    for score, values in inside.items():
        sets = {"left-out": values[new], **{name: of[score] for name, of in zip(OUTSIDE, outside, strict=True)}}
        for name, others in sets.items():
            familiar = np.concatenate([values[~new], others])
            known = np.arange(len(familiar)) < (~new).sum()
            rows.append((score, name, "unseen_auroc", roc_auc_score(known, familiar)))
    return pd.DataFrame(rows, columns=["rule", "shares", "metric", "value"])


@torch.no_grad()
def _scores(run: Run, model: Network, view: View, references: Embedded, items: Items) -> dict[str, Floats]:
    """Return each score (N,) of items, high for familiar ones."""
    z = embed(run, view.module, items).z
    kernel = view.kernel.cpu().eval()
    means = parzen_means(kernel, z, references.z, references.y, classes=run.classes)
    f = decide(means, "printed").amax(0).double().numpy()
    own = f if isinstance(model, CLaI) else model.familiarity(run, items)
    # Under every condition positives and negatives together are all references; conditions count alike.
    of_condition = torch.logaddexp(means.share.log() + means.log_positive, (-means.share).log1p() + means.log_negative)
    x, x_references = (coordinates(kernel, part).numpy() for part in (z, references.z))
    distances = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(x_references).kneighbors(x)[0]
    return {
        "own": own,
        "density": of_condition.logsumexp(0).double().numpy(),
        "nearest": -distances[:, 0],
    }
