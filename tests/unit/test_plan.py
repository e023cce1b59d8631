"""The time of runs that are left, as published records tell it."""

import re
from pathlib import Path

import pytest

from clai.errors import InputError
from replication.report.plan import Work, core_seconds, plan_text, planned, time_left, work
from replication.runs.identity import RunId
from replication.runs.record import write_records
from replication.runs.settings import load_settings
from support.copies import REPOSITORY


def record(run: str, seconds: float) -> dict[str, object]:
    return {"run": run, "settings": {}, "cpu_seconds": seconds, "wall_seconds": 1.0, "threads": 1}


def test_processor_time_of_a_run_counts_its_evaluation() -> None:
    assert (
        core_seconds(
            {"cpu_seconds": 60.0, "wall_seconds": 40.0, "evaluation": {"cpu_seconds": 6.0, "wall_seconds": 5.0}}
        )
        == 66
    )


def test_without_processor_time_all_threads_count_as_busy() -> None:
    assert core_seconds({"wall_seconds": 40.0, "threads": 2}) == 80


def test_runs_that_are_done_or_unknown_take_no_time(tmp_path: Path) -> None:
    evidence = tmp_path / "results/published/some/evidence"
    evidence.mkdir(parents=True)
    write_records(evidence, [record("some/clai-m/seed0", 60.0), record("some/clai-m/seed1", 180.0)])
    done = tmp_path / "results/real/some/clai-m/seed0/metrics.csv"
    done.parent.mkdir(parents=True)
    done.touch()
    runs = [RunId("some", "clai-m", seed) for seed in range(3)] + [RunId("some", "clai-c", 0)]
    assert work("some", runs, tmp_path) == Work("some", runs=4, done=1, core_minutes=4.0, unknown=1)


def test_a_study_is_planned_where_its_dataset_runs() -> None:
    found = planned(load_settings(REPOSITORY, {"run": ["sleepedf-bands"], "run_studies": ["product-bands", "wide"]}))
    assert list(found) == ["sleepedf-bands", "product-bands"]
    assert len([run for run in found["sleepedf-bands"] if run.model == "clai-m"]) == 5


@pytest.mark.parametrize(
    ("unknown", "text"),
    [(0, "4.0"), (1, "at least 4.0"), (3, "unknown")],
    ids=["all known", "some known", "none known"],
)
def test_time_of_runs_without_a_record_is_not_zero(unknown: int, text: str) -> None:
    assert time_left(Work("some", runs=4, done=1, core_minutes=4.0, unknown=unknown)) == text


def test_a_total_that_leaves_runs_out_is_called_a_lower_bound(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("run: [mimic-iv, mimic-iv-demo]\nrun_studies: []\n")
    text = plan_text(REPOSITORY, [own], 2)
    assert "unknown" in next(line for line in text.splitlines() if line.split()[0] == "mimic-iv")
    assert "At least" in text
    assert re.search(r"lower bound: \d+ runs have no published record", text)
    own.write_text("run: [mimic-iv-demo]\nrun_studies: []\n")
    assert "lower bound" not in plan_text(REPOSITORY, [own], 2)


def test_the_text_sums_up(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("run: [sleepedf-bands]\nrun_studies: [product-bands]\n")
    assert "core-hours" in plan_text(REPOSITORY, [own], 2)
    with pytest.raises(InputError, match="--cores: found 0"):
        plan_text(REPOSITORY, [own], 0)


def test_nothing_planned_takes_no_time(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("run: []\nrun_studies: []\n")
    assert "0.0 core-hours: 0.0 hours on 2 cores" in plan_text(REPOSITORY, [own], 2)
