"""The two packages and the layers: `clailearn` knows nothing of `replication`, and a layer imports from lower ones alone."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repository import REPOSITORY

SOURCE = REPOSITORY / "src"
LAYERS = ["clailearn", "runs", "metrics", "datasets", "models", "experiments", "report"]
"""Lowest first. Below `clailearn` all are folders of `replication`."""
METHOD_NEEDS = {"torch", "numpy", "scipy", "sklearn", "safetensors"}
MODULES = sorted(SOURCE.glob("clailearn/*.py")) + sorted(SOURCE.glob("replication/*/**/*.py"))


def imported(path: Path) -> Iterator[str]:
    """Dotted names of the modules that a file imports anywhere in it; `from clailearn import kernels` gives clailearn.kernels."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: found a relative import, expected one from a package"
            if node.module in ("clailearn", "replication"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif node.module is not None:
                yield node.module


def layer(module: str) -> str:
    """Layer of a dotted name of this repository."""
    package, _, rest = module.partition(".")
    return "clailearn" if package == "clailearn" else rest.partition(".")[0]


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_from_its_own_layer_and_lower_ones(path: Path) -> None:
    here = layer(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    library = [module for module in imported(path) if module.startswith(("clailearn.", "replication."))]
    above = [module for module in library if LAYERS.index(layer(module)) > LAYERS.index(here)]
    assert not above, f"{name(path)} imports {', '.join(above)}, above its layer {here}: move what it needs down"
    if here == "runs":
        others = [module for module in library if layer(module) != "runs" and module != "clailearn.errors"]
        assert not others, f"{name(path)} imports {', '.join(others)}; runs needs clailearn.errors and nothing else"


@pytest.mark.parametrize("path", sorted((SOURCE / "clailearn").rglob("*.py")), ids=name)
def test_the_method_needs_its_dependencies_alone(path: Path) -> None:
    packages = {module.partition(".")[0] for module in imported(path)}
    allowed = METHOD_NEEDS | {"clailearn"} | {"pictures.py": {"PIL"}}.get(path.name, set())
    assert packages - sys.stdlib_module_names <= allowed
