"""A training that is killed, stopped or finds the disk full goes on after its last epoch, and ends as if nothing had happened."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from clailearn.checkpoints import STOPPED, Checkpoint
from support.interruptible import FITS, fit, start
from support.repository import contents

ENDINGS = {signal.SIGKILL: {-signal.SIGKILL}, signal.SIGTERM: {STOPPED, -signal.SIGTERM}}
"""Exit status by signal. SIGTERM has its usual effect before the training listens."""
INTERRUPTIONS = 4
Whole = dict[str, tuple[dict[str, bytes], float]]
"""What each fit gives, and how long it takes (s)."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    fits = {}
    start(next(iter(FITS)), tmp_path_factory.mktemp("first")).join()  # it waits for the imports, no part of a fit
    for name in FITS:
        folder = tmp_path_factory.mktemp("whole")
        began = time.monotonic()
        running = start(name, folder)
        running.join()
        assert running.exitcode == 0
        fits[name] = contents(folder), time.monotonic() - began
        assert fits[name][0].keys() == {"parameters", "table"}
    return fits


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("number", ENDINGS)
def test_interruptions_change_no_byte(name: str, number: signal.Signals, tmp_path: Path, uninterrupted: Whole) -> None:
    expected, whole = uninterrupted[name]
    moments, latest = random.Random(0), whole / 2
    interruptions, finished, reached = 0, 0, set()
    while interruptions < INTERRUPTIONS or not reached or not finished:
        assert interruptions < 10 * INTERRUPTIONS, f"reached {reached} and ended {finished} times"
        running = start(name, tmp_path)
        running.join(None if interruptions >= INTERRUPTIONS and reached else moments.uniform(0, latest))
        if running.exitcode is None:
            os.kill(running.pid, number)  # type: ignore[arg-type]
            running.join()
        if running.exitcode == 0:
            finished += 1
            latest = whole / 2
            assert contents(tmp_path) == expected
            for path in tmp_path.iterdir():
                path.unlink()
        else:
            assert running.exitcode in ENDINGS[number]
            interruptions += 1
            latest *= 1.2  # the machine may be slower now than when the whole fit was timed
            if (tmp_path / "checkpoint.pt").exists():
                reached.add(torch.load(tmp_path / "checkpoint.pt")["after"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_a_process_says_what_is_saved_and_leaves(
    number: signal.Signals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = signal.getsignal(number)
    caplog.set_level("INFO")
    with Checkpoint(tmp_path / "checkpoint.pt", "") as checkpoint:
        checkpoint.save("epoch 1", {})
        with pytest.raises(SystemExit) as left:
            signal.raise_signal(number)
    assert left.value.code == STOPPED
    assert f"{number.name}: stopped; the last state is that after epoch 1, in {tmp_path}" in caplog.text
    assert Checkpoint(tmp_path / "checkpoint.pt", "").load() is not None
    assert signal.getsignal(number) == before


def test_full_disk_leaves_the_last_state_and_no_fragment(tmp_path: Path, uninterrupted: Whole) -> None:
    running = start("clai-m", tmp_path)
    while not (tmp_path / "checkpoint.pt").exists():
        assert running.is_alive(), "ended without a checkpoint"
        time.sleep(0.001)
    running.kill()
    running.join()
    for part in tmp_path.glob("*.part"):
        part.unlink()
    saved = contents(tmp_path)
    running = start("clai-m", tmp_path, room=1000)
    running.join()
    assert running.exitcode == 1
    assert contents(tmp_path) == saved
    fit("clai-m", tmp_path)
    assert contents(tmp_path) == uninterrupted["clai-m"][0]


class Stopping(Checkpoint):
    """A checkpoint whose process is asked to stop after the first epoch."""

    def save(self, after: str, state: Mapping[str, Any]) -> None:
        super().save(after, state)
        signal.raise_signal(signal.SIGTERM)


def test_a_checkpoint_keeps_the_seconds_of_all_processes_and_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 2.0)  # of each process
    path, spent = tmp_path / "checkpoint.pt", []
    for epoch in (1, 2):
        with Stopping(path, "same") as checkpoint, pytest.raises(SystemExit):
            FITS["clai-m"](checkpoint)
        assert len(checkpoint.epoch_seconds) == epoch
        spent.append(checkpoint.earlier)
    before = checkpoint.epoch_seconds
    with Checkpoint(path, "same") as checkpoint:
        FITS["clai-m"](checkpoint)
    spent.append(checkpoint.earlier)
    assert [processor for _, processor in spent] == [0, 2, 4]
    assert spent[0][0] == 0 < spent[1][0] < spent[2][0]
    assert len(checkpoint.epoch_seconds) == 4
    assert checkpoint.epoch_seconds[:2] == before
    assert all(seconds > 0 for seconds in checkpoint.epoch_seconds)


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda whole: whole[:300], lambda whole: whole.replace(b"loss", b"lose")]
)
def test_file_that_is_no_checkpoint_of_this_fit_is_not_used(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    Checkpoint(path, "").save("epoch 1", {"history": [{"loss": 0.5}]})
    assert Checkpoint(path, "other").load() is None
    path.write_bytes(damage(path.read_bytes()))
    assert Checkpoint(path, "").load() is None
