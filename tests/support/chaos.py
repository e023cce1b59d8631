"""Accidents that a seed draws: what may happen to a running workflow, to its files and to its machine."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from support.copies import Tree, copy_of_repository, repeatable

TARGETS = ("paper_figures/mini/table1.tex", "results/mini/mimic-iv/evidence/metrics.csv")
"""Of one dataset of images down to a table, and of one of recordings down to its evidence: twenty jobs."""
FOLDERS = ("results/mini", "paper_figures/mini")
ACCIDENTS = 3
"""Accidents of a seed."""
ROOM = 64
"""MiB of the file system that a disturbed copy lies on; it takes a third."""
PATIENCE = 600
"""Seconds after which a command counts as hanging."""
REFUSED = (
    "cannot be locked",
    "No such file or directory: '.*/.snakemake/locks/",
    "Unable to obtain modification time of file .* a concurrent process has deleted it",
)
"""What a command says that may not start, as patterns. The second comes when another one ends, and removes the folder of the
locks, at the moment when this one takes its own; the third when another one deletes an output to make it again, while this one
plans its jobs, which it does before it asks for the lock."""
HANGING = 120
"""Seconds after SIGTERM from which Snakemake counts as hanging: its handler may wait for a lock of its own for ever."""


def thin_copy(folder: Path) -> Tree:
    """Return a copy of the repository whose miniature has two datasets, three models and trainings of three epochs."""
    tree = copy_of_repository(folder)
    path = tree.path / "workflow" / "config" / "mini.yaml"
    mini = yaml.safe_load(path.read_text())
    mini |= {"run": ["cifar10", "mimic-iv"], "run_studies": [], "seeds": [0], "model_seeds": {}}
    mini["datasets"]["cifar10"] |= {"models": ["clai-c", "cross-entropy"], "overrides": {"training": {"epochs": 3}}}
    recordings = {"encoder": {"width": 8}, "training": {"epochs": 3, "batch_size": 8}}
    mini["datasets"]["mimic-iv"] |= {"models": ["clai-m"], "overrides": recordings}
    path.write_text(yaml.safe_dump(mini))
    shutil.rmtree(tree.path / "paper_figures")
    return tree


def outcome(tree: Tree) -> dict[str, bytes | None]:
    """Return every file that the workflow made, by name: its bytes, or None where they hold times."""
    files = [path for folder in FOLDERS for path in (tree.path / folder).rglob("*") if path.is_file()]
    kept = repeatable(tree, files)
    return {name: kept.get(name) for name in (str(path.relative_to(tree.path)) for path in files)}


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a file system of `ROOM` MiB at a folder; yield whether that was allowed."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={ROOM}m", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@dataclass
class Chaos:
    """A copy of the workflow and what a seed does to it.

    Args:
        tree: the copy.
        seed: decides every accident, though not the moment to the millisecond.
        disk: folder of the small file system around the copy; None if there is none.
    """

    tree: Tree
    seed: int
    disk: Path | None
    said: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    def command(self, *targets: str) -> list[str]:
        return self.tree.command("--cores", "2", *(targets or TARGETS))

    def start(
        self, prefix: tuple[str, ...] = (), targets: Sequence[str] = (), **more: object
    ) -> subprocess.Popen[bytes]:
        """Give the command in a process group of its own; what it says goes to a file outside the copy."""
        environment = self.tree.environment() | more.pop("environment", {})  # type: ignore[operator]
        with self.output().open("wb") as file:
            return subprocess.Popen(
                [*prefix, *self.command(*targets)], cwd=self.tree.path, env=environment, start_new_session=True, stdout=file,
                stderr=subprocess.STDOUT, **more,
            )  # type: ignore[call-overload,no-any-return]  # fmt: skip

    def output(self) -> Path:
        """Return the file with what the last command said."""
        return self.tree.path.parent.parent / f"said-{self.seed}"

    def finished(self) -> int:
        """Return how many jobs the running command has finished."""
        return self.output().read_bytes().count(b"Finished jobid")

    def end(self, running: subprocess.Popen[bytes], patience: float = PATIENCE) -> int:
        """Wait for a command, kill it if it hangs, end the jobs that outlive it, and return its status."""
        try:
            status = running.wait(patience)
        except subprocess.TimeoutExpired:
            running.kill()
            status = running.wait()
        for process in processes_in(self.tree.path):
            os.kill(process, signal.SIGKILL)
        while processes_in(self.tree.path):
            time.sleep(0.05)
        self.said.append(self.output().read_text(errors="replace"))
        return status

    def give_command(self, *targets: str) -> None:
        """Give the command, for these targets if there are any; it must succeed."""
        status = self.end(self.start(targets=targets))
        assert status == 0, f"{self}\n{self.said[-1][-6000:]}"

    def accident(self) -> None:
        """Let the next accident of the seed happen."""
        kind = self.draw.choice(list(KINDS))
        self.notes.append(kind)
        if self.draw.randrange(2):
            delete_outputs(self)  # so that there is something to be done
        KINDS[kind](self)
        if any((self.tree.path / ".snakemake").glob("locks/*")):  # The next command would refuse and name this remedy.
            unlocked = self.tree.snakemake("--unlock")
            assert unlocked.returncode == 0, f"{self}\n{unlocked.stdout}"

    def wait_for_moment(self, running: subprocess.Popen[bytes]) -> None:
        """Wait until some jobs are done, and a moment longer."""
        jobs, moment = self.draw.randrange(9), self.draw.uniform(0, 2)
        self.note(f"after {jobs} jobs and {moment:.2f} s")
        while running.poll() is None and self.finished() < jobs:
            time.sleep(0.01)
        time.sleep(moment)

    def note(self, text: str) -> None:
        self.notes[-1] += f"; {text}"

    def __str__(self) -> str:
        return f"seed {self.seed}, accidents:\n" + "\n".join(f"  {note}" for note in self.notes)


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working directory is a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.resolve(strict=True) == folder.resolve():
                found.append(int(link.parent.name))
        except OSError:
            continue  # It has ended, or belongs to somebody else.
    return found


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
            elif jobs := [process for process in processes_in(chaos.tree.path) if process != running.pid]:
                chaos.note(f"process {(at := chaos.draw.randrange(len(jobs))) + 1} of {len(jobs)}")
                os.kill(sorted(jobs)[at], number)
        chaos.end(running, HANGING if number == signal.SIGTERM else PATIENCE)

    return happen


def fill_disk(chaos: Chaos) -> None:
    """Leave a few kilobytes of room for a command; without a file system of its own, limit the size of files."""
    room = chaos.draw.choice((0, 20_000, 200_000, 2_000_000))
    chaos.note(f"{room} bytes left")
    if chaos.disk is None:
        chaos.end(chaos.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))))
        return
    filler = chaos.disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, shutil.disk_usage(chaos.disk).free - room))
    chaos.end(chaos.start())
    filler.unlink()


def delete_outputs(chaos: Chaos) -> None:
    """Delete files that jobs have left."""
    files = sorted(path for folder in FOLDERS for path in (chaos.tree.path / folder).rglob("*") if path.is_file())
    files = [path for path in files if "raw" not in path.parts and "prepared" not in path.parts]
    for path in chaos.draw.sample(files, min(len(files), chaos.draw.randint(1, 3))):
        path.unlink()
        chaos.note(f"{path.relative_to(chaos.tree.path)} deleted")


def forbid_writing(chaos: Chaos) -> None:
    """Make a folder read-only for a command. Root obeys once it has lost the capability that lets it ignore modes."""
    roots = [chaos.tree.path / name for name in (*FOLDERS, "logs", ".snakemake")]
    folders = sorted(path for root in roots for path in (root, *root.rglob("*")) if path.is_dir())
    folder = chaos.draw.choice(folders) if folders else chaos.tree.path
    chaos.note(f"{folder.relative_to(chaos.tree.path)}")
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    try:
        chaos.end(chaos.start(prefix))
    finally:
        if folder.exists():
            folder.chmod(mode)


def give_it_twice(chaos: Chaos) -> None:
    """Give the command while it runs: at most one of the two works."""
    first = chaos.start()
    chaos.wait_for_moment(first)
    second = chaos.tree.snakemake(*chaos.command()[3:])
    runs = ((chaos.end(first), chaos.said[-1]), (second.returncode, second.stdout))
    assert any(status == 0 for status, _ in runs), f"{chaos}\n{second.stdout[-6000:]}"
    for status, said in runs:
        assert status == 0 or any(re.search(words, said) for words in REFUSED), f"{chaos}\n{said[-6000:]}"


KINDS: dict[str, Callable[[Chaos], None]] = {
    "SIGKILL of Snakemake": signalled("workflow", signal.SIGKILL),
    "SIGTERM to Snakemake": signalled("workflow", signal.SIGTERM),
    "SIGKILL of all its processes": signalled("all", signal.SIGKILL),
    "SIGTERM to all its processes": signalled("all", signal.SIGTERM),
    "Ctrl-C": signalled("all", signal.SIGINT),
    "SIGKILL of a job": signalled("job", signal.SIGKILL),
    "SIGTERM to a job": signalled("job", signal.SIGTERM),
    "full disk": fill_disk,
    "read-only folder": forbid_writing,
    "two commands at once": give_it_twice,
}
"""The accidents by name."""
