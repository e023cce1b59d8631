"""Only what may be passed on becomes tracked: no single patient of a credentialed source, no run of unknown code."""

import errno
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.datasets.sources import read_sources
from replication.report.evidence import Evidence
from replication.report.figures.render import render
from replication.report.publication import LARGEST_FILE, LARGEST_PREDICTIONS, OPEN_LICENCES, publish, shows_patients
from replication.runs.record import read_records, write_records
from support.disks import fail_to_replace
from support.evidence_fixture import EXPECTED, write_evidence

TABLE = Path(__file__).parents[2] / "workflow" / "config" / "data_sources.csv"
SEPSIS = ["mimic-iv", "challenge2019"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Evidence of a full run on both sepsis datasets, with the licences that the table of sources states."""
    root = tmp_path / "results" / "real"
    write_evidence(root, SEPSIS)
    for dataset in SEPSIS:
        path = root / dataset / "evidence" / "dataset.json"
        licence = read_sources(TABLE, dataset)[0].licence
        path.write_text(json.dumps(json.loads(path.read_text()) | {"licence": licence}))
    return root


def published(source: Path, target: Path) -> set[str]:
    return set(publish(sorted(source.glob("*/evidence/*")), source, target))


def test_rows_of_single_patients_are_published_only_where_the_licence_allows_it(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "published"
    copied = published(source, target)
    assert "challenge2019/evidence/signals.csv" in copied
    assert "mimic-iv/evidence/signals.csv" not in copied
    assert not (target / "mimic-iv" / "evidence" / "signals.csv").exists()
    assert {"metrics.csv", "latent.csv", "dataset.json"} <= {
        p.name for p in (target / "mimic-iv" / "evidence").iterdir()
    }


def test_predictions_of_patients_are_withheld_like_their_rows_and_those_of_images_are_not(tmp_path: Path) -> None:
    closed = {"title": "a", "licence": "not stated"}
    for file in ("samples.npz", "predictions_gp.npz"):
        assert shows_patients(file, closed | {"kind": "recordings"})
        assert shows_patients(file, closed | {"kind": "features"})
        assert not shows_patients(file, closed | {"kind": "images"})
        assert not shows_patients(file, {"title": "a", "licence": "CC-BY-4.0", "kind": "recordings"})
    assert shows_patients("signals.csv", closed | {"kind": "images"})


def test_a_model_of_a_million_hours_fits_and_other_files_have_their_own_limit(source: Path, tmp_path: Path) -> None:
    folder = source / "challenge2019" / "evidence"
    (folder / "predictions_gp.npz").write_bytes(bytes(LARGEST_PREDICTIONS))
    assert "challenge2019/evidence/predictions_gp.npz" in published(source, tmp_path / "published")
    (folder / "predictions_gp.npz").write_bytes(bytes(LARGEST_PREDICTIONS + 1))
    with pytest.raises(InputError, match=r"predictions_gp\.npz has"):
        published(source, tmp_path / "published")


def test_a_stay_published_before_its_licence_was_looked_at_is_removed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "published"
    stale = target / "mimic-iv" / "evidence" / "signals.csv"
    stale.parent.mkdir(parents=True)
    stale.write_text("a patient")
    published(source, target)
    assert not stale.exists()


def test_a_full_disk_leaves_what_was_published(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "published"
    published(source, target)
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    copied: list[Path] = []

    def copy(file: Path, place: Path) -> None:
        if copied:
            raise OSError(errno.ENOSPC, "No space left on device", str(place))
        copied.append(place)
        place.write_bytes(b"new")

    monkeypatch.setattr(shutil, "copyfile", copy)
    with pytest.raises(OSError, match="No space left"):
        published(source, target)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("dataset", [*SEPSIS, "theory"])
def test_folders_that_cannot_be_replaced_stay_all(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    target = tmp_path / "published"
    published(source, target)
    for file in (target / "challenge2019" / "evidence").iterdir():
        file.write_text("before")
    shutil.rmtree(target / "mimic-iv")
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        fail_to_replace(patch, target / dataset / "evidence", at=1)
        with pytest.raises(OSError, match="No space left"):
            published(source, target)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert published(source, target)


def test_figures_drawn_from_a_full_run_show_no_such_patient_either(source: Path) -> None:
    """They are written to a tracked folder, whatever evidence they are drawn from."""
    evidence = Evidence.found(source, {key: EXPECTED[key] for key in SEPSIS})
    assert evidence.frame("mimic-iv", "signals.csv").empty
    frame = render("figure4", evidence, "Signals.", pd.DataFrame())[1]
    assert set(frame["dataset"]) == {"challenge2019"}


@pytest.mark.parametrize(
    "licence", ["", "not stated", "CC-BY-NC-4.0", "PhysioNet Credentialed Health Data License 1.5.0"]
)
def test_what_is_not_known_to_be_open_is_withheld(licence: str) -> None:
    assert shows_patients("signals.csv", {"licence": licence})
    assert not shows_patients("metrics.csv", {"licence": licence})


def test_the_open_sources_are_open_and_the_credentialed_one_is_not() -> None:
    licences = {dataset: read_sources(TABLE, dataset)[0].licence for dataset in ("sleepedf", *SEPSIS)}
    assert {key: licence in OPEN_LICENCES for key, licence in licences.items()} == {
        "sleepedf": True, "mimic-iv": False, "challenge2019": True
    }  # fmt: skip


def test_runs_of_uncommitted_code_and_large_files_are_refused_and_nothing_is_copied(
    source: Path, tmp_path: Path
) -> None:
    large = source / "mimic-iv" / "evidence" / "latent.csv"
    text = large.read_text()
    large.write_text("x" * (LARGEST_FILE + 1))
    with pytest.raises(InputError, match=r"latent\.csv has \d+ bytes"):
        published(source, tmp_path / "published")
    large.write_text(text)
    folder = source / "challenge2019" / "evidence"
    first, *others = read_records(folder)
    write_records(folder, [first | {"dirty": True}, *others])
    message = rf"runs\.jsonl: run {first['run']} was made with uncommitted changes .* compute the run again"
    with pytest.raises(InputError, match=message):
        published(source, tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_numerical_checks_of_uncommitted_code_are_refused(source: Path, tmp_path: Path) -> None:
    folder = source / "theory" / "evidence"
    assert {"theory/evidence/runs.jsonl", "theory/evidence/runs_shared.json"} <= published(
        source, tmp_path / "published"
    )
    write_records(folder, [record | {"dirty": True} for record in read_records(folder)])
    with pytest.raises(InputError, match="theory/checks/seed0 was made with uncommitted changes"):
        published(source, tmp_path / "published")


def test_the_prepared_forms_identify_nobody_in_what_is_published(source: Path, tmp_path: Path) -> None:
    """Every published table of a credentialed source is an aggregate: it has no column of a patient, a stay or an hour."""
    published(source, tmp_path / "published")
    for path in (tmp_path / "published" / "mimic-iv" / "evidence").glob("*.csv"):
        assert not {"subject_id", "stay_id", "hour", "recording", "patient"} & set(pd.read_csv(path).columns)
