"""Whatever happens to the workflow, the same command, given again, ends with the outputs of an undisturbed run to the byte."""

import random
import shutil
from pathlib import Path

import pytest

from support.chaos import KINDS, TARGET, Chaos, outcome
from support.copies import Tree

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_equal_to_the_byte_after_an_accident(kind: str, undisturbed: Tree, tmp_path: Path) -> None:
    disturbed = Tree(Path(shutil.copytree(undisturbed.path, tmp_path / "copy")))
    chaos = Chaos(disturbed, random.Random(list(KINDS).index(kind)))
    chaos.accident(kind)
    chaos.give_command()
    expected = outcome(undisturbed)
    # Snakemake removes what a job left before it runs it again. If that is cut short and no later job needs the files, they
    # stay away until somebody asks for them. The target has been asked for.
    if absent := sorted(expected.keys() - outcome(disturbed).keys()):
        assert TARGET not in absent
        chaos.give_command(*absent)
    found = outcome(disturbed)
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
