"""The library's layers: a module imports from its own layer and from lower ones alone."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "clai"
LAYERS = ["method", "runs", "metrics", "datasets", "baselines", "experiments", "benchmark", "report"]
"""Lowest first. `method` is the root of the package."""
METHOD_NEEDS = {"torch", "numpy", "scipy", "sklearn"}
MODULES = sorted(SOURCE.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Dotted names of the modules that a file imports anywhere in it; `from clai import kernels` gives clai.kernels."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: found a relative import, expected one that starts with clai"
            if node.module == "clai":
                yield from (f"clai.{alias.name}" for alias in node.names)
            elif node.module is not None:
                yield node.module


def layer(module: str) -> str:
    """Layer of a dotted name below clai."""
    parts = module.split(".")
    return parts[1] if parts[1] in LAYERS else "method"


def name(path: Path) -> str:
    return path.relative_to(SOURCE.parent).as_posix()


def test_the_layers_are_the_folders() -> None:
    folders = {path.relative_to(SOURCE).parts[0] for path in MODULES if path.parent != SOURCE}
    assert folders == set(LAYERS) - {"method"}


def test_the_method_is_at_most_fourteen_files() -> None:
    assert len(list(SOURCE.glob("*.py"))) <= 14


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_from_its_own_layer_and_lower_ones(path: Path) -> None:
    here = layer(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    library = [module for module in imported(path) if module.startswith("clai.")]
    above = [module for module in library if LAYERS.index(layer(module)) > LAYERS.index(here)]
    assert not above, (
        f"{name(path)} imports {', '.join(above)}, above its layer {here}: move the code that it needs down"
    )
    if here == "runs":
        others = [module for module in library if layer(module) != "runs" and module != "clai.errors"]
        assert not others, f"{name(path)} imports {', '.join(others)}; runs needs clai.errors and nothing else"


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.py")), ids=name)
def test_the_method_needs_torch_numpy_scipy_and_scikit_learn_alone(path: Path) -> None:
    packages = {module.partition(".")[0] for module in imported(path)}
    assert packages - sys.stdlib_module_names <= METHOD_NEEDS | {"clai"}
