"""Rows of the benchmark, and the clock that fills them.

The variants of a comparison run in turn within each repetition, in an order that rotates. So a ratio compares times of
the same repetition, and a machine that slows down does so for all variants.
"""

import time
from collections.abc import Callable, Mapping

import torch

Row = tuple[str, str, str, int, str, float]
COLUMNS = ["comparison", "variant", "setting", "repetition", "quantity", "value"]

Preparation = tuple[str, Callable[[], Callable[[], object]]]
"""The setting of a variant, and a function that prepares it and returns the part to be timed."""


def time_in_turn(
    comparison: str,
    preparations: Mapping[str, Preparation],
    repetitions: int,
    device: torch.device,
    warm_up: bool = True,
) -> list[Row]:
    """Return the seconds of each variant in each repetition.

    Args:
        preparations: by variant.
        warm_up: whether to run each variant once before, untimed.
    """
    rows: list[Row] = []
    variants = list(preparations)
    if warm_up:
        for _, prepare in preparations.values():
            prepare()()
    for repetition in range(repetitions):
        first = repetition % len(variants)
        for variant in variants[first:] + variants[:first]:
            setting, prepare = preparations[variant]
            run = prepare()
            wait(device)
            start = time.perf_counter()
            run()
            wait(device)
            rows.append((comparison, variant, setting, repetition, "seconds", time.perf_counter() - start))
    return rows


def wait(device: torch.device) -> None:
    """Return when the device has finished all queued work; a GPU runs asynchronously."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
