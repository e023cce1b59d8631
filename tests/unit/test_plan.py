"""The time of runs that are left, as published records tell it."""

from pathlib import Path

from replication.report.plan import plan_text
from replication.runs.record import write_records
from replication.runs.settings import load_settings, runs_of_study
from support.repository import REPOSITORY

OWN = {"run": ["cifar10"], "run_studies": ["product-cifar10"], "run_benchmark": False}


def test_finished_runs_take_no_time_and_runs_without_a_record_make_the_sum_a_lower_bound(tmp_path: Path) -> None:
    settings = load_settings(REPOSITORY, OWN)
    first, second, *others = runs_of_study(settings, "product-cifar10")
    evidence = tmp_path / "results/published/product-cifar10/evidence"
    evidence.mkdir(parents=True)
    shared = {"settings": {}, "threads": 1}
    write_records(evidence, [{"run": str(run), "cpu_seconds": 7200.0, **shared} for run in (first, second)])
    for run in (first, *others):
        place = tmp_path / "results/real" / str(run)
        place.mkdir(parents=True)
        (place / "metrics.csv").touch()
    text = plan_text(tmp_path, settings)
    row = next(line for line in text.splitlines() if line.startswith("product-cifar10"))
    assert row.split() == ["product-cifar10", "1", "2.0", "0"]
    assert "at least 2.0 core-hours" in text
