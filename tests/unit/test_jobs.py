"""A job that runs out of memory or room says what to do about it."""

import errno
import gc
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from clai.runs.jobs import start_job
from clai.runs.settings import load_settings

REPOSITORY = Path(__file__).parents[2]


def on_the_gpu() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def on_the_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "results/table.csv")


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    """What a job says whose code raises."""

    def run(code: Callable[[], object]) -> str:
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setattr(gc, "freeze", lambda: None)  # for short processes, which this one is not
        start_job(tmp_path / "log", lower="training.batch_size")
        logging.captureWarnings(False)
        try:
            code()
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
        return caplog.text

    return run


@pytest.mark.parametrize(
    "code", [lambda: torch.empty(2**50), lambda: np.empty(2**50), on_the_gpu], ids=["torch", "numpy", "cuda"]
)
def test_out_of_memory_names_the_setting_to_lower(code: Callable[[], object], said: Callable[..., str]) -> None:
    assert "error: out of memory: lower training.batch_size; or run fewer jobs at once" in said(code)


def test_full_disk_names_the_file_and_that_nothing_else_is_lost(said: Callable[..., str]) -> None:
    assert "error: no room to write results/table.csv (No space left on device): make room" in said(on_the_disk)


def test_other_errors_get_no_advice(said: Callable[..., str]) -> None:
    text = said(lambda: torch.zeros(2) + torch.zeros(3))
    assert "Traceback" in text
    assert "error: " not in text.replace("RuntimeError: ", "")


def test_settings_to_lower_exist() -> None:
    config = load_settings(REPOSITORY)
    named = [
        name
        for script in (REPOSITORY / "workflow" / "scripts").glob("*.py")
        for lower in re.findall(r'lower="([^"]+)"', script.read_text())
        for name in re.split(r", | or ", lower)
    ]
    assert named
    for name in named:
        node = config
        for key in name.split("."):
            node = node[key]
