"""What the workflow itself costs in a run on miniature data: start-up of Python, imports, Snakemake.

`python benchmarks/overhead.py [TARGET ...]`: runs the workflow from nothing in a copy of the working tree, `all` by default, on
two cores, and prints processes and CPU seconds of each script, and how many of these seconds went into imports. With
`--against COMMIT` the workflow of that commit runs in turn with it, and the ratios of both are printed too; it runs in this
environment, so its lock file should ask for the same one.

CPU seconds (user and system) beside wall time, which depends on what else the machine does. Every Python process of the run
reports its own at its end, with the help of a module `sitecustomize` that Python imports when it starts; imports are timed where
the outermost import statement stands, so that lazy ones count too.
"""

import argparse
import io
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
CORES = 2
SNAKEMAKE = "Snakemake"

REPORT = """
import atexit, builtins, json, os, sys, time
plain, depth, spent = builtins.__import__, 0, 0.0
def timed(*arguments, **named):
    global depth, spent
    depth += 1
    before = time.process_time() if depth == 1 else 0.0
    try:
        return plain(*arguments, **named)
    finally:
        depth -= 1
        if depth == 0:
            spent += time.process_time() - before
builtins.__import__ = timed
def report():
    with open(os.path.join({folder!r}, str(os.getpid())), "a") as stream:
        print(json.dumps([sys.argv[0], time.process_time(), spent]), file=stream)
atexit.register(report)
"""


class Process(NamedTuple):
    """What one Python process reported."""

    name: str
    cpu: float
    imports: float


class Run(NamedTuple):
    """A run from nothing: seconds that passed, CPU seconds with all that was started, and its Python processes."""

    wall: float
    cpu: float
    processes: list[Process]

    def figures(self) -> dict[str, float]:
        """The totals that are compared."""
        python = sum(process.cpu for process in self.processes)
        own = sum(process.cpu for process in self.processes if process.name == SNAKEMAKE)
        return {
            "wall time": self.wall,
            "CPU time with all that was started": self.cpu,
            "of which imports": sum(process.imports for process in self.processes),
            "of which Snakemake": own,
            "of which processes spend after their last line, and what Snakemake starts": self.cpu - python,
        }


def copy_of_tree(folder: Path) -> None:
    """What git tracks or would track."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)


def copy_of_commit(commit: str, folder: Path) -> None:
    """What the commit holds."""
    archive = subprocess.run(["git", "archive", commit], cwd=REPOSITORY, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def run(commit: str | None, targets: list[str]) -> Run:
    """The workflow of a commit, or of the working tree, from nothing."""
    with tempfile.TemporaryDirectory() as temporary:
        tree, reports, hook = (Path(temporary, part) for part in ("tree", "reports", "hook"))
        for folder in (tree, reports, hook):
            folder.mkdir()
        (hook / "sitecustomize.py").write_text(REPORT.format(folder=str(reports)))
        copy_of_tree(tree) if commit is None else copy_of_commit(commit, tree)
        # The renderings of the published evidence are to be made too.
        shutil.rmtree(tree / "paper_figures")
        environment = os.environ | {"PYTHONPATH": f"{hook}:{tree / 'src'}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), *targets]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - started
        if done.returncode:
            sys.exit(done.stderr[-5000:])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processes = []
        for file in reports.iterdir():
            for line in file.read_text().splitlines():
                argument, total, imports = json.loads(line)
                script = re.search(r"tmp\w+\.(\w+)\.py$", argument)
                name = script[1] if script else SNAKEMAKE if "snakemake" in argument else "processes that jobs start"
                processes.append(Process(name, total, imports))
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, processes)


def scripts(done: Run) -> str:
    """A table of the scripts of a run, those first that used most."""
    by_name: dict[str, list[Process]] = defaultdict(list)
    for process in done.processes:
        by_name[process.name].append(process)
    rows = [(name, len(of), sum(p.cpu for p in of), sum(p.imports for p in of)) for name, of in by_name.items()]
    rows.sort(key=lambda row: -row[2])
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = ["| script | processes | CPU s | of these imports |", "| --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {name} | {count} | {cpu:.0f} | {spent:.0f} |" for name, count, cpu, spent in rows])


def totals(runs: list[Run], others: list[Run], commit: str | None) -> str:
    """A table of the totals: means, and the ratios of what ran in the same repetition."""
    head = "| seconds | " + (f"{commit} | here | ratio (smallest to largest) |" if others else "here |")
    lines = [head, "| --- " * (head.count("|") - 1) + "|"]
    for name in runs[0].figures():
        here, there = ([done.figures()[name] for done in of] for of in (runs, others))
        mean = f"{statistics.mean(here):.0f}"
        if others:
            ratios = [b / a for a, b in zip(here, there, strict=True)]
            ratio = f"{statistics.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            lines.append(f"| {name} | {statistics.mean(there):.0f} | {mean} | {ratio} |")
        else:
            lines.append(f"| {name} | {mean} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="The runs are made in the folder for temporary files."
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what Snakemake is to make (all)")
    parser.add_argument("--against", metavar="COMMIT", help="run the workflow of this commit in turn")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each (1)")
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error("--repeats: at least 1")
    known = ["git", "rev-parse", "--quiet", "--verify", f"{given.against}^{{commit}}"]
    if given.against and subprocess.run(known, cwd=REPOSITORY, capture_output=True, check=False).returncode:
        parser.error(f"--against: {given.against} is no commit of this repository")
    runs, others = [], []
    for repeat in range(given.repeats):
        # Who goes first alternates, because machines slow down.
        for own in (True, False) if repeat % 2 == 0 else (False, True):
            if own or given.against:
                done = run(None if own else given.against, given.targets or ["all"])
                (runs if own else others).append(done)
                where = "here" if own else given.against
                print(f"repetition {repeat + 1}: {where} {done.wall:.0f} s, {done.cpu:.0f} CPU s", file=sys.stderr)
    print(
        f"{scripts(runs[-1])}\n\nThe table is of the last run here. On {CORES} cores, runs of each: {given.repeats}.\n"
    )
    print(totals(runs, others, given.against))


if __name__ == "__main__":
    main()
