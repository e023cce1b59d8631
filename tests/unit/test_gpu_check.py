"""The check of a GPU runs on a CPU as far as it can, without most packages, and sees what it is there to see."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from replication.benchmark import gpu_parts
from replication.benchmark.gpu_check import accuracy, seconds_to
from replication.benchmark.gpu_parts import Check, Finding
from replication.models.training import Trained
from replication.runs.settings import load_settings, merge

REPOSITORY = Path(__file__).parents[2]
ABSENT = (
    "duckdb", "edfio", "gpytorch", "jsonschema", "matplotlib", "medmnist", "mne", "pytorch_metric_learning",
    "requests", "snakemake", "studenttmixture", "torchvision",
)  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine that has only what the command says it needs."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({ABSENT}))\n")
    return os.environ | {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures in the form of CIFAR-10 and settings that name them."""
    folder, generator = tmp_path_factory.mktemp("check"), np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 2)):
        for label in range(10):
            place = folder / "pictures" / split / f"class{label}"
            place.mkdir(parents=True)
            for number in range(count):
                pixels = generator.integers(0, 128, (32, 32, 3), dtype=np.uint8)
                pixels[:, 3 * label : 3 * label + 3] += 120
                Image.fromarray(pixels).save(place / f"{number}.png")
    source = {"source": "image_folder", "path": str(folder / "pictures"), "validation_share": 0.2}
    (folder / "own.yaml").write_text(json.dumps({"datasets": {"cifar10": source}}))
    return folder


def checked(environment: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "gpu_check.py"), *options]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False, cwd="/")


