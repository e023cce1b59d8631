"""The check of a GPU: whether the method is exact, repeatable and fast on it, each part in a file of its own.

`run_parts` writes the findings of the parts (`benchmark.gpu_parts`) with the record of the machine. It leaves out parts that
an earlier call has done, so that a check may take several calls.
"""

import csv
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.gpu_parts import (
    Check,
    Finding,
    Skipped,
    Watched,
    exactness,
    rate,
    repetition,
    synchronisation,
)

from clai.errors import InputError
from clai.trainer import Epoch
from replication.datasets.fetch import DownloadLimits, obtain
from replication.datasets.prepare import prepare
from replication.models.run import Run
from replication.models.training import train_clai
from replication.runs.identity import RunId
from replication.runs.record import Recorder, digest, file_digest

logger = logging.getLogger("replication")


RECORD = 0.94  # accuracy on CIFAR-10 at which Jordan (2024, arXiv 2404.00498) measures time
FULL_WIDTH = {"trunk": "resnet2d", "width": 64, "blocks": [2, 2, 2, 2], "pool": False}
SEEDS = range(5)  # of the full-width network


def accuracy(check: Check, name: str, seed: int, case: Mapping[str, Any]) -> list[Finding]:
    """Train CLaI on CIFAR-10 and take the seconds of training until the validation accuracy reaches each mark."""
    entry = check.settings["datasets"]["cifar10"]
    if entry["path"] is None:
        raise Skipped("datasets.cifar10.path is null; name your copy of CIFAR-10 in local.yaml")
    folder = check.folder / f"cifar10-{digest(entry)}"
    if not (folder / "dataset.json").exists():
        table = check.repository / "workflow" / "config" / "data_sources.csv"
        raw = obtain("cifar10", entry, table, check.folder, None, DownloadLimits(0, 0, 60, 1), False)
        prepare(raw, folder, entry, check.settings["split_seed"])
    settings = {**case, "device": check.device.type}
    run = Run.open(folder / "dataset.json", settings, RunId("cifar10", name, seed))
    path, files = check.folder / f"{name}.pt", [str(folder / "dataset.json"), *check.code()]
    fingerprint = run.checkpoint(path, 30, files).fingerprint
    with Watched(path, fingerprint, 30, lambda _: time.monotonic() > check.deadline) as checkpoint:
        _, history = train_clai(run, checkpoint)
    seconds = [epoch["training"] for epoch in checkpoint.epochs]
    marks = {"the paper's accuracy": _printed_accuracy(check.repository), "the record's accuracy": RECORD}
    return [
        Finding("validation accuracy", history[-1]["validation_accuracy"]),
        Finding("seconds of training", sum(seconds)),
        *(
            Finding(f"seconds to {what}, {mark:.4g}", seconds_to(mark, history, seconds))
            for what, mark in marks.items()
        ),
        Finding("resumed after", "; ".join(checkpoint.resumed)),
    ]


def seconds_to(mark: float, history: Sequence[Epoch], seconds: Sequence[float]) -> float | None:
    """Return the seconds of all epochs up to the first one whose validation accuracy is at least `mark`; None if none is."""
    reached = [number for number, row in enumerate(history, 1) if row["validation_accuracy"] >= mark]
    return sum(seconds[: reached[0]]) if reached else None


def parts(check: Check) -> dict[str, Callable[[Check], list[Finding]]]:
    """Return all parts by name, in the order in which they run. The last ones train the full-width ResNet-18."""
    found: dict[str, Callable[[Check], list[Finding]]] = {
        "exactness": exactness, "repetition": repetition, "synchronisation": synchronisation, "rate": rate,
    }  # fmt: skip
    for name, case in check.cases().items():
        found[f"accuracy-{name}"] = partial(accuracy, name=f"accuracy-{name}", seed=0, case=case)
    wide = {**check.cases()["cifar10"], "encoder": {**check.settings["encoder"], **FULL_WIDTH}}
    for seed in SEEDS:
        found[f"resnet18-{seed}"] = partial(accuracy, name=f"resnet18-{seed}", seed=seed, case=wide)
    return found


def run_parts(check: Check, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Run the parts whose names begin with one of `wanted`, but for those that are done; write and return the report.

    Each part leaves `<part>.json`, and all together `report.json` and `report.csv`: part, status, quantity, value, expected,
    holds. A part is done once it has findings of this code, these settings, this device and this version of torch.

    Raises:
        InputError: no part has a wanted name.
    """
    known = parts(check)
    chosen = [name for name in known if any(name.startswith(prefix) for prefix in wanted)]
    if not chosen:
        raise InputError(f"--parts: found {', '.join(wanted)}, expected names or beginnings of {', '.join(known)}")
    check.folder.mkdir(parents=True, exist_ok=True)
    code = file_digest(check.code())
    report = []
    for name in chosen:
        recorder = Recorder(RunId("gpu-check", name, 0), check.settings, {"files": []}, check.device.type)
        same = digest([check.settings, code, recorder.record["hardware"], recorder.record["versions"]["torch"]])
        file = check.folder / f"{name}.json"
        done = json.loads(file.read_text()) if file.exists() else {}
        if done.get("fingerprint") != same or done.get("status") != "done":
            logger.info("%s: begun", name)
            done = {"part": name, "fingerprint": same, **_outcome(check, known[name])}
            done["record"] = recorder.finish(command="make gpu-check")
            file.write_text(json.dumps(done, indent=1) + "\n")
        logger.info("%s: %s", name, done["status"])
        report.append(done)
    (check.folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    with (check.folder / "report.csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["part", "status", "quantity", "value", "expected", "holds"])
        for part in report:
            rows = part["findings"] or [{}]
            writer.writerows([part["part"], part["status"], *map(row.get, Finding.__annotations__)] for row in rows)
    return report


def _outcome(check: Check, part: Callable[[Check], list[Finding]]) -> dict[str, Any]:
    """Return `status` and `findings` of a part; what goes wrong in one part leaves the others alone."""
    try:
        if time.monotonic() > check.deadline:
            return {"status": "not begun: no time was left; run the same command again", "findings": []}
        return {"status": "done", "findings": [vars(finding) for finding in part(check)]}
    except SystemExit:
        return {"status": "unfinished: no time was left; the same command goes on", "findings": []}
    except Skipped as reason:
        return {"status": f"skipped: {reason}", "findings": []}
    except ModuleNotFoundError as error:
        return {"status": f"skipped: found no {error.name}, which this part needs; install it", "findings": []}
    except Exception as error:
        logger.exception("this part failed")
        return {"status": f"failed: {error}", "findings": []}


def _printed_accuracy(repository: Path) -> float:
    """Return the accuracy on CIFAR-10 that the paper prints."""
    with (repository / "workflow" / "config" / "printed_values.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if (row["table"], row["row"], row["metric"]) == ("table1", "cifar10", "accuracy"):
                return float(row["value"]) / 100
    raise LookupError("printed_values.csv has no accuracy of cifar10 in table1")
