"""Every command that a document or a record prints works as it is printed, in a fresh copy of the repository.

Snakemake, make and the scripts are asked what they would do; `python -m replication` answers where it needs no data.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.commands import OTHERS, PROGRAMS, Command, commands_in, recorded_commands, together
from support.copies import REPOSITORY, Tree

pytestmark = pytest.mark.slow

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((REPOSITORY / "docs").glob("*.md")),
    REPOSITORY / "envs" / "README.md",
]
PRINTED = {page: commands_in(page.read_text()) for page in PAGES}
DISTINCT = sorted({command for commands in PRINTED.values() for command in commands if command[0] in PROGRAMS})
RECORDED = [
    command
    for command in together(recorded_commands(REPOSITORY / "results" / "published"))
    if not any("jpeg_copy" in word for word in command)  # commands of earlier commits, which prepared that copy
]

STANDING_FOR = {
    "<target>": "all",
    "<dataset>": "cifar10",
    "FOLDER": "data",
    "DATASET": "cifar10",
    "MODEL": "clai-m",
}
"""What the placeholders of printed commands are tried with."""


def blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs" / page).read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def tree(shared_tree: Tree) -> Tree:
    """A copy with a `local.yaml`: the study that the page on extending adds."""
    (study,) = (block for block in blocks("extending.md") if "studies:" in block)
    (shared_tree.path / "local.yaml").write_text(study)
    return shared_tree


def tried(tree: Tree, command: Command) -> list[str]:
    """The command as it is tried: without effect, where it would have one."""
    program, *words = (STANDING_FOR.get(word, word) for word in command)
    if program == "snakemake":
        return tree.command(*words) if "--unlock" in words else tree.command("--dry-run", "--quiet=all", *words)
    if program == "make":
        return ["make", "--dry-run", *words]
    if program == "clai":
        return [sys.executable, "-m", "clai", *words, "--help"]
    if words[:2] == ["-m", "replication"] and len(words) > 3 and words[2] not in ("publish", "band-powers"):
        return [sys.executable, *words]
    if program == "pytest":
        return [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *words]
    return [sys.executable, *words, "--help"]


def succeeds(tree: Tree, command: Command) -> None:
    run = subprocess.run(
        tried(tree, command), cwd=tree.path, env=tree.environment(), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]


def test_commands_are_found() -> None:
    readme = PRINTED[REPOSITORY / "README.md"]
    assert ("snakemake", "--cores", "8", "all", "--config", "evidence=real") in readme
    assert ("python", "-m", "replication", "settings", "cifar10", "clai-m") in readme
    assert ("make", "report") in readme
    assert len(DISTINCT) > 30
    assert sum(len(command) - 1 for command in RECORDED) > 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_blocks_of_commands_begin_with_programs_that_are_known(page: Path) -> None:
    assert {command[0] for command in PRINTED[page]} <= {*PROGRAMS, *OTHERS}


@pytest.mark.parametrize("command", [c for c in DISTINCT if c[0] != "pip"], ids=shlex.join)
def test_command_of_a_document_works_as_printed(tree: Tree, command: Command) -> None:
    succeeds(tree, command)


def test_extras_that_documents_install_exist() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installed = [words for words in DISTINCT if words[:2] == ("pip", "install")]
    assert installed
    for words in installed:
        for name in re.findall(r"\[(.*)\]", " ".join(words)):
            assert name in extras


@pytest.mark.parametrize("command", RECORDED, ids=lambda command: shlex.join(command)[-60:])
def test_commands_of_the_published_records_can_be_planned(tree: Tree, command: Command) -> None:
    """All targets with the same options at once, since they share one plan."""
    succeeds(tree, command)