def test_on_a_cpu_all_parts_run_but_that_of_cuda_and_none_runs_twice(bare: dict[str, str], folder: Path) -> None:
    options = ("--device", "cpu", "--tiny", "--configfile", str(folder / "own.yaml"), "--out", str(folder / "out"))
    options += ("--seconds", "36000")  # a busy machine is no failure
    done = checked(bare, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    report = {part["part"]: part for part in json.loads((folder / "out" / "report.json").read_text())}
    cuda = report.pop("synchronisation")
    assert cuda["status"] == "skipped: only CUDA can tell where the host waits for it"
    assert {"exactness", "repetition", "rate", "accuracy-cifar10"} <= report.keys()
    assert {part["status"] for part in report.values()} == {"done"}
    for part in report.values():
        assert part["record"]["hardware"]
        assert part["record"]["versions"]["torch"] == metadata.version("torch")
    for name in ("exactness", "repetition"):
        assert all(finding["holds"] for finding in report[name]["findings"])
        assert len(report[name]["findings"]) >= 4
    fractions = [f["value"] for f in report["rate"]["findings"] if f["quantity"].startswith("fraction")]
    assert len(fractions) >= 2
    assert all(0 < value < 1 for value in fractions)
    quantities = {finding["quantity"]: finding["value"] for finding in report["accuracy-cifar10"]["findings"]}
    assert {"seconds to the paper's accuracy, 0.8046", "seconds to the record's accuracy, 0.94"} <= quantities.keys()
    assert quantities["seconds of training"] > 0
    with (folder / "out" / "report.csv").open() as table:
        assert {row["part"] for row in csv.DictReader(table)} == {*report, "synchronisation"}

    before = {path: path.read_bytes() for path in (folder / "out").glob("*.json") if path.stem in report}
    again = checked(bare, *options)
    assert again.returncode == 0, again.stderr
    assert "begun" not in again.stdout.replace("synchronisation: begun", "")
    assert {path: path.read_bytes() for path in before} == before


def test_no_part_begins_once_the_time_is_over(bare: dict[str, str], folder: Path) -> None:
    options = ("--device", "cpu", "--tiny", "--out", str(folder / "short"), "--parts", "rate", "--seconds", "0")
    done = checked(bare, *options)
    assert "rate: not begun: no time was left" in done.stdout
    assert done.returncode == 0


def test_what_is_missing_is_said(bare: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "sitecustomize.py"
    path.write_text("import sys\nsys.modules['scipy'] = None\n")
    done = checked(bare | {"PYTHONPATH": str(tmp_path)}, "--device", "cpu")
    assert "found no module scipy" in done.stderr
    assert done.returncode == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_the_command_says_so(bare: dict[str, str]) -> None:
    done = checked(bare)
    assert "gpu-check: found no CUDA device, expected one" in done.stderr
    assert done.returncode == 1


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """A small check of one case."""
    cases = Check.cases
    monkeypatch.setattr(Check, "cases", lambda self: {"cifar10": cases(self)["cifar10"]})
    whole, small = load_settings(REPOSITORY), load_settings(REPOSITORY, mini=True)
    settings = merge(whole, {key: small[key] for key in ("encoder", "training", "inference", "studies", "variants")})
    return Check(REPOSITORY, settings, torch.device("cpu"), tmp_path, float("inf"), 64)


def test_a_training_that_does_not_repeat_is_found(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = gpu_parts.train_clai, []

    def unsteady(*given: Any) -> tuple[Trained, Any]:
        trained, history = original(*given)
        calls.append(1)
        with torch.no_grad():
            trained.encoder.head.bias += len(calls)
        return trained, history

    monkeypatch.setattr(gpu_parts, "train_clai", unsteady)
    findings = gpu_parts.repetition(check)
    assert not any(finding.holds for finding in findings)


def test_a_resumed_training_is_one_that_was_interrupted(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    original, resumed = gpu_parts.train_clai, []

    def noted(run: Any, checkpoint: Any) -> Any:
        try:
            return original(run, checkpoint)
        finally:
            resumed.append(list(checkpoint.resumed))

    monkeypatch.setattr(gpu_parts, "train_clai", noted)
    gpu_parts.repetition(check)
    assert resumed[:4] == [[], [], [], ["step 2 of 4 of epoch 2"]]


def test_a_step_that_waits_is_named_with_its_place(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA's errors are raised by a stand-in."""
    modes = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    cuda = type("Device", (), {"type": "cuda"})()
    kept = check.run

    def run(self: Check, *given: Any, **named: Any) -> Any:
        return kept(*given, **named)

    monkeypatch.setattr(Check, "run", run)
    watched = Check(check.repository, check.settings, cuda, check.folder, check.deadline, 64)
    monkeypatch.setattr(Check, "_fixed", lambda self, case: merge(case, {"training": {"precision": "float32"}}))
    findings = gpu_parts.synchronisation(watched)
    assert [finding.holds for finding in findings] == [True] * len(findings)
    assert modes[:10] == ["default", *["error"] * 6, "default", "default", "default"]

    def waits(*_: Any) -> Any:
        raise RuntimeError("called a synchronizing CUDA operation\nmore")

    monkeypatch.setattr("clai.learning.alignment_loss", waits)
    (finding, *_) = gpu_parts.synchronisation(watched)
    assert isinstance(finding, Finding)
    assert finding.holds is False
    assert "learning.py:" in str(finding.value) or "test_gpu_check.py" in str(finding.value)
    assert "called a synchronizing CUDA operation" in str(finding.value)
    assert modes[-1] == "default"


def test_a_training_that_runs_out_of_time_goes_on_in_the_next_call(check: Check, folder: Path) -> None:
    own = json.loads((folder / "own.yaml").read_text())
    late = replace(check, settings=merge(check.settings, own), deadline=float("-inf"))
    case = late.cases()["cifar10"] | {"threads": 1}
    with pytest.raises(SystemExit):
        accuracy(late, "accuracy-cifar10", 0, case)
    findings = accuracy(replace(late, deadline=float("inf")), "accuracy-cifar10", 0, case)
    (resumed,) = [finding.value for finding in findings if finding.quantity == "resumed after"]
    assert str(resumed).startswith("step 1 of ")


def test_seconds_count_up_to_the_first_epoch_that_reaches_the_mark() -> None:
    history = [{"validation_accuracy": value} for value in (0.5, 0.82, 0.79, 0.9)]
    assert seconds_to(0.8046, history, [1.0, 2.0, 4.0, 8.0]) == 3.0
    assert seconds_to(0.94, history, [1.0, 2.0, 4.0, 8.0]) is None
