"""Runs made later join published evidence as if they had been made with it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.further_runs import add_runs
from replication.runs.identity import RunId
from replication.runs.record import read_records, write_records
from support.predictions import multiclass, write_predicted_evidence

LAST = RunId("pathmnist", "clai-m", 2)
MODELS = ("clai-m", "cross-entropy")


def record(run: RunId, **changes: Any) -> dict[str, Any]:
    """Return the record of a clean run."""
    own = {
        "seed": run.seed,
        "fold": run.fold,
        "threads": 1,
        "epoch_seconds": [2.0, 3.0],
        "validation_seconds": [0.5, 0.5],
    }
    shared = {
        "settings": {"model": run.model, "training": {"epochs": 2}},
        "versions": {},
        "data": {"raw.zip": "sha256:ab"},
    }
    return {"run": str(run), "commit": "c0ffee", "dirty": False, **own, **shared, **changes}


def write_run(folder: Path, run: RunId, metrics: pd.DataFrame, **changes: Any) -> None:
    """Write what a finished run leaves."""
    place = folder / str(run)
    place.mkdir(parents=True)
    of_run = metrics[(metrics["model"] == run.model) & (metrics["seed"] == str(run.seed))]
    of_run[["rule", "shares", "metric", "value"]].to_csv(place / "metrics.csv", index=False)
    (place / "run.json").write_text(json.dumps(record(run, **changes)))
    (place / "evaluation.json").write_text(json.dumps({"commit": "c0ffee", "dirty": False}))
    scores = multiclass(run.model, seeds=3)[1][run]
    np.savez(place / "predictions.npz", **scores)  # type: ignore[arg-type]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Published evidence of three seeds of two models."""
    folder = write_predicted_evidence(tmp_path / "whole")
    records = [record(RunId("pathmnist", model, seed)) for model in MODELS for seed in range(3)]
    for entry in records:
        entry["evaluation"] = {"commit": "c0ffee", "dirty": False}
    write_records(folder, records)
    return folder


@pytest.fixture
def target(whole: Path, tmp_path: Path) -> Path:
    """The same without the last seed of CLaI-M, which lies below `real` as a run that has just been finished."""
    folder = write_predicted_evidence(tmp_path / "published")
    metrics = pd.read_csv(folder / "metrics.csv", dtype=str, keep_default_na=False)
    write_run(tmp_path / "real", LAST, metrics)
    taken = (metrics["model"] == LAST.model) & (metrics["seed"] == str(LAST.seed))
    metrics[~taken].to_csv(folder / "metrics.csv", index=False)
    path = folder / "predictions_clai-m.npz"
    with np.load(path) as arrays:
        np.savez(path, **{name: part for name, part in arrays.items() if not name.startswith(LAST.replicate)})
    comparisons = pd.read_csv(folder / "comparisons.csv", dtype=str, keep_default_na=False)
    comparisons.loc[comparisons["model"] == "clai-m", ["value", "low", "high", "p"]] = "0"
    comparisons.to_csv(folder / "comparisons.csv", index=False)
    write_records(folder, [entry for entry in read_records(whole) if entry["run"] != str(LAST)])
    return folder


def test_a_further_seed_joins_published_evidence_as_if_made_with_it(target: Path, whole: Path, tmp_path: Path) -> None:
    changed = add_runs([LAST], tmp_path / "real", target.parents[1])
    assert {Path(file).name for file in changed} == {
        "comparisons.csv", "metrics.csv", "predictions_clai-m.npz", "runs.jsonl",
    }  # fmt: skip
    for file in whole.iterdir():
        if file.name != "comparisons.csv":
            assert (target / file.name).read_bytes() == file.read_bytes(), file.name
    here, there = (pd.read_csv(folder / "comparisons.csv") for folder in (target, whole))
    pd.testing.assert_frame_equal(here, there, atol=2e-3)
    alone = here["model"] == "cross-entropy"
    assert here[alone].equals(there[alone])  # the other model's own rows were not touched


