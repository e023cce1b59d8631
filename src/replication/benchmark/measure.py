"""The benchmark: time and memory of training and inference, and the error that sampled references add.

Each comparison gives tidy rows (`replication.benchmark.timing.COLUMNS`) of these quantities:

seconds
    Of an epoch, or of the vote or the predictions on all test samples.
predicted
    Seconds that the trunk's forward and backward passes would take alone: their number times the times of a bare pass in
    the same repetition.
difference
    The largest difference between two results that should be equal.
peak_memory_mb
    Peak memory (MiB) of a process that does nothing else; on CUDA, of its device memory.
error, stated, changed
    See `replication.benchmark.inference.measure_sampling`.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import torch

from replication.benchmark.classifiers import measure_classifiers
from replication.benchmark.epochs import measure_epochs, measure_precisions
from replication.benchmark.inference import measure_inference, measure_sampling
from replication.benchmark.timing import COLUMNS, Row
from replication.benchmark.training import measure_exact, measure_joint, measure_scaling

logger = logging.getLogger(__name__)


def measure_all(settings: Mapping[str, Any], device: torch.device) -> pd.DataFrame:
    """Run all comparisons and return their rows, with the columns `COLUMNS`.

    Args:
        settings: those of config.yaml for one dataset, with its `benchmark` block.
    """
    measures: dict[str, Callable[..., list[Row]]] = {
        "exact": measure_exact, "joint": measure_joint, "epoch": measure_epochs,
        "precision": measure_precisions, "scaling": measure_scaling, "inference": measure_inference,
        "classifiers": measure_classifiers, "sampling": measure_sampling,
    }  # fmt: skip
    rows: list[Row] = []
    training = logging.getLogger("clai")
    level = training.level
    training.setLevel(logging.WARNING)  # A line for each epoch would be many, and would be timed.
    logger.setLevel(logging.INFO)
    try:
        for name, measure in measures.items():
            start = time.perf_counter()
            rows += measure(**settings["benchmark"][name], settings=settings, device=device)
            logger.info("%s measured in %.0f s", name, time.perf_counter() - start)
    finally:
        training.setLevel(level)
    return pd.DataFrame(rows, columns=COLUMNS)


def describe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `dataset.json` of the evidence: the benchmark measures random data."""
    title = settings["benchmark"]["title"] + (" (miniature synthetic)" if settings["miniature"] else "")
    return {"title": title, "miniature": settings["miniature"], "source": "random", "files": [], "licence": "generated"}
