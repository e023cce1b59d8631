"""What the workflow says at the end about a user's own data."""

import json
import re
from pathlib import Path

import pytest

from replication.report.own import result
from replication.runs.settings import load_settings
from support.repository import REPOSITORY, lay

WITH_SPREAD = "model,metric,mean,sd\nclai-m,accuracy,95.4,0.7\nclai-m,roc_auc,99.0,0.1\nmajority-class,accuracy,50,\n"
OF_ONE_SEED = "model,metric,mean\nclai-m,accuracy,95.4\nclai-m,roc_auc,99.0\nmajority-class,accuracy,50\n"


@pytest.mark.parametrize(
    ("table", "cells"), [(WITH_SPREAD, ["95.40 (0.70)", "99.00 (0.10)"]), (OF_ONE_SEED, ["95.40", "99.00"])]
)
def test_the_result_is_an_aligned_table_its_paths_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, cells: list[str]
) -> None:
    settings = load_settings(REPOSITORY, {"datasets": {"pets": {"source": "image_folder", "path": "my pets"}}})
    monkeypatch.chdir(tmp_path)
    Path("my pets").mkdir()
    about = {"title": "Pets", "licence": "none", "classes": ["cat", "dog"], "kind": "images", "source": "image_folder"}
    lay(tmp_path / "results/real/pets/evidence", {"dataset.json": json.dumps(about).encode()})
    lay(tmp_path / "paper_figures/own/pets", {"table_accuracy.csv": table.encode()})
    said = result(settings, "pets").splitlines()
    assert len({len(line) for line in said[1:4]}) == 1, "aligned"
    assert re.split(" {2,}", said[2]) == ["CLaI-M", *cells]
    assert re.split(" {2,}", said[3]) == ["Majority class, always", "50.00", "–"]
    assert said[4] == "Positive class: dog"
    assert "paper_figures/own/pets/table_accuracy.csv" in said[5]
    assert said[-1] == "Predict: clailearn predict results/real/pets/models/clai-m 'my pets' --votes 3"
    settings["datasets"]["pets"]["models"] = ["cross-entropy"]
    assert result(settings, "pets").endswith("models/cross-entropy 'my pets'\n"), "it has no references"