def test_a_run_takes_the_place_of_a_published_one_as_if_made_with_the_others(
    target: Path, whole: Path, tmp_path: Path
) -> None:
    """The published run of the first seed has other figures and predictions than the one that replaces it."""
    first, root, real = RunId("pathmnist", "clai-m", 0), target.parents[1], tmp_path / "real"
    with pytest.raises(InputError, match=rf"found no run {LAST}, expected one to replace"):
        add_runs([LAST], real, root, replace=True)
    add_runs([LAST], real, root)
    metrics = pd.read_csv(whole / "metrics.csv", dtype=str, keep_default_na=False)
    write_run(real, first, metrics)
    replaced = (metrics["model"] == first.model) & (metrics["seed"] == "0")
    metrics.loc[replaced, "value"] = "0.125"
    metrics.to_csv(target / "metrics.csv", index=False)
    path = target / "predictions_clai-m.npz"
    with np.load(path) as arrays:
        others = {name: part for name, part in arrays.items() if not name.startswith(first.replicate)}
        np.savez(path, **{f"seed0/{name.split('/')[1]}": part for name, part in others.items()}, **others)
    changed = add_runs([first], real, root, replace=True)
    assert {"metrics.csv", "predictions_clai-m.npz"} <= {Path(file).name for file in changed}
    for name in ("metrics.csv", "predictions_clai-m.npz", "runs.jsonl", "runs_shared.json"):
        assert (target / name).read_bytes() == (whole / name).read_bytes(), name


def test_the_run_of_a_published_model_is_not_replaced(target: Path, tmp_path: Path) -> None:
    (target.parent / "models").mkdir()
    run, metrics = (
        RunId("pathmnist", "clai-m", 0),
        pd.read_csv(target / "metrics.csv", dtype=str, keep_default_na=False),
    )
    write_run(tmp_path / "real", run, metrics)
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    with pytest.raises(InputError, match=r"pathmnist/clai-m/seed0 is the first run of its model"):
        add_runs([run], tmp_path / "real", target.parents[1], replace=True)
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before


def test_a_study_takes_further_cells_with_the_times_of_their_epochs(tmp_path: Path) -> None:
    folder, run = tmp_path / "published/recipe/evidence", RunId("recipe", "full_fast", 0)
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_text('{"title": "a", "licence": "CC-BY-4.0", "kind": "images"}')
    (folder / "metrics.csv").write_text(
        "dataset,model,seed,fold,rule,metric,value\nrecipe,full,0,,printed,accuracy,0.50\n"
    )
    (folder / "history.csv").write_text(
        "dataset,model,seed,fold,epoch,seconds,validation_seconds\nrecipe,full,0,,1,7.0,1\n"
    )
    write_records(folder, [record(RunId("recipe", "full", 0))])
    place = tmp_path / "real" / str(run)
    place.mkdir(parents=True)
    (place / "metrics.csv").write_text("rule,metric,value\nprinted,accuracy,0.75\n")
    (place / "history.csv").write_text("epoch\n1\n2\n")
    (place / "run.json").write_text(json.dumps(record(run)))
    add_runs([run], tmp_path / "real", tmp_path / "published")
    assert (folder / "metrics.csv").read_text().splitlines()[1:] == [
        "recipe,full,0,,printed,accuracy,0.50",
        "recipe,full_fast,0,,printed,accuracy,0.75",
    ]
    assert (folder / "history.csv").read_text().splitlines()[1:] == [
        "recipe,full,0,,1,7.0,1",
        "recipe,full_fast,0,,1,2.0,0.5",
        "recipe,full_fast,0,,2,5.0,1.0",
    ]


HISTORY = "epoch,loss,validation_accuracy\n1,0.2,0.5\n2,0.125,\n"
READ_OUTS = "read_out,metric,value\nvote,accuracy,0.75\n"
PUBLISHED, UNTRAINED = RunId("pathmnist", "clai-m", 1), RunId("pathmnist", "untrained", 1)


