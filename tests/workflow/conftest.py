"""Copies of the working tree, fresh or with the miniature pipeline run in them."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.chaos import TARGET, thin_copy
from support.copies import Tree, copy_of_repository


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A fresh copy."""
    return copy_of_repository(tmp_path / "copy")


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy for tests that leave it as it was."""
    return copy_of_repository(tmp_path_factory.mktemp("shared") / "copy")


def made_once(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[Path], Tree]
) -> Tree:
    """Return what `make` leaves in a folder of this name: of several workers the first one makes it, the others wait."""
    if worker_id == "master":
        return make(tmp_path_factory.mktemp(name) / "copy")
    common = tmp_path_factory.getbasetemp().parent / name
    with common.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not common.with_suffix(".done").exists():
            shutil.rmtree(common, ignore_errors=True)
            make(common)
            common.with_suffix(".done").touch()
    return Tree(common)


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Tree:
    """A copy in which the miniature ran from nothing. Each worker has its own copy of it."""
    common = made_once(tmp_path_factory, worker_id, "miniature", run_miniature)
    return Tree(Path(shutil.copytree(common.path, tmp_path_factory.mktemp("miniature") / "copy")))


def run_miniature(folder: Path) -> Tree:
    """Run the miniature from nothing. The tracked outputs, which other tests render, count as up to date."""
    tree = copy_of_repository(folder)
    tree.run("--cores", "4", "mini")
    tree.run("--touch", "outputs")
    return tree


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Tree:
    """A thin copy in which nothing happened. Tests leave it as it is."""

    def make(folder: Path) -> Tree:
        tree = thin_copy(folder)
        tree.run("--cores", "2", TARGET)
        return tree

    return made_once(tmp_path_factory, worker_id, "undisturbed", make)
