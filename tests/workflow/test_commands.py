"""Every command that a document prints exists: targets of Snakemake and make, subcommands, scripts and tests."""

import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from support.copies import Tree
from support.repository import REPOSITORY

pytestmark = pytest.mark.slow

PAGES = [*REPOSITORY.glob("[RC][EO]*.md"), *(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "envs" / "README.md"]
PROGRAMS = ("snakemake", "make", "clai", "pytest", "python")
STANDING_FOR = {"<target>": "all", "<file>": "paper_figures/table1.tex"}

Command = tuple[str, ...]


def commands_in(page: str) -> set[Command]:
    """Return the commands in the blocks and in the inline code of a Markdown page, without comments."""
    text = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.DOTALL | re.MULTILINE).replace("\\\n", " ")
    inline = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]
    found = set()
    for line in [*re.findall(r"^ {4}(\S.*)$", text, flags=re.MULTILINE), *inline]:
        for part in re.split(r" && |;", re.sub(r" # .*", "", line)):
            words = shlex.split(part.replace("'", ""))
            if words[:1] and words[0] in PROGRAMS and (len(words) > 1 or words == ["make"]):
                found.add(tuple(STANDING_FOR.get(word, word) for word in words))
    return found


PRINTED = sorted({command for page in PAGES for command in commands_in(page.read_text())})


def printed(*beginning: str) -> list[Command]:
    """Return the commands that begin like this."""
    return [command for command in PRINTED if command[: len(beginning)] == beginning]


def succeeds(tree: Tree, command: list[str]) -> None:
    run = subprocess.run(command, cwd=tree.path, env=tree.environment(), text=True, capture_output=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


@pytest.fixture(scope="module")
def tree(shared_tree: Tree) -> Tree:
    """A copy whose `local.yaml` has the study that the page on extending adds, with the models that the one on running copies."""
    blocks = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "extending.md").read_text(), flags=re.DOTALL)
    (study,) = (block for block in blocks if "studies:" in block)
    (shared_tree.path / "local.yaml").write_text(study)
    results = shared_tree.path / "results"
    shutil.copytree(results / "published/pathmnist/models", results / "real/pathmnist/models")
    return shared_tree


def targets_by_options() -> dict[Command, set[str]]:
    """Return the targets of the printed commands by the options behind them: one dry run plans all with the same options."""
    found: dict[Command, set[str]] = {}
    for command in printed("snakemake"):
        words = shlex.split(re.sub(r" --dry-run| --cores \d+", "", shlex.join(command)))[1:]
        targets = list(takewhile(lambda word: not word.startswith("-"), words))
        found.setdefault(tuple(words[len(targets) :]), set()).update(targets)
    return found


TARGETS = targets_by_options()


@pytest.mark.parametrize("options", sorted(TARGETS), ids=lambda options: " ".join(options) or "no options")
def test_targets_of_snakemake_can_be_planned(tree: Tree, options: Command) -> None:
    words = [] if "--unlock" in options else ["--dry-run", "--quiet=all"]
    succeeds(tree, tree.command(*words, *sorted(TARGETS[options]), *options))


@pytest.mark.parametrize("module", ["clai", "replication"])
def test_subcommands_exist(shared_tree: Tree, module: str) -> None:
    script = str(Path(sys.executable).with_name("clai"))
    commands = printed("clai") if module == "clai" else printed("python", "-m", module)
    names = {command[1 if module == "clai" else 3] for command in commands}
    assert names
    for name in names:
        beginning = [script] if module == "clai" else [sys.executable, "-m", module]
        succeeds(shared_tree, [*beginning, name, "--help"])


def test_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE)
    assert {word for command in printed("make") for word in command[1:] if "=" not in word} <= set(targets)


def test_scripts_and_tests_exist() -> None:
    files = {word for command in printed("python") + printed("pytest") for word in command[1:] if ".py" in word}
    assert files
    assert [file for file in files if not Path(REPOSITORY, file).exists()] == []