@pytest.fixture
def controlled(target: Path, tmp_path: Path) -> Path:
    """The published evidence with read-outs of one seed; those of a second seed, of a model and of none, lie below `real`."""
    (target / "history.csv").write_text(
        "dataset,model,seed,fold,epoch,loss,floor,validation_accuracy\n"
        "pathmnist,clai-m,0,,1,0.3,0.1,0.4\npathmnist,clai-m,1,,1,0.2,0.1,0.5\npathmnist,clai-m,1,,2,0.125,0.1,\n"
    )
    (target / "read_outs.csv").write_text(
        "model,seed,read_out,metric,value\nclai-m,0,vote,accuracy,0.70\nuntrained,0,vote,accuracy,0.10\n"
    )
    for run in (PUBLISHED, UNTRAINED):
        place = tmp_path / "real" / str(run)
        place.mkdir(parents=True)
        (place / "read_outs.csv").write_text(READ_OUTS)
    (tmp_path / "real" / str(PUBLISHED) / "history.csv").write_text(HISTORY)
    prepared = tmp_path / "real/pathmnist/prepared"
    prepared.mkdir()
    (prepared / "dataset.json").write_bytes((target / "dataset.json").read_bytes())
    return target


def test_controls_of_a_published_run_join_its_evidence_and_nothing_else_changes(
    controlled: Path, tmp_path: Path
) -> None:
    before = {file.name: file.read_bytes() for file in controlled.iterdir()}
    changed = add_runs([PUBLISHED, UNTRAINED], tmp_path / "real", controlled.parents[1])
    assert changed == ["pathmnist/evidence/read_outs.csv"]
    assert (controlled / "read_outs.csv").read_text().splitlines()[1:] == [
        "clai-m,0,vote,accuracy,0.70",
        "clai-m,1,vote,accuracy,0.75",
        "untrained,0,vote,accuracy,0.10",
        "untrained,1,vote,accuracy,0.75",
    ]
    del before["read_outs.csv"]
    assert before == {name: (controlled / name).read_bytes() for name in before}
    with pytest.raises(
        InputError, match=r"clai-m/seed1 is published already, and .* has nothing that its evidence lacks"
    ):
        add_runs([PUBLISHED], tmp_path / "real", controlled.parents[1])


def test_controls_of_another_model_than_the_published_one_are_refused(controlled: Path, tmp_path: Path) -> None:
    real, root = tmp_path / "real", controlled.parents[1]
    history, prepared = real / str(PUBLISHED) / "history.csv", real / "pathmnist/prepared/dataset.json"
    for changed in (HISTORY.replace("0.125", "0.1251"), HISTORY + "3,0.1,0.6\n"):
        history.write_text(changed)
        with pytest.raises(InputError, match="another training than the published one of pathmnist/clai-m/seed1"):
            add_runs([PUBLISHED], real, root)
    history.unlink()
    with pytest.raises(InputError, match=r"history.csv is missing, expected the history of a trained model"):
        add_runs([PUBLISHED], real, root)
    prepared.write_text('{"arrays": {"x_test": {"sha256": "ab"}}}')
    with pytest.raises(InputError, match="found other arrays"):
        add_runs([UNTRAINED], real, root)
    prepared.unlink()
    with pytest.raises(InputError, match=r"dataset.json is missing, expected the prepared data"):
        add_runs([UNTRAINED], real, root)
    assert (controlled / "read_outs.csv").read_text().count("\n") == 3


def test_a_traced_training_of_a_further_seed_joins_with_its_alignment_and_read_outs(
    controlled: Path, tmp_path: Path
) -> None:
    run, root = RunId("pathmnist", "alignment-m", 1), controlled.parents[1]
    with pytest.raises(InputError, match=r"alignment-m/seed1/traced/alignment.csv is missing, expected a finished run"):
        add_runs([run], tmp_path / "real", root)
    columns = "epoch,kernel,alignment,centred_alignment,class_alignment\n"
    (controlled / "alignment.csv").write_text(f"model,seed,{columns}alignment-m,0,1,cosine,0.25,0.5,\n")
    traced = tmp_path / "real" / str(run) / "traced"
    traced.mkdir(parents=True)
    (traced / "alignment.csv").write_text(f"{columns}1,cosine,0.75,0.5,\n")
    (traced / "run.json").write_text(json.dumps(record(run)))
    (traced.parent / "read_outs.csv").write_text(READ_OUTS)
    changed = add_runs([run], tmp_path / "real", root)
    assert {Path(file).name for file in changed} == {"alignment.csv", "read_outs.csv", "runs.jsonl", "runs_shared.json"}
    assert (controlled / "alignment.csv").read_text().splitlines()[-1] == "alignment-m,1,1,cosine,0.75,0.5,"
    assert (controlled / "read_outs.csv").read_text().splitlines()[-1] == "alignment-m,1,vote,accuracy,0.75"
    assert str(run) in [entry["run"] for entry in read_records(controlled)]
    with pytest.raises(InputError, match="is published already"):
        add_runs([run], tmp_path / "real", root)


