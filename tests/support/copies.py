"""Copies of the working tree in which the workflow really runs, and the names of what it makes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from support.repository import REPOSITORY


@dataclass(frozen=True)
class Tree:
    """A copy of the repository's working tree, without ignored files, outside git."""

    path: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    def environment(self, *before: Path) -> dict[str, str]:
        """One thread a job, so that results do not depend on the machine; modules in the folders `before` come first.

        The library is the installed one: that jobs use the copy's is up to its Snakefile.
        """
        return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(map(str, before))}

    def snakemake(self, *arguments: str, before: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in the tree; `stdout` holds everything that it and its jobs said."""
        return subprocess.run(
            self.command(*arguments), cwd=self.path, env=self.environment(*before), text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *arguments: str, before: Sequence[Path] = ()) -> str:
        """Run Snakemake in the tree, which must succeed, and return everything that was said."""
        done = self.snakemake(*arguments, before=before)
        assert done.returncode == 0, done.stdout[-20000:]
        return done.stdout

    def planned(self, *arguments: str) -> dict[str, int]:
        """Number of jobs of each rule that a dry run announces; empty when there is nothing to be done."""
        said = self.run("--dry-run", *arguments)
        if "Nothing to be done" in said:
            return {}
        table = said.split("Job stats:")[1].split("\n\n")[0]
        jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)}
        del jobs["total"]
        return jobs


def copy_of_repository(folder: Path) -> Tree:
    """What git tracks or would track, as it is now, with the times that a fresh clone gives: outputs are older than the code."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout
    if not names:
        pytest.skip("not a checkout of git")
    for name in filter(None, names.split("\0")):
        if (REPOSITORY / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target)
    return Tree(folder)


def repeatable(tree: Tree, files: Iterable[Path]) -> dict[str, bytes]:
    """What a repetition gives to the byte, by name in the tree: all but times, of which run records are full."""
    kept = {}
    for file in files:
        if file.name in ("run.json", "runs.jsonl", "evaluation.json", "evaluations.jsonl"):
            continue
        content = file.read_bytes()
        if file.name == "history.csv":
            history = pd.read_csv(file, dtype=str)
            content = history.drop(columns="seconds", errors="ignore").to_csv().encode()
        kept[str(file.relative_to(tree.path))] = content
    return kept
