"""Copies of the working tree, fresh or with the miniature pipeline run in them."""

import shutil
from pathlib import Path

import pytest

from support.copies import Tree, copy_of_repository


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A fresh copy."""
    return copy_of_repository(tmp_path / "copy")


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy for tests that leave it as it was."""
    return copy_of_repository(tmp_path_factory.mktemp("shared") / "copy")


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy in which `snakemake all` ran from nothing, tracked renderings included."""
    tree = copy_of_repository(tmp_path_factory.mktemp("miniature") / "copy")
    shutil.rmtree(tree.path / "paper_figures", ignore_errors=True)
    run = tree.snakemake("--cores", "4", "all")
    assert run.returncode == 0, run.stdout[-20000:]
    return tree
