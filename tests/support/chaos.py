"""Accidents, some of whose details are drawn: signals to a running workflow or its jobs, a full disk."""

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from support.copies import Tree, copy_of_repository, repeatable

TARGET = "paper_figures/mini/table1.tex"
"""From the raw files of a dataset of images down to a table."""
FOLDERS = ("results/mini", "paper_figures/mini")
WHOLE = (*FOLDERS, "logs", ".snakemake")
PART = ("results/mini/cifar10/cross-entropy", "results/mini/cifar10/evidence", "paper_figures/mini")
"""What is deleted before an accident, so that there is something to be done: all, or a training and what follows from it."""
PATIENCE = 600
"""Seconds after which a command counts as hanging."""
HANGING = 30
"""Seconds after SIGTERM from which Snakemake counts as hanging: its handler may wait for a lock of its own for ever."""


def thin_copy(folder: Path) -> Tree:
    """Return a copy of the repository whose miniature has one dataset, two models and trainings of three epochs."""
    tree = copy_of_repository(folder)
    path = tree.path / "workflow" / "config" / "mini.yaml"
    mini = yaml.safe_load(path.read_text())
    mini |= {"run": ["cifar10"], "run_studies": [], "seeds": [0], "model_seeds": {}}
    mini["datasets"]["cifar10"]["models"] = ["clai-c", "cross-entropy"]
    mini["datasets"]["cifar10"]["overrides"]["training"]["epochs"] = 3
    path.write_text(yaml.safe_dump(mini))
    shutil.rmtree(tree.path / "paper_figures")
    return tree


def outcome(tree: Tree) -> dict[str, bytes | None]:
    """Return every file that the workflow made, by name: its bytes, or None where they hold times."""
    files = [path for folder in FOLDERS for path in (tree.path / folder).rglob("*") if path.is_file()]
    kept = repeatable(tree, files)
    return {name: kept.get(name) for name in (str(path.relative_to(tree.path)) for path in files)}


@dataclass
class Chaos:
    """A copy of the workflow, and the draws of what happens to it."""

    tree: Tree
    draw: random.Random

    @property
    def said(self) -> Path:
        return self.tree.path.parent / "said"

    def start(self, *targets: str, room: int = resource.RLIM_INFINITY) -> subprocess.Popen[bytes]:
        """Give the command in a process group of its own; what it says goes to a file outside the copy.

        Args:
            room: largest size of a file in bytes, as on a disk that is full.
        """

        def before() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            # What runs in the background of a shell ignores it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        with self.said.open("wb") as file:
            return subprocess.Popen(
                self.tree.command("--cores", "2", *(targets or [TARGET])), cwd=self.tree.path, env=self.tree.environment(),
                start_new_session=True, stdout=file, stderr=subprocess.STDOUT, preexec_fn=before,
            )  # fmt: skip

    def end(self, running: subprocess.Popen[bytes], patience: float = PATIENCE) -> int:
        """Wait for a command, kill it if it hangs, end the jobs that outlive it, and return its status."""
        try:
            status = running.wait(patience)
        except subprocess.TimeoutExpired:
            running.kill()
            status = running.wait()
        while left := processes_in(self.tree.path):
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.05)
        return status

    def give_command(self, *targets: str) -> None:
        """Give the command, for these targets if there are any; it must succeed."""
        status = self.end(self.start(*targets))
        assert status == 0, self.said.read_text(errors="replace")[-6000:]

    def accident(self, kind: str) -> None:
        """Let an accident happen."""
        for folder in WHOLE if self.draw.randrange(2) else PART:
            shutil.rmtree(self.tree.path / folder)
        KINDS[kind](self)
        if any((self.tree.path / ".snakemake").glob("locks/*")):  # The next command would refuse and name this remedy.
            self.tree.run("--unlock")

    def wait_for_moment(self, running: subprocess.Popen[bytes]) -> None:
        """Wait until some jobs are done, and a moment longer."""
        jobs, moment = self.draw.randrange(4), self.draw.uniform(0, 1)
        while running.poll() is None and self.said.read_bytes().count(b"Finished jobid") < jobs:
            time.sleep(0.01)
        time.sleep(moment)
        self.refuse_an_end(running)

    def refuse_an_end(self, running: subprocess.Popen[bytes]) -> None:
        """Fail if the workflow ends before its accident, which would show nothing."""
        assert running.poll() is None, self.said.read_text(errors="replace")[-6000:]


def processes_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working directory is a folder, by number."""
    return [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(folder.resolve())]


def jobs_in(folder: Path) -> list[psutil.Process]:
    """Return those of them that run a script of a rule."""
    return [job for job in processes_in(folder) if any(".snakemake/scripts" in part for part in job.cmdline())]


def signal_job(chaos: Chaos, running: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a job as soon as there is one."""
    while True:
        chaos.refuse_an_end(running)
        with suppress(psutil.NoSuchProcess, IndexError):  # It has just ended, or there is none yet.
            chaos.draw.choice(jobs_in(chaos.tree.path)).send_signal(number)
            return


def signalled(to: str, number: signal.Signals) -> Callable[[Chaos], None]:
    """Return the accident that a signal reaches the workflow, all its processes, or one of its jobs."""

    def happen(chaos: Chaos) -> None:
        running = chaos.start()
        chaos.wait_for_moment(running)
        if to == "workflow":
            running.send_signal(number)
        elif to == "all":
            os.killpg(running.pid, number)
        else:
            signal_job(chaos, running, number)
        assert chaos.end(running, HANGING if number == signal.SIGTERM else PATIENCE) != 0

    return happen


def fill_disk(chaos: Chaos) -> None:
    """Let the operating system refuse, during a command, to write beyond some kilobytes."""
    assert chaos.end(chaos.start(room=chaos.draw.choice((20_000, 100_000)))) != 0


KINDS: dict[str, Callable[[Chaos], None]] = {
    "SIGKILL of Snakemake": signalled("workflow", signal.SIGKILL),
    "SIGTERM to Snakemake": signalled("workflow", signal.SIGTERM),
    "SIGKILL of all its processes": signalled("all", signal.SIGKILL),
    "SIGTERM to all its processes": signalled("all", signal.SIGTERM),
    "Ctrl-C": signalled("all", signal.SIGINT),
    "SIGKILL of a job": signalled("job", signal.SIGKILL),
    "SIGTERM to a job": signalled("job", signal.SIGTERM),
    "full disk": fill_disk,
}
"""The accidents by name."""
