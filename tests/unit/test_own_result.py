"""What the workflow says at the end about a user's own data."""

import json
from pathlib import Path

import pandas as pd
import pytest

from replication.report.own import result
from replication.runs.settings import load_settings
from support.repository import REPOSITORY


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_result_is_an_aligned_table_its_paths_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    settings = load_settings(REPOSITORY, {"datasets": {"pets": {"source": "image_folder", "path": "my pets"}}})
    monkeypatch.chdir(tmp_path)
    rows = [
        ("clai-m", "accuracy", 95.4, 0.7),
        ("clai-m", "roc_auc", 99.0, 0.1),
        ("majority-class", "accuracy", 50, None),
    ]
    frame = pd.DataFrame(rows, columns=["model", "metric", "mean", "sd"])
    for folder in ("my pets", "paper_figures/own/pets", "results/real/pets/evidence"):
        Path(folder).mkdir(parents=True)
    frame = frame if seeds > 1 else frame.drop(columns="sd")
    frame.to_csv("paper_figures/own/pets/table_accuracy.csv", index=False)
    about = {"title": "Pets", "licence": "none", "classes": ["cat", "dog"], "kind": "images", "source": "image_folder"}
    Path("results/real/pets/evidence/dataset.json").write_text(json.dumps(about), encoding="utf-8")
    spread = [" (0.70)", " (0.10)"] if seeds > 1 else ["", ""]
    said = result(settings, "pets").splitlines()
    widths = {len(line) for line in said[1:4]}
    assert len(widths) == 1, "aligned"
    assert said[2].split("  ")[0] == "CLaI-M"
    assert f"95.40{spread[0]}" in said[2]
    assert f"99.00{spread[1]}" in said[2]
    assert said[3].split() == ["Majority", "class,", "always", "50.00", "–"]
    assert said[4] == "Positive class: dog"
    assert "paper_figures/own/pets/table_accuracy.csv" in said[5]
    assert said[-1] == "Predict: clailearn predict results/real/pets/models/clai-m 'my pets' --votes 3"
