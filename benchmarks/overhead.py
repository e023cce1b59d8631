"""What the workflow itself costs in a run on miniature data: start-up of Python, imports, Snakemake.

`python benchmarks/overhead.py [TARGET ...]`: runs the workflow from nothing in a copy of the working tree, `all` by default, on
two cores, and prints processes and CPU seconds of each script, and how many of these seconds went into imports.

CPU seconds (user and system), because wall time depends on what else the machine does. Every Python process of the run reports
its own at its end, with the help of a module `sitecustomize` that Python imports when it starts; imports are timed where the
outermost import statement stands, so that lazy ones count too.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CORES = 2

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


def copy_of_tree(folder: Path) -> None:
    """What git tracks or would track, without the renderings of the published evidence, so that these are made too."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (REPOSITORY / name).is_file() and not name.startswith("paper_figures/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)


def main(targets: list[str]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        tree, reports, hook = (Path(temporary, part) for part in ("tree", "reports", "hook"))
        for folder in (tree, reports, hook):
            folder.mkdir()
        (hook / "sitecustomize.py").write_text(REPORT.format(folder=str(reports)))
        copy_of_tree(tree)
        environment = os.environ | {"PYTHONPATH": f"{hook}:{tree / 'src'}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), *targets]
        started = time.perf_counter()
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - started
        if run.returncode:
            sys.exit(run.stderr[-5000:])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        jobs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for file in reports.iterdir():
            for line in file.read_text().splitlines():
                argument, total, imports = json.loads(line)
                script = re.search(r"tmp\w+\.(\w+)\.py$", argument)
                name = script[1] if script else "Snakemake" if "snakemake" in argument else "processes that jobs start"
                jobs[name].append((total, imports))
        rows = [(name, len(times), *map(sum, zip(*times, strict=True))) for name, times in jobs.items()]
        rows.sort(key=lambda row: -row[2])
        rows.append(("all", sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows)))
        print("| script | processes | CPU s | of these imports |\n| --- | --- | --- | --- |")
        for script, count, total, imports in rows:
            print(f"| {script} | {count} | {total:.0f} | {imports:.0f} |")
        print(
            f"\n{used.ru_utime + used.ru_stime:.0f} CPU s with all that was started; wall time {wall:.0f} s on {CORES} cores."
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["all"])
