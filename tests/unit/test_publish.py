"""Published evidence grows by finished runs, loses none, and shows no single patient of a credentialed source."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clailearn.errors import InputError
from replication.datasets.prepared import writing
from replication.datasets.sources import read_sources
from replication.experiments.predictions import save_predictions
from replication.report.evidence import PATIENT_LEVEL, PROJECTED, is_open, withheld
from replication.report.figures.render import render
from replication.report.publish import LARGEST, LARGEST_TABLE, promote, publish
from replication.runs.outputs import published_models
from replication.runs.run import EVALUATIONS, RUNS, RunId, records_of, write_records
from replication.runs.settings import load_settings, runs_of_study
from support.predictions import multiclass, write_predicted_evidence
from support.published import copy_evidence, describe, evidence_for
from support.repository import REAL, REPOSITORY, SOURCES, contents, lay

# What may be tracked


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Evidence of a full run on both sepsis datasets, with the licences that the table of sources states."""
    root = copy_evidence(tmp_path / "results" / "real", "challenge2019", "theory")
    shutil.copytree(root / "challenge2019", root / "mimic-iv")
    describe(root, "mimic-iv", licence=read_sources(SOURCES, "mimic-iv")[0].licence)
    return root


def promoted(source: Path, target: Path) -> set[str]:
    copied = promote({file.relative_to(source): file for file in sorted(source.glob("*/evidence/*"))}, target)
    assert set(map(str, copied)) == set(contents(target))
    return set(contents(target))


def test_no_patient_of_a_credentialed_source_is_published_or_kept_from_before(source: Path, tmp_path: Path) -> None:
    stale = tmp_path / "published" / "mimic-iv" / "evidence" / "signals.csv"
    lay(stale.parent, {stale.name: b"a patient"})
    files = promoted(source, tmp_path / "published")
    assert "challenge2019/evidence/signals.csv" in files
    assert {f"mimic-iv/evidence/{name}" for name in ("metrics.csv", "latent.csv", "dataset.json")} <= files
    assert not stale.exists()
    for path in stale.parent.glob("*.csv"):
        assert not {"subject_id", "stay_id", "hour", "recording", "patient"} & set(pd.read_csv(path).columns)


def test_only_open_licences_let_rows_and_predictions_of_patients_be_published(tmp_path: Path) -> None:
    def shows(file: str, licence: str, kind: str) -> bool:
        (tmp_path / "dataset.json").write_text(json.dumps({"title": "a", "licence": licence, "kind": kind}))
        return not withheld(tmp_path / file, (*PATIENT_LEVEL, *PROJECTED))

    licences = {name: read_sources(SOURCES, name)[0].licence for name in ("sleepedf", "mimic-iv", "challenge2019")}
    assert [name for name, licence in licences.items() if is_open(licence)] == ["sleepedf", "challenge2019"]
    for licence in ("", "not stated", "CC-BY-NC-4.0", licences["mimic-iv"]):
        assert not shows("signals.csv", licence, "recordings")
        assert shows("metrics.csv", licence, "recordings")
    for file in ("samples.parquet", "predictions_gp.parquet", "tsne.csv.gz", "stages.csv.gz"):
        for kind in ("recordings", "features", "images"):
            assert shows(file, "not stated", kind) == (kind == "images")
            assert shows(file, "CC-BY-4.0", kind)


def test_figures_drawn_from_a_full_run_show_no_such_patient_either(source: Path) -> None:
    """They are written to a tracked folder, whatever evidence they are drawn from."""
    shutil.copytree(source / "challenge2019", source / "challenge2019-septic")
    evidence = evidence_for("figure4", source)
    assert evidence.frame("mimic-iv", "signals.csv").empty
    frame = render("figure4", evidence, "Signals.", pd.DataFrame())[1]
    assert set(frame.loc[frame["signal"] != "area", "dataset"]) == {"challenge2019-septic"}


def test_no_model_of_credentialed_data_is_asked_for() -> None:
    own = load_settings(REPOSITORY, {"run": ["mimic-iv", "pathmnist"], "datasets": {"mimic-iv": {"path": "p"}}})
    assert {file.split("/")[2] for file in published_models("results/real", own)} == {"pathmnist"}


@pytest.mark.parametrize(
    ("file", "largest"), [("predictions_gp.parquet", LARGEST[".parquet"]), ("latent.csv", LARGEST_TABLE)]
)
def test_large_files_are_refused_and_nothing_is_copied(source: Path, tmp_path: Path, file: str, largest: int) -> None:
    (source / "challenge2019" / "evidence" / file).write_bytes(bytes(largest + 1))
    with pytest.raises(InputError, match=rf"{file} has \d+ bytes"):
        promoted(source, tmp_path / "published")
    assert not (tmp_path / "published").exists()


