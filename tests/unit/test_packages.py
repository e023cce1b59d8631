"""The wheel holds the method alone, which knows nothing of `replication`, and a layer imports from lower ones alone."""

import ast
import base64
import csv
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

import clailearn
from support.repository import PUBLISHED, REPOSITORY, run_script

SOURCE = REPOSITORY / "src"
LAYERS = ["clailearn", "runs", "metrics", "datasets", "models", "experiments", "report"]
"""Lowest first. Below `clailearn` all are folders of `replication`."""
METHOD_NEEDS = {"torch", "numpy", "scipy", "sklearn", "safetensors"}
MODULES = sorted(SOURCE.glob("clailearn/*.py")) + sorted(SOURCE.glob("replication/*/**/*.py"))
COMMAND = """
import sys

sys.path.insert(0, sys.argv[1])
from clailearn import cli

assert cli.__file__.startswith(sys.argv[1]), cli.__file__
sys.exit(cli.main(sys.argv[2:]))
"""
"""The command of the wheel; another test sees that its modules import its dependencies alone."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked; built from a copy, since building leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(REPOSITORY / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", "made"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "."], cwd=folder, check=True)
    (built,) = (folder / "made").iterdir()
    with ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_wheel_holds_the_method_alone(wheel: Path) -> None:
    info = f"clailearn-{clailearn.__version__}.dist-info"
    assert sorted(path.name for path in wheel.iterdir()) == ["clailearn", info]
    assert (wheel / "clailearn" / "py.typed").exists()
    assert "clailearn = clailearn.cli:main" in (wheel / info / "entry_points.txt").read_text()


def test_the_command_gives_the_published_votes_about_published_pictures(wheel: Path, tmp_path: Path) -> None:
    with gzip.open(PUBLISHED / "pathmnist" / "evidence" / "votes.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    images = [row for row in rows if row["role"] == "image"]
    for row in images:
        pixels = np.frombuffer(base64.b64decode(row["pixels"]), np.uint8).reshape(28, 28, 3)
        Image.fromarray(pixels).save(tmp_path / f"{row['image']}.png")
    folder = PUBLISHED / "pathmnist" / "models" / "clai-m"
    arguments = (str(wheel), "predict", str(folder), str(tmp_path), "--votes", "1", "--json")
    entries = json.loads(run_script(COMMAND, *arguments))
    by_image = {Path(entry["input"]).stem: entry for entry in entries}
    assert by_image.keys() == {row["image"] for row in images}
    for row in images:
        entry = by_image[row["image"]]
        assert entry["label"] == row["predicted"]
        # The evidence has the votes of the weights in float32; the model has the trunk's in float16.
        assert entry["scores"][entry["label"]] == pytest.approx(float(row["vote"]), abs=0.01)
        for role, votes in entry["votes"].items():
            first = next(other for other in rows if (other["image"], other["role"]) == (row["image"], role))
            assert votes[0]["item"] == int(first["item"])


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