def test_a_published_run_without_epochs_has_nothing_to_add(controlled: Path, tmp_path: Path) -> None:
    """Its history has a header alone."""
    run = RunId("pathmnist", "gradient-boosting", 0)
    write_records(controlled, [*read_records(controlled), record(run)])
    for header in ("", "seconds,validation_seconds,"):
        (controlled / "history.csv").write_text(f"dataset,model,seed,fold,{header}epoch,loss\n")
        place = tmp_path / "real" / str(run)
        place.mkdir(parents=True, exist_ok=True)
        (place / "history.csv").write_text("epoch,loss\n")
        with pytest.raises(InputError, match="gradient-boosting/seed0 is published already"):
            add_runs([run], tmp_path / "real", controlled.parents[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dirty": True}, "uncommitted changes"),
        ({"data": {"raw.zip": "sha256:cd"}}, "other raw data"),
        (
            {"settings": {"model": "clai-m", "training": {"epochs": 3}}},
            "training.epochs 3 here and 2 in the published run",
        ),
    ],
)
def test_a_run_that_does_not_belong_to_the_published_ones_is_refused_and_changes_nothing(
    target: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    path = tmp_path / "real" / str(LAST) / "run.json"
    path.write_text(json.dumps(record(LAST, **changes)))
    with pytest.raises(InputError, match=message):
        add_runs([LAST], tmp_path / "real", target.parents[1])
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before


def test_a_run_in_the_precision_of_another_machine_belongs_to_the_published_ones(target: Path, tmp_path: Path) -> None:
    settings = {"model": "clai-m", "training": {"epochs": 2, "precision": "float32"}}
    records = read_records(target)
    for entry in records:
        entry["settings"] = settings | {
            "training": {"epochs": 2, "precision": "bfloat16"},
            "model": entry["settings"]["model"],
        }
    write_records(target, records)
    (tmp_path / "real" / str(LAST) / "run.json").write_text(json.dumps(record(LAST, settings=settings)))
    assert add_runs([LAST], tmp_path / "real", target.parents[1])


def test_what_is_missing_is_named(target: Path, tmp_path: Path) -> None:
    root, real = target.parents[1], tmp_path / "real"
    with pytest.raises(InputError, match=r"seed7/metrics.csv is missing, expected a finished run"):
        add_runs([RunId("pathmnist", "clai-m", 7)], real, root)
    with pytest.raises(InputError, match="found a run of a fold"):
        add_runs([RunId("pathmnist", "clai-m", 2, 1)], real, root)
    with pytest.raises(InputError, match="found no evidence, expected some"):
        add_runs([RunId("cifar10", "clai-m", 0)], real, root)
    for text, message in (
        ("{", "expected JSON"),
        ("[]", "no JSON object"),
        ('{"run": "a/b/seed0"}', f"no record of {LAST}"),
    ):
        (real / str(LAST) / "run.json").write_text(text)
        with pytest.raises(InputError, match=message):
            add_runs([LAST], real, root)
    (real / str(LAST) / "run.json").write_text(json.dumps(record(LAST)))
    (real / str(LAST) / "predictions.npz").unlink()
    with pytest.raises(InputError, match=r"predictions.npz is missing"):
        add_runs([LAST], real, root)


def test_published_predictions_that_are_damaged_are_named_and_nothing_changes(target: Path, tmp_path: Path) -> None:
    path = target / "predictions_clai-m.npz"
    path.write_bytes(path.read_bytes()[:-40])
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    with pytest.raises(InputError, match=r"predictions_clai-m\.npz"):
        add_runs([LAST], tmp_path / "real", target.parents[1])
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before