@pytest.mark.parametrize(
    ("file", "change"), [(RUNS, {"dirty": True}), (RUNS, {"commit": None}), (EVALUATIONS, {"commit": "c0ffee"})]
)
def test_runs_of_uncommitted_code_are_refused(source: Path, tmp_path: Path, file: str, change: dict[str, Any]) -> None:
    folder = source / "theory" / "evidence"
    first, *others = records_of(folder)
    changed = first | change if file == RUNS else {"run": first["run"], **change}
    write_records(folder / file, [changed, *others])
    with pytest.raises(InputError, match=rf"run {first['run']} was made with uncommitted changes .* compute it again"):
        promoted(source, tmp_path / "published")
    assert not (tmp_path / "published").exists()


# How it grows


def record(run: RunId) -> dict[str, Any]:
    """Return the record of a clean run."""
    own = {"seed": run.seed, "fold": run.fold, "threads": 1}
    settings = {"model": run.cell, "training": {"epochs": 2, "precision": "bfloat16"}}
    shared = {"settings": settings, "versions": {}, "data": {"raw.zip": "sha256:ab"}}
    return {"run": str(run), "commit": "c0ffee", "dirty": False, **own, **shared}


def write_evidence(root: Path, of_clai_m: int) -> Path:
    """Write evidence of so many seeds of CLaI-M, and of three of cross-entropy, below `root`; return `root`."""
    folder = write_predicted_evidence(root, of_clai_m)
    seeds = {"clai-m": of_clai_m, "cross-entropy": 3}
    runs = [RunId("pathmnist", model, seed) for model in seeds for seed in range(seeds[model])]
    rows = [f"pathmnist,{run.cell},{run.seed},,{epoch},0.{epoch}{run.seed}\n" for run in runs for epoch in (1, 2)]
    (folder / "history.csv").write_text("name,cell,seed,fold,epoch,loss\n" + "".join(rows))
    write_records(folder / RUNS, [record(run) for run in runs])
    return root


@pytest.fixture
def real(tmp_path: Path) -> Path:
    return write_evidence(tmp_path / "real", of_clai_m=3)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return write_evidence(tmp_path / "published", of_clai_m=2)


def test_further_runs_join_as_if_made_with_the_others(target: Path, real: Path) -> None:
    here, there = (root / "pathmnist" / "evidence" for root in (target, real))
    changed = publish(["pathmnist"], real, target, REAL)
    assert {Path(file).name for file in changed} >= {"comparisons.csv", "metrics.csv", "runs.jsonl"}
    for file in there.iterdir():
        if file.name != "comparisons.csv":
            both = [(folder / file.name).read_bytes().splitlines() for folder in (here, there)]
            assert sorted(both[0]) == sorted(both[1]) if file.suffix == ".csv" else both[0] == both[1], file.name
    compared, expected = (pd.read_csv(folder / "comparisons.csv") for folder in (here, there))
    pd.testing.assert_frame_equal(compared, expected, atol=2e-3)
    assert publish(["pathmnist"], real, target, REAL) == []


def test_other_arrays_and_damaged_predictions_are_refused(target: Path, real: Path) -> None:
    before, folder = contents(target), real / "pathmnist" / "evidence"
    predictions = folder / "predictions_clai-m.parquet"
    whole = predictions.read_bytes()
    predictions.write_bytes(whole[:-40])
    with pytest.raises(InputError, match=r"predictions_clai-m\.parquet"):
        publish(["pathmnist"], real, target, REAL)
    predictions.write_bytes(whole)
    description = folder / "dataset.json"
    description.write_text(json.dumps(json.loads(description.read_text()) | {"arrays": {"x_test": {"sha256": "ab"}}}))
    with pytest.raises(InputError, match="found other arrays"):
        publish(["pathmnist"], real, target, REAL)
    assert contents(target) == before


@pytest.mark.parametrize("replace", [[], ["pathmnist"]])
def test_a_run_whose_results_were_not_gathered_is_refused(target: Path, real: Path, replace: list[str]) -> None:
    before, file = contents(target), real / "pathmnist" / "evidence" / "metrics.csv"
    frame = pd.read_csv(file)
    frame[(frame["cell"] != "clai-m") | (frame["seed"] < 2)].to_csv(file, index=False)
    with pytest.raises(InputError, match=r"metrics\.csv: found no row of pathmnist/clai-m/seed2, which has a record"):
        publish(["pathmnist"], real, target, REAL, replace=replace)
    assert contents(target) == before


def test_what_is_published_is_replaced_whole_on_demand_alone(source: Path, tmp_path: Path) -> None:
    target, file = tmp_path / "published", source / "theory" / "evidence" / "theory.csv"
    assert "theory/evidence/theory.csv" in publish(["theory"], source, target, REAL)
    file.write_text(file.read_text() + "one,more,row,1\n")
    assert publish(["theory"], source, target, REAL) == []
    assert publish([], source, target, REAL, replace=["theory"]) == ["theory/evidence/theory.csv"]
    (target / "theory" / "evidence" / "old.csv").touch()
    assert publish([], source, target, REAL, replace=["theory"]) == ["theory/evidence/old.csv"]
    assert publish([], source, target, REAL, replace=["theory"]) == []


