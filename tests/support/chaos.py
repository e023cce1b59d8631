"""Accidents, some of whose details are drawn: signals to a running workflow or its jobs, a full disk, deleted outputs."""

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
        with self.said.open("wb") as file:
            return subprocess.Popen(
                self.tree.command("--cores", "2", *(targets or [TARGET])), cwd=self.tree.path, env=self.tree.environment(),
                start_new_session=True, stdout=file, stderr=subprocess.STDOUT,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
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
        if self.draw.randrange(2):
            delete_outputs(self)  # so that there is something to be done
        KINDS[kind](self)
        if any((self.tree.path / ".snakemake").glob("locks/*")):  # The next command would refuse and name this remedy.
            self.tree.run("--unlock")

    def wait_for_moment(self, running: subprocess.Popen[bytes]) -> None:
        """Wait until some jobs are done, and a moment longer."""
        jobs, moment = self.draw.randrange(9), self.draw.uniform(0, 2)
        while running.poll() is None and self.said.read_bytes().count(b"Finished jobid") < jobs:
            time.sleep(0.01)
        time.sleep(moment)


def processes_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working directory is a folder, by number."""
    return [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(folder.resolve())]


def signalled(to: str, number: signal.Signals) -> Callable[[Chaos], None]:
    """Return the accident that a signal reaches the workflow, all its processes, or one of its jobs."""

    def happen(chaos: Chaos) -> None:
        running = chaos.start()
        chaos.wait_for_moment(running)
        if running.poll() is None:
            if to == "workflow":
                running.send_signal(number)
            elif to == "all":
                os.killpg(running.pid, number)
            elif jobs := [process for process in processes_in(chaos.tree.path) if process.pid != running.pid]:
                chaos.draw.choice(jobs).send_signal(number)
        chaos.end(running, HANGING if number == signal.SIGTERM else PATIENCE)

    return happen


def fill_disk(chaos: Chaos) -> None:
    """Let the operating system refuse, during a command, to write beyond a few kilobytes or megabytes."""
    chaos.end(chaos.start(room=chaos.draw.choice((0, 20_000, 200_000, 2_000_000))))


def delete_outputs(chaos: Chaos) -> None:
    """Delete files that jobs have left."""
    files = sorted(path for folder in FOLDERS for path in (chaos.tree.path / folder).rglob("*") if path.is_file())
    files = [path for path in files if "raw" not in path.parts and "prepared" not in path.parts]
    for path in chaos.draw.sample(files, min(len(files), chaos.draw.randint(1, 3))):
        path.unlink()


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
