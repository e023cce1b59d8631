"""Measure the overhead of the workflow in a run on miniature data: start-up of Python, imports, Snakemake.

`python benchmarks/overhead.py [TARGET ...]` runs the workflow (target `all` by default) from nothing on two cores, in a copy of
the working tree. It prints the processes and CPU seconds of each script, and the share of imports in them. With
`--against COMMIT` the workflow of that commit runs in turn, in this environment, so its lock file should be the same; the
ratios are printed, too.

CPU seconds (user and system) depend less than wall time on other work of the machine. Each Python process of the run, forks
included, reports its own when it ends, through a module `sitecustomize` that Python imports at the start. The outermost import
statement is timed, so lazy imports count, too. Linux alone lets a process wait for the children of its children, so this
benchmark needs it.
"""

import argparse
import contextlib
import ctypes
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
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

REPORT = """
import atexit, builtins, json, os, sys, time
plain, leave, depth, spent = builtins.__import__, os._exit, 0, 0.0
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
def forget():
    global depth, spent
    depth, spent = 0, 0.0
def report():
    name = sys.orig_argv[-1] if sys.argv[0] == "-c" else sys.argv[0]
    with open(os.path.join({folder!r}, str(os.getpid())), "a") as stream:
        print(json.dumps([name, time.process_time(), spent]), file=stream)
def report_and_leave(status):
    report()
    leave(status)
atexit.register(report)
os._exit = report_and_leave
os.register_at_fork(after_in_child=forget)
"""


class Process(NamedTuple):
    """The report of a Python process: script, CPU seconds, and CPU seconds of imports."""

    name: str
    cpu: float
    imports: float


class Run(NamedTuple):
    """A run from nothing: wall time and CPU time of all its processes in seconds, and its Python processes."""

    wall: float
    cpu: float
    processes: list[Process]

    def figures(self) -> dict[str, float]:
        """Return the totals to compare, in seconds."""
        python = sum(process.cpu for process in self.processes)
        snakemake = sum(process.cpu for process in self.processes if process.name == SNAKEMAKE)
        return {
            "wall time": self.wall,
            "CPU time with all that was started": self.cpu,
            "of which imports": sum(process.imports for process in self.processes),
            "of which Snakemake": snakemake,
            "of which processes spend after their last line, and what Snakemake starts": self.cpu - python,
        }


def copy_of_tree(folder: Path) -> None:
    """Copy the files that git tracks or would track."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)


def copy_of_commit(commit: str, folder: Path) -> None:
    """Copy the files of a commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=REPOSITORY, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def run(commit: str | None, targets: list[str]) -> Run:
    """Run the workflow of a commit, or of the working tree, from nothing."""
    with tempfile.TemporaryDirectory() as temporary:
        tree, reports, hook = (Path(temporary, part) for part in ("tree", "reports", "hook"))
        for folder in (tree, reports, hook):
            folder.mkdir()
        (hook / "sitecustomize.py").write_text(REPORT.format(folder=str(reports)))
        copy_of_tree(tree) if commit is None else copy_of_commit(commit, tree)
        # The outputs of the published evidence are rendered, too.
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
        with contextlib.suppress(ChildProcessError):
            while True:  # processes that outlive the one that started them
                os.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processes = []
        for file in reports.iterdir():
            for line in file.read_text().splitlines():
                argument, total, imports = json.loads(line)
                processes.append(Process(name_of(argument), total, imports))
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, processes)


def name_of(argument: str) -> str:
    """Return what to call a Python process, by the script or code that it runs."""
    if script := re.search(r"tmp\w+\.(\w+)\.py$", argument):
        return script[1]
    if "multiprocessing.forkserver" in argument:
        return "imports that jobs share"
    return SNAKEMAKE if "snakemake" in argument else "processes that jobs start"


def scripts(done: Run) -> str:
    """Return a table of the scripts of a run, in falling order of their CPU time."""
    by_name: dict[str, list[Process]] = defaultdict(list)
    for process in done.processes:
        by_name[process.name].append(process)
    rows = [(name, len(of), sum(p.cpu for p in of), sum(p.imports for p in of)) for name, of in by_name.items()]
    rows.sort(key=lambda row: -row[2])
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = ["| script | processes | CPU s | of these imports |", "| --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {name} | {count} | {cpu:.0f} | {spent:.0f} |" for name, count, cpu, spent in rows])


def totals(runs: list[Run], others: list[Run], commit: str | None) -> str:
    """Return a table of the totals: means, and the ratios within a repetition."""
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
    """Run the repetitions and print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="The runs are made in the folder for temporary files."
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="targets of Snakemake (all)")
    parser.add_argument("--against", metavar="COMMIT", help="run the workflow of this commit in turn")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each (1)")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats: at least 1")
    lookup = ["git", "rev-parse", "--quiet", "--verify", f"{options.against}^{{commit}}"]
    if options.against and subprocess.run(lookup, cwd=REPOSITORY, capture_output=True, check=False).returncode:
        parser.error(f"--against: {options.against} is no commit of this repository")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    runs, others = [], []
    for repeat in range(options.repeats):
        # The order alternates, because machines slow down.
        for current in (True, False) if repeat % 2 == 0 else (False, True):
            if current or options.against:
                done = run(None if current else options.against, options.targets or ["all"])
                (runs if current else others).append(done)
                where = "here" if current else options.against
                print(f"repetition {repeat + 1}: {where} {done.wall:.0f} s, {done.cpu:.0f} CPU s", file=sys.stderr)
    print(
        f"{scripts(runs[-1])}\n\nThe table is of the last run here. On {CORES} cores, runs of each: {options.repeats}.\n"
    )
    print(totals(runs, others, options.against))


if __name__ == "__main__":
    main()
