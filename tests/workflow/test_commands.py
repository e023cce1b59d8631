"""Every command that a document prints exists: targets of Snakemake and make, and subcommands."""

import re
import shlex
import shutil
from collections.abc import Callable

import pytest
from snakemake.cli import parse_args

import clailearn.cli
from replication.__main__ import main
from support.copies import Tree
from support.repository import REPOSITORY

pytestmark = pytest.mark.slow

PAGES = [*REPOSITORY.glob("[RC][EO]*.md"), *(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "envs" / "README.md"]
PROGRAMS = ("snakemake", "make", "clailearn", "python")
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


@pytest.fixture(scope="module")
def tree(shared_tree: Tree) -> Tree:
    """A copy whose `local.yaml` has the study that the page on extending adds, with the models that the one on running copies."""
    blocks = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "extending.md").read_text(), flags=re.DOTALL)
    (study,) = (block for block in blocks if "studies:" in block)
    (shared_tree.path / "local.yaml").write_text(study)
    results = shared_tree.path / "results"
    shutil.copytree(results / "published/pathmnist/models", results / "real/pathmnist/models")
    return shared_tree


def targets_by_configuration() -> dict[Command, set[str]]:
    """Return the targets of the printed commands by what else decides a plan: one dry run plans all that have it in common."""
    found: dict[Command, set[str]] = {}
    for command in printed("snakemake"):
        _, given = parse_args(list(command[1:]))
        rules = ("--allowed-rules", *given.allowed_rules) if given.allowed_rules else ()
        config = ("--config", *given.config) if given.config else ()
        found.setdefault((*rules, *config), set()).update(given.targets, given.forcerun)
    return found


TARGETS = targets_by_configuration()


@pytest.mark.parametrize("configuration", sorted(TARGETS), ids=lambda words: " ".join(words) or "no options")
def test_targets_of_snakemake_can_be_planned(tree: Tree, configuration: Command) -> None:
    words = ["--dry-run", "--quiet=all", "--configfile", "local.yaml", *configuration]
    tree.run(*sorted(TARGETS[configuration]), *words)


@pytest.mark.parametrize(
    ("beginning", "main"), [(("clailearn",), clailearn.cli.main), (("python", "-m", "replication"), main)]
)
def test_subcommands_exist(beginning: Command, main: Callable[[list[str]], int]) -> None:
    names = {command[len(beginning)] for command in printed(*beginning)}
    assert names
    for name in names:
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert left.value.code == 0


def test_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE)
    assert {word for command in printed("make") for word in command[1:] if "=" not in word} <= set(targets)
