"""The source that docs/extending.md shows works as it is printed: one module and one config entry."""

import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

from clai.datasets.fetch import obtain
from clai.datasets.prepare import prepare
from clai.datasets.prepared import load
from clai.errors import InputError
from support.loopback import ONCE

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs" / "extending.md").read_text()
SCHEMA = yaml.safe_load((REPOSITORY / "workflow" / "config" / "schema.yaml").read_text())


def block(language: str, mark: str) -> str:
    found = [b for b in re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL) if mark in b]
    assert len(found) == 1
    return str(found[0])


def entries() -> dict[str, Any]:
    """The config entries of the page by dataset."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)]
    parts = [block["datasets"] for block in blocks if "datasets" in block]
    return {key: entry for part in parts for key, entry in part.items()}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> str:
    """The page's module, where the library looks for sources."""
    name = f"clai.datasets.{entries()['digits']['source']}"
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(block("python", "Pictures as rows"), "docs/extending.md", "exec"), module.__dict__)
    return name


def write_pictures(path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 255, (30, 64)), columns=[f"p{i}" for i in range(64)])
    table.insert(0, "label", np.arange(30) % 3)
    table.insert(0, "split", np.repeat(["train", "val", "test"], 10))
    table.to_csv(path, index=False)
    return table


@pytest.mark.usefixtures("source")
def test_the_module_prepares_what_the_entry_names(tmp_path: Path) -> None:
    table = write_pictures(tmp_path / "digits.csv")
    settings = entries()["digits"] | {"path": str(tmp_path / "digits.csv")}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    raw = obtain("digits", settings, sources, tmp_path / "raw", None, ONCE, False)
    prepare(raw, tmp_path / "prepared", settings, 0)
    data = load(tmp_path / "prepared")
    assert data["x_test"].shape == (10, 8, 8, 1)
    np.testing.assert_array_equal(data["x_val"].reshape(10, 64), table[table["split"] == "val"].iloc[:, 2:])
    assert data.info["title"] == "Digits"
    assert data.info["classes"] == ["0", "1", "2"]
    assert (data.info["version"], data.info["licence"]) == ("as provided", "not stated")


@pytest.mark.usefixtures("source")
def test_the_module_refuses_what_it_does_not_expect(tmp_path: Path) -> None:
    write_pictures(tmp_path / "digits.csv").drop(columns="p7").to_csv(tmp_path / "digits.csv", index=False)
    settings = entries()["digits"] | {"path": str(tmp_path / "digits.csv")}
    sources = REPOSITORY / "workflow" / "config" / "data_sources.csv"
    raw = obtain("digits", settings, sources, tmp_path / "raw", None, ONCE, False)
    with pytest.raises(InputError, match=r"digits\.csv: found no column p7"):
        prepare(raw, tmp_path / "prepared", settings, 0)
    assert not (tmp_path / "prepared").exists()


def test_the_entries_of_the_page_are_valid_settings() -> None:
    found = entries()
    assert found.keys() == {"bloodmnist", "digits"}
    whole = {"$defs": SCHEMA["$defs"], **SCHEMA["properties"]["datasets"]}
    jsonschema.Draft202012Validator(whole).validate(found)
