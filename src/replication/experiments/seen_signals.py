"""Claim 11's quantities on embeddings as the kernel sees them, and without their norm."""

import numpy as np
import pandas as pd
import torch

from clai.kernels import Kernel
from replication.experiments.latent_signals import latent_statistics
from replication.models.embedding import Embedded
from replication.models.run import Run
from replication.models.splits import recording_rows

SEEN = {"seen": "as the kernel sees it", "unit": "on unit vectors"}
"""The forms of an embedding, by the ending of its quantities: the kernel's coordinates, and these at unit length."""


@torch.no_grad()
def seen_statistics(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Return `latent_statistics` of a run's test samples in each form of `SEEN`.

    The raw embedding of CLaI-C has a norm that the cosine kernel ignores, and that of CLaI-M directions that M may ignore.

    Args:
        run: of recordings.
        kernel: gives the coordinates in which distances order pairs as it does.
        test: the embedding of the run's test samples, one condition.

    Returns:
        Columns quantity (such as `area_effect_seen`) and value.
    """
    recording, y = (np.asarray(run.data[f"{name}_all"]) for name in ("groups", "y"))
    rows = recording_rows(run.data, run.settings, run.id)[2]
    seen = kernel.coordinates(test.z[0]).double()
    forms = {"seen": seen, "unit": torch.nn.functional.normalize(seen, dim=-1)}
    found = [
        (f"{quantity}_{form}", value)
        for form, z in forms.items()
        for quantity, value in latent_statistics(z.numpy(), recording[rows], y[rows]).items()
        if quantity != "n_stays"
    ]
    return pd.DataFrame(found, columns=["quantity", "value"])