def test_a_dataset_is_published_whole_or_not_at_all(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"challenge2019/evidence/\S+: found no file, .* Compute it: snakemake"):
        publish(["challenge2019"], source, tmp_path / "published", REAL)
    with pytest.raises(InputError, match="found no dataset and no study cifar11"):
        publish(["cifar11"], source, tmp_path / "published", REAL)
    assert not (tmp_path / "published").exists()


def finish(real: Path, run: RunId) -> None:
    """Leave the files of a run of a study."""
    place = real / str(run)
    place.mkdir(parents=True)
    (place / "metrics.csv").write_text("rule,metric,value\nprinted,accuracy,0.75\n")
    (place / "history.csv").write_text("epoch,seconds\n1,2.0\n2,5.0\n")
    (place / "run.json").write_text(json.dumps(record(run)))


def test_a_study_is_published_run_by_run(tmp_path: Path) -> None:
    real, target, name = tmp_path / "real", tmp_path / "published", "wide"
    first, second, *_ = runs_of_study(REAL, name)
    prepared = real / "cifar10" / "prepared" / "dataset.json"
    prepared.parent.mkdir(parents=True)
    prepared.write_text('{"title": "CIFAR-10", "licence": "CC-BY-4.0", "kind": "images"}')
    with pytest.raises(InputError, match="found no finished run"):
        publish([name], real, target, REAL)
    finish(real, first)
    publish([name], real, target, REAL)
    folder = target / name / "evidence"
    before = {file: (folder / file).read_text() for file in ("metrics.csv", "history.csv")}
    finish(real, second)
    publish([name], real, target, REAL)
    for file, text in before.items():
        assert (folder / file).read_text().startswith(text)
    history = pd.read_csv(folder / "history.csv")
    expected = [[run.seed, seconds] for run in (first, second) for seconds in (2.0, 5.0)]
    assert history[["seed", "seconds"]].to_numpy().tolist() == expected
    assert [entry["run"] for entry in records_of(folder)] == sorted(map(str, (first, second)))
    (real / name / "evidence").mkdir()
    write_records(real / name / "evidence" / RUNS, [record(first)])  # gathered when there was one
    with pytest.raises(InputError, match=f"found no finished run {second}, which is published"):
        publish([], real, target, REAL, replace=[name])


@pytest.mark.parametrize("kept", ["published", "compared"])
def test_cells_of_a_study_with_predictions_are_compared_as_they_come(tmp_path: Path, kept: str) -> None:
    """Without published predictions an addition needs those of all runs, and replaces what is there."""
    real, target, name = tmp_path / "real", tmp_path / "published", "votes-cifar10"
    settings = {**REAL, "studies": {**REAL["studies"], name: {**REAL["studies"][name], "predictions": kept}}}
    samples = multiclass()[0]
    with writing(real / "cifar10" / "prepared", {"title": "CIFAR-10", "licence": "CC-BY-4.0"}) as writer:
        writer.array("y_test", samples.y)
        info = {"kind": "images", "classes": list("abcd"), "arrays": writer.written, **writer.origin}
        (writer.folder / "dataset.json").write_text(json.dumps(info))

    def publish_cell(cell: str) -> pd.DataFrame:
        for run, predictions in multiclass(cell, seeds=3)[1].items():
            own = RunId(name, cell, run.seed)
            finish(real, own)
            save_predictions(real / str(own) / "predictions.parquet", {own: predictions})
        if kept == "compared" and cell == "full":
            with pytest.raises(InputError, match=f"needs predictions of all runs. Replace all: --replace {name}"):
                publish([name], real, target, settings)
            publish([], real, target, settings, replace=[name])
        else:
            publish([name], real, target, settings)
        assert (target / name / "evidence" / "samples.parquet").exists() == (kept == "published")
        return pd.read_csv(target / name / "evidence" / "comparisons.csv")

    publish_cell("cross-entropy")
    compared = publish_cell("full")
    both = compared[compared["other"].notna()].set_index("metric")
    assert {*both["cell"], *both["other"]} == {"full", "cross-entropy"}
    assert both.loc["log_loss", ["samples", "seeds"]].tolist() == [len(samples.y), 3]
    accuracy = {
        cell: np.mean([(one.score.argmax(1) == samples.y).mean() for one in multiclass(cell, 3)[1].values()])
        for cell in ("full", "cross-entropy")
    }
    cell, other, value = both.loc["accuracy", ["cell", "other", "value"]]
    assert value == pytest.approx(accuracy[cell] - accuracy[other], abs=1e-6)
