"""Measure what torch.compile costs and gains in training: `python benchmarks/compile.py --threads 2`.

For each trunk of `benchmark.epoch.encoders`: seconds of the first epoch of CLaI-M, compiled and not, whose difference is the
time to compile; then epochs of both in turn. A compiler for C++ must be installed.
"""

import argparse
import logging
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from replication.benchmark.epochs import prepare_epoch
from replication.models.hardware import choose_device, choose_precision
from replication.runs.record import hardware
from replication.runs.settings import benchmark_settings, load_settings

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--items", type=int, default=2048, help="images in an epoch")
arguments.add_argument("--repetitions", type=int, default=5)
given = arguments.parse_args()


def seconds(run: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


torch.set_num_threads(given.threads)
logging.getLogger("clai").setLevel(logging.WARNING)
settings = benchmark_settings(load_settings(Path(__file__).parents[1]))
device = choose_device(settings["device"])
precision = choose_precision(settings["training"]["precision"], device)
print(
    f"{hardware(device.type)}; device {device}, {given.threads} threads, trunk in {precision}, torch {torch.__version__}"
)
for encoder in settings["benchmark"]["epoch"]["encoders"]:
    runs = {}
    for name in ("eager", "compiled"):
        training = {**settings["training"], "precision": precision, "compile": name == "compiled"}
        own = {**settings, "encoder": {**settings["encoder"], **encoder}, "training": training}
        runs[name] = prepare_epoch(own, given.items, 32, 10, device)
    first = {name: seconds(run) for name, run in runs.items()}
    ratios = [seconds(runs["compiled"]) / seconds(runs["eager"]) for _ in range(given.repetitions)]
    print(
        f"{encoder}: {first['compiled'] - first['eager']:.0f} s to compile; an epoch then takes {np.median(ratios):.3f} times "
        f"as long ({min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} repetitions)",
        flush=True,
    )
