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
from replication.benchmark.training import IMAGE_SIZE, measure_exact, measure_joint, measure_scaling
from replication.runs.outputs import BENCHMARK_TITLE

SIZES: dict[str, dict[str, Any]] = {
    # An epoch of one class: Algorithm 3 as printed against the same gradient at less cost. Batches of 64, so that the trunk
    # dominates.
    "exact": {"repetitions": 3, "batches": 16, "batch_size": 64, "check_batches": 4, "check_batch_size": 8},
    # An epoch: all classes in one pass against one class after another.
    "joint": {"repetitions": 3, "batches": 8, "batch_size": 32, "classes": 10},
    # An epoch: CLaI with one reference against other losses and the bare trunk.
    "epoch": {
        "repetitions": 5,
        "encoders": [{"trunk": "resnet2d", "width": 16}, {"trunk": "convnet", "width": 48}],
        "items": 1024,
        "image_size": IMAGE_SIZE,
        "classes": 10,
    },
    # An epoch of CLaI-M for two classes, with all instructions of the processor and with those of one without native bfloat16.
    "precision": {
        "repetitions": 5,
        "encoders": [{"trunk": "resnet2d", "width": 16}, {"trunk": "convnet", "width": 32}],
        "items": 256,
        "image_size": IMAGE_SIZE,
        "instructions": ["DEFAULT", "AVX2"],
    },
    # An epoch of each schedule against the numbers of batches and of classes.
    "scaling": {
        "repetitions": 3,
        "batch_size": 16,
        "batches": [2, 4, 8, 16],
        "classes": [2, 5, 10, 20],
        "classes_of_batches": 10,
        "batches_of_classes": 4,
    },
    # The vote of Algorithm 4 against the streamed vote.
    "inference": {
        "repetitions": 3,
        "test": 10000,
        "references": 50000,
        "classes": 10,
        "batch_size": 125,
        "printed_classes": {"cosine": 10, "gaussian": 1},
        "check_test": 500,
        "check_references": 5000,
    },
    # Prediction from the same embeddings: the streamed vote against classifiers of scikit-learn.
    "classifiers": {"repetitions": 5, "test": 2000, "references": 10000, "classes": 10},
    # Votes of sampled references against the vote of all; `share` is that of the rare class in a case with two.
    "sampling": {
        "repetitions": 5,
        "test": 2000,
        "references": 50000,
        "classes": 10,
        "share": 0.02,
        "numbers": [200, 500, 1000, 2000, 5000, 10000, 20000],
    },
}
"""Arguments of each comparison."""
MINIATURE_SIZES: dict[str, dict[str, Any]] = {
    "exact": {"repetitions": 2, "batches": 4, "batch_size": 8, "check_batches": 3, "check_batch_size": 6},
    "joint": {"repetitions": 2, "batches": 3, "batch_size": 8, "classes": 4},
    "epoch": {
        "repetitions": 2,
        "encoders": [{"trunk": "resnet2d", "width": 8}, {"trunk": "convnet", "width": 4}],
        "items": 256,
        "image_size": 16,
        "classes": 4,
    },
    "precision": {
        "repetitions": 2,
        "encoders": [{"trunk": "resnet2d", "width": 8}],
        "items": 128,
        "image_size": 16,
        "instructions": ["DEFAULT"],
    },
    "scaling": {
        "repetitions": 2,
        "batch_size": 8,
        "batches": [2, 4],
        "classes": [2, 4],
        "classes_of_batches": 2,
        "batches_of_classes": 2,
    },
    "inference": {
        "repetitions": 2,
        "test": 200,
        "references": 1000,
        "classes": 4,
        "batch_size": 125,
        "printed_classes": {"cosine": 4, "gaussian": 1},
        "check_test": 50,
        "check_references": 250,
    },
    "classifiers": {"repetitions": 2, "test": 50, "references": 200, "classes": 4},
    "sampling": {
        "repetitions": 2,
        "test": 100,
        "references": 2000,
        "classes": 4,
        "share": 0.02,
        "numbers": [40, 200, 1000],
    },
}

logger = logging.getLogger(__name__)


def measure_all(settings: Mapping[str, Any], device: torch.device) -> pd.DataFrame:
    """Run all comparisons and return their rows, with the columns `COLUMNS`.

    Args:
        settings: those of config.yaml for one dataset; with `miniature`, the comparisons have `MINIATURE_SIZES`.
    """
    measures: dict[str, Callable[..., list[Row]]] = {
        "exact": measure_exact, "joint": measure_joint, "epoch": measure_epochs,
        "precision": measure_precisions, "scaling": measure_scaling, "inference": measure_inference,
        "classifiers": measure_classifiers, "sampling": measure_sampling,
    }  # fmt: skip
    sizes = MINIATURE_SIZES if settings["miniature"] else SIZES
    rows: list[Row] = []
    training = logging.getLogger("clai")
    level = training.level
    training.setLevel(logging.WARNING)  # A line for each epoch would be many, and would be timed.
    logger.setLevel(logging.INFO)
    try:
        for name, measure in measures.items():
            start = time.perf_counter()
            rows += measure(**sizes[name], settings=settings, device=device)
            logger.info("%s measured in %.0f s", name, time.perf_counter() - start)
    finally:
        training.setLevel(level)
    return pd.DataFrame(rows, columns=COLUMNS)


def describe(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `dataset.json` of the evidence: the benchmark measures random data."""
    title = BENCHMARK_TITLE + (" (miniature synthetic)" if settings["miniature"] else "")
    return {"title": title, "miniature": settings["miniature"], "source": "random", "files": [], "licence": "generated"}
