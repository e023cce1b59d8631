"""A fit that is killed, stopped or finds the disk full goes on where it was, and ends as one that nothing happened to."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from clai import checkpoints
from clai.checkpoints import STOPPED, Checkpoint, Draws, write_whole
from support.interruptible import FITS, fit, results, start

KILLS = 20


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, bytes], float]]:
    """What each fit gives, and how long it takes when it saves after every step (s)."""
    fits = {}
    start(
        next(iter(FITS)), tmp_path_factory.mktemp("first"), 0
    ).join()  # it waits for the imports, which are no part of a fit
    for name in FITS:
        folder = tmp_path_factory.mktemp("whole")
        began = time.monotonic()
        running = start(name, folder, 0)
        running.join()
        assert running.exitcode == 0
        fits[name] = results(folder), time.monotonic() - began
        assert fits[name][0].keys() == {"parameters", "table"}
    return fits


@pytest.mark.parametrize("name", FITS)
def test_killed_at_random_moments_it_ends_with_the_same_bytes(
    name: str, tmp_path: Path, uninterrupted: dict[str, tuple[dict[str, bytes], float]]
) -> None:
    expected, whole = uninterrupted[name]
    moments, latest = random.Random(0), whole / 2
    kills, finished, reached = 0, 0, set()
    # Too few states, and nothing would have been resumed. The mixture has something to save when a class is done only.
    states = 2 if name == "student-t-mixture" else 4
    while kills < KILLS or len(reached) < states or not finished:
        assert kills < 10 * KILLS, f"reached {reached} and ended {finished} times"
        enough = kills >= KILLS and len(reached) >= states
        running = start(name, tmp_path, moments.choice([0, 0, 0.02]))
        running.join(None if enough else moments.uniform(0, latest))
        if running.exitcode is None:
            running.kill()
            running.join()
        if running.exitcode == 0:
            finished += 1
            latest = whole / 2
            assert results(tmp_path) == expected
            for path in tmp_path.iterdir():
                path.unlink()
        else:
            assert running.exitcode == -signal.SIGKILL
            kills += 1
            latest *= 1.1  # the machine may be slower now than when the whole fit was timed
            if (tmp_path / "checkpoint.pt").exists():
                reached.add(torch.load(tmp_path / "checkpoint.pt")["after"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", [name for name in FITS if name != "student-t-mixture"])
def test_asked_to_stop_it_leaves_before_its_end_and_goes_on_later(
    name: str, number: signal.Signals, tmp_path: Path, uninterrupted: dict[str, tuple[dict[str, bytes], float]]
) -> None:
    status = 0
    while status == 0:  # it may be done before the signal arrives
        running = start(name, tmp_path, 0)
        while not (tmp_path / "checkpoint.pt").exists() and running.exitcode is None:
            time.sleep(0.001)
        assert running.pid is not None
        os.kill(running.pid, number)
        running.join()
        status = running.exitcode
    assert status == STOPPED
    assert (tmp_path / "checkpoint.pt").exists()
    running = start(name, tmp_path, 3600)
    running.join()
    assert running.exitcode == 0
    assert results(tmp_path) == uninterrupted[name][0]


def test_step_that_does_not_end_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PATIENCE", 0.1)
    ended = False

    def stall() -> None:
        nonlocal ended
        with Checkpoint(tmp_path / "checkpoint.pt", "", 0) as checkpoint:
            checkpoint.offer("step 1", dict)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
            ended = True

    with pytest.raises(SystemExit) as left:
        stall()
    assert left.value.code == STOPPED
    assert not ended
    assert Checkpoint(tmp_path / "checkpoint.pt", "", 0).load() is not None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_full_disk_leaves_the_last_state_and_no_fragment(
    tmp_path: Path, uninterrupted: dict[str, tuple[dict[str, bytes], float]]
) -> None:
    running = start("clai-m", tmp_path, 0)
    while not (tmp_path / "checkpoint.pt").exists():
        time.sleep(0.001)
    running.kill()
    running.join()
    for part in tmp_path.glob("*.part"):
        part.unlink()
    saved = results(tmp_path)
    running = start("clai-m", tmp_path, 0, room=1000)
    running.join()
    assert running.exitcode == 1
    assert results(tmp_path) == saved
    fit("clai-m", tmp_path, 3600, None)
    assert results(tmp_path) == uninterrupted["clai-m"][0]


def test_times_of_all_interrupted_processes_add_up(tmp_path: Path) -> None:
    times = []
    for _ in range(3):
        with Checkpoint(tmp_path / "checkpoint.pt", "same", 0) as checkpoint:
            checkpoint.load()
            times.append((checkpoint.earlier, checkpoint.earlier_cpu))
            checkpoint.offer("a step", dict)
    assert times[0] == (0, 0)
    assert times[0][0] < times[1][0] < times[2][0]
    assert times[2][1] >= 2 * times[1][1] > 0


class Stopping(Checkpoint):
    """A checkpoint that is asked to stop at the n-th state that it is offered."""

    left = 6

    def offer(self, after: str, state: Callable[[], Mapping[str, Any]]) -> None:
        self.left -= 1
        if self.left == 0:
            self._request_stop(signal.SIGTERM, None)
        super().offer(after, state)


def test_times_of_epochs_outlive_an_interruption_which_the_record_tells(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    with Stopping(path, "same", 3600) as checkpoint, pytest.raises(SystemExit):
        FITS["clai-m"](checkpoint)
    before = checkpoint.times()
    assert before["resumed_after"] == []
    assert len(before["epoch_seconds"]) == 1  # of four epochs with four states each
    with Checkpoint(path, "same", 3600) as checkpoint:
        FITS["clai-m"](checkpoint)
    after = checkpoint.times()
    assert after["resumed_after"] == ["step 2 of 3 of epoch 2"]
    assert [len(after[key]) for key in ("epoch_seconds", "validation_seconds")] == [4, 4]
    for key in ("epoch_seconds", "validation_seconds"):
        assert after[key][:1] == before[key]
        assert all(seconds > 0 for seconds in after[key])


def test_seconds_of_an_epoch_add_up_over_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.pt"
    with Stopping(path, "same", 3600) as checkpoint, pytest.raises(SystemExit):
        FITS["clai-m"](checkpoint)
    state = torch.load(path)
    torch.save(state | {"seconds": 1e6}, path)
    with Checkpoint(path, "same", 3600) as checkpoint:
        FITS["clai-m"](checkpoint)
    seconds = checkpoint.times()["epoch_seconds"]
    assert seconds[2] < 1e6 < seconds[1] < 2e6


def test_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"before")
    with pytest.raises(TypeError):
        write_whole(path, "no bytes")  # type: ignore[arg-type]
    assert results(tmp_path) == {"file": b"before"}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"no archive"])
def test_file_that_is_no_checkpoint_is_not_used(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(content)
    assert Checkpoint(tmp_path / "checkpoint.pt", "", 0).load() is None


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "checkpoint.pt"
    saved = {"weights": torch.arange(64.0), "history": [{"loss": 0.5}], "draws": {"position": 3}}
    Checkpoint(path, "same", 0).offer("step 3", lambda: saved)
    whole = path.read_bytes()
    noticed, places = 0, range(0, len(whole), 3)
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        caplog.clear()
        checkpoint = Checkpoint(path, "same", 0)
        state = checkpoint.load()
        if state is None:
            noticed += 1
            assert f"{path} cannot be read here" in caplog.text
            assert (checkpoint.last, checkpoint.resumed) == ("", [])
        else:
            assert torch.equal(state["weights"], saved["weights"])
            assert {key: state[key] for key in ("history", "draws")} == {
                key: saved[key] for key in ("history", "draws")
            }
    assert noticed > len(places) / 3


@pytest.mark.parametrize("left_out", ["fingerprint", "after", "spent", "spent_cpu", "epochs", "resumed"])
def test_a_state_without_a_part_is_not_used(left_out: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    Checkpoint(path, "same", 0).offer("step 1", dict)
    state = torch.load(path)
    del state[left_out]
    torch.save(state, path)
    checkpoint = Checkpoint(path, "same", 0)
    assert checkpoint.load() is None
    assert (checkpoint.last, checkpoint.earlier, checkpoint.resumed) == ("", 0.0, [])


def test_a_state_for_which_memory_is_short_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.pt"
    Checkpoint(path, "same", 0).offer("step 1", dict)

    def short(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(torch, "load", short)
    with pytest.raises(MemoryError):
        Checkpoint(path, "same", 0).load()


@pytest.mark.parametrize("at", range(13))
def test_draws_go_on_anywhere(at: int) -> None:
    """Orders are drawn at places 0, 4 and 8, and performing a step draws as well."""

    def steps(generator: torch.Generator) -> object:
        for _ in range(3):
            yield from torch.randperm(4, generator=generator)

    def performed(draws: Draws[torch.Tensor], count: int) -> list[tuple[int, float]]:
        return [(int(step), float(torch.rand((), generator=draws.generator))) for step in islice(draws, count)]

    def fresh(state: dict[str, object] | None) -> Draws[torch.Tensor]:
        generator = torch.Generator().manual_seed(0 if state is None else 1)
        return Draws(steps(generator), generator, state)  # type: ignore[arg-type]

    whole = performed(fresh(None), 12)
    draws = fresh(None)
    first = performed(draws, at)
    assert first + performed(fresh(draws.state()), 12) == whole
