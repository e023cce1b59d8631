"""Copies of the working tree in which the workflow really runs, and the names of what it makes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from support.repository import REPOSITORY


@dataclass(frozen=True)
class Tree:
    """A copy of the repository's working tree, without ignored files, outside git."""

    path: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    def environment(self) -> dict[str, str]:
        """One thread a job, so that results do not depend on the machine; the copy's library, not the installed one."""
        return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(self.path / "src")}

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in the tree; `stdout` holds everything that it and its jobs said."""
        return subprocess.run(
            self.command(*arguments), cwd=self.path, env=self.environment(), text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def planned(self, *arguments: str) -> dict[str, int]:
        """Number of jobs of each rule that a dry run announces; empty when there is nothing to be done."""
        run = self.snakemake("--dry-run", *arguments)
        assert run.returncode == 0, run.stdout
        if "Nothing to be done" in run.stdout:
            return {}
        table = run.stdout.split("Job stats:")[1].split("\n\n")[0]
        jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)}
        del jobs["total"]
        return jobs


def copy_of_repository(folder: Path) -> Tree:
    """What git tracks or would track, as it is now, with the times that a fresh clone gives: outputs are older than the code."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (REPOSITORY / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target)
    return Tree(folder)


TIMED = ("tableS1", "tableS6", "tableS7", "tableS8", "figureS3", "figureS4")
"""Outputs that show times."""


def repeatable(tree: Tree, files: Iterable[Path]) -> dict[str, bytes]:
    """What a repetition gives to the byte, by name in the tree.

    Times are left out: run records, also those of published models, what stages took, the benchmark's evidence, the seconds in
    histories of studies, `TIMED`, sidecars, claims on the benchmark.
    """
    kept = {}
    for file in files:
        drawn = "paper_figures" in file.relative_to(tree.path).parts
        if (
            file.name in ("run.json", "runs.jsonl", "evaluation.json")
            or file.name.endswith(("resources.json", "resources.csv"))
            or "benchmark" in file.parts
            or file.name == "claims.md"
        ):
            continue
        if drawn and (file.suffix == ".json" or file.stem in TIMED):
            continue
        content = file.read_bytes()
        if file.name == "history.csv":
            history = pd.read_csv(file, dtype=str)
            content = history.drop(columns=["seconds", "validation_seconds"], errors="ignore").to_csv().encode()
        if file.name == "model.json":  # of a published model, which holds the record of its run
            content = json.dumps(json.loads(content) | {"record": None}).encode()
        if file.name == "claims.csv":
            content = b"".join(
                line for line in content.splitlines(keepends=True) if b"/benchmark/evidence/" not in line
            )
        kept[str(file.relative_to(tree.path))] = content
    return kept
