"""Two classes of pictures and of table rows, from raw files to their metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn import metrics as sk

from clailearn.errors import InputError
from replication.datasets.prepared import Prepared, load
from replication.datasets.sources import obtain, prepare
from replication.experiments.evaluation import evaluate
from replication.experiments.predictions import samples_of
from replication.metrics.intervals import SAMPLE_METRICS, compare_models
from replication.models.base import create
from replication.models.run import Run
from replication.runs.run import RunId
from replication.runs.settings import merge
from support.repository import REAL, SOURCES

SHARES = {"title": "Two", "validation_share": 0.25, "test_share": 0.3}
ENCODERS: dict[str, Any] = {
    "image_folder": {"trunk": "resnet2d", "width": 4, "blocks": [1], "pool": True},
    "feature_table": {"trunk": "mlp", "width": 8, "layers": 1},
}
SETTINGS: dict[str, Any] = {
    "embedding_size": 4, "inference": {"validation_references": 20},
    "training": {"epochs": 2, "batch_size": 8, "precision": "float32"},
}  # fmt: skip
EXPECTED = {None: ["2", "10"], 2: ["10", "2"]}
"""The classes by the positive one of the entry; sorted as texts, 10 would be the first."""


def prepared(folder: Path, source: str, names: tuple[str, ...] = ("2", "10"), **settings: Any) -> Prepared:
    """Raw files of these classes, prepared: bright pictures, or rows of a table, are those of the last class."""
    rng, raw = np.random.default_rng(0), folder / "own"
    if source == "image_folder":
        for split, k, i in np.ndindex(2, len(names), 30):
            path = raw / ("train", "test")[split] / names[k] / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(60 * k, 150 + 60 * k, (8, 8, 3), dtype=np.uint8)).save(path)
        settings |= {"image_size": 8}
    else:
        raw, k = folder / "own.csv", np.arange(120) % len(names)
        table = pd.DataFrame(rng.normal(size=(120, 2)) + k[:, None], columns=["a", "b"])
        table.assign(label=np.array(names)[k], who=np.arange(120) // 4).to_csv(raw, index=False)
        settings |= {"label_column": "label", "group_column": "who", "feature_columns": "all others", "classes": None}
    entry = SHARES | {"source": source, "path": str(raw)} | settings
    prepare(obtain("two", entry, SOURCES, folder / "raw", False), folder / "prepared", entry, 0)
    return load(folder / "prepared")


@pytest.mark.parametrize(("source", "positive"), [("image_folder", None), ("feature_table", 2)])
def test_two_classes_have_the_metrics_of_scikit_learn(tmp_path: Path, source: str, positive: int | None) -> None:
    settings = merge(REAL, SETTINGS, {"encoder": ENCODERS[source]})
    data = prepared(tmp_path, source, positive=positive)
    assert data.info["classes"] == EXPECTED[positive]
    y, measured, predicted = np.asarray(data["y_test"]), {}, {}
    for model in ("clai-m", "cross-entropy"):
        run, made = Run(data, settings, RunId("two", model, 0), torch.device("cpu")), create(model)
        made.fit(run, None)
        evaluation, _ = evaluate(run, made)
        of_run = evaluation.predictions
        main = evaluation.metrics.query("rule in ['printed', ''] and shares in ['population', '']")
        found, label = main.set_index("metric")["value"], of_run.score > 0
        for name, value in {
            "accuracy": sk.accuracy_score(y, label), "precision": sk.precision_score(y, label, zero_division=0),
            "recall": sk.recall_score(y, label), "f1": sk.f1_score(y, label), "roc_auc": sk.roc_auc_score(y, of_run.score),
            "auprc": sk.average_precision_score(y, of_run.score), "prevalence": y.mean(),
        }.items():  # fmt: skip
            assert found[name] == pytest.approx(value, abs=1e-6), name
        assert (found["auroc"], found["ece_calibrated"]) == (found["roc_auc"], found["ece_scaled"])
        measured[model], predicted[model] = found, {0: of_run}
    compared = compare_models(y, samples_of(data).group, predicted, draws=20).query("other == ''")
    for row in compared.to_dict("records"):
        assert row["value"] == pytest.approx(measured[row["cell"]][row["metric"]], abs=1e-6)
    assert len(compared) == 2 * len(SAMPLE_METRICS)


@pytest.mark.parametrize("source", ENCODERS)
def test_an_unknown_positive_class_is_refused_by_name(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match="found the classes 2, 10 and the positive class 3"):
        prepared(tmp_path, source, positive=3)
