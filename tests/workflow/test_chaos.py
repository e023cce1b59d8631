"""Whatever happens to the workflow, the same command, given again, ends with the outputs of an undisturbed run to the byte.

A failure names the seed and its accident.
"""

import shutil
from pathlib import Path

import pytest

from support.chaos import FOLDERS, KINDS, TARGET, Chaos, outcome
from support.copies import Tree

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_outputs_are_equal_to_the_byte_after_an_accident(seed: int, undisturbed: Tree, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "copy")
    shutil.copytree(undisturbed.path, tree.path)
    chaos = Chaos(tree, seed)
    if chaos.draw.randrange(2):  # half of the seeds begin at the beginning
        for folder in (*FOLDERS, "logs", ".snakemake"):
            shutil.rmtree(tree.path / folder)
    chaos.accident()
    chaos.give_command()
    expected = outcome(undisturbed)
    # Snakemake removes what a job left before it runs it again. If that is cut short and no later job needs the files, they
    # stay away until somebody asks for them. The target has been asked for.
    if absent := sorted(expected.keys() - outcome(tree).keys()):
        assert TARGET not in absent, chaos
        chaos.give_command(*absent)
    found = outcome(tree)
    assert sorted(found) == sorted(expected), chaos
    assert [name for name in expected if found[name] != expected[name]] == [], chaos
