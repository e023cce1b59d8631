"""The comparison of this machine's verdicts with the published ones, and the settings and seeds of the afternoon."""

import copy
import time

import pytest

from replication.report.afternoon import DIFFERS, SAME, UNTESTED, WIDER, agreement, compared_verdicts, page
from replication.report.plan import COSTS, plan_text, tell_hourly
from replication.runs.registry import CLAIM_TEXTS
from replication.runs.settings import load_settings, runs_of_model, runs_of_study
from support.published import VERDICTS
from support.repository import REAL, REPOSITORY


@pytest.mark.parametrize(
    ("outcome", "low", "high", "expected"),
    [
        ("inconclusive", -1e3, 1e3, WIDER),
        ("inconclusive", 1e3, 2e3, DIFFERS),
        ("not reproduced", -1e3, 1e3, DIFFERS),
        ("not testable here", -1e3, 1e3, UNTESTED),
    ],
)
def test_a_verdict_left_open_is_the_same_where_intervals_cover_the_published_mean(outcome, low, high, expected):
    claim = next(claim for claim in VERDICTS if claim["outcome"] == "reproduced")
    assert agreement(claim, claim) == SAME
    judged = next(estimate for estimate in claim["estimates"] if estimate["role"] == "test" and estimate["outcome"])
    left_open = judged | {"outcome": "inconclusive", "low": low, "mean": 0.0, "high": high}
    assert agreement(claim | {"outcome": outcome, "estimates": [left_open]}, claim) == expected


def test_a_verdict_of_parts_or_readings_is_the_same_if_theirs_are():
    for number, kind in (("2", "readings"), ("12", "parts")):
        claim = next(claim for claim in VERDICTS if claim["id"] == number)
        own = copy.deepcopy(claim)
        assert agreement(own, claim) == SAME
        first, *_, last = own[kind]
        own[kind] |= {first: own[kind][last], last: own[kind][first]}
        assert agreement(own, claim) == DIFFERS


def test_what_did_not_learn_makes_a_difference_and_missing_data_do_not():
    claim = next(claim for claim in VERDICTS if claim["outcome"] == "reproduced")
    own = copy.deepcopy(claim) | {"outcome": "not testable here"}
    assert agreement(own | {"estimates": []}, claim) == UNTESTED
    next(one for one in own["estimates"] if one["role"] == "test")["outcome"] = "not testable under this reading"
    assert agreement(own, claim) == DIFFERS


def test_a_number_that_is_decided_otherwise_makes_a_difference():
    claim = next(claim for claim in VERDICTS if claim["id"] == "3a")
    own = copy.deepcopy(claim) | {"outcome": "inconclusive"}
    first, second, *_ = [estimate for estimate in own["estimates"] if estimate["role"] == "test"]
    first |= {"outcome": "inconclusive", "low": -1e3, "high": 1e3}
    assert agreement(own, claim) == WIDER
    second["outcome"] = "not reproduced"
    assert agreement(own, claim) == DIFFERS


def test_the_page_has_a_row_a_verdict_and_counts_them():
    verdicts = compared_verdicts(VERDICTS, VERDICTS)
    assert list(verdicts["claim"]) == [number for number, claim in CLAIM_TEXTS["claims"].items() if "states" in claim]
    run = {"run": "cifar10/clai-m/seed0", "seed": 0, "hardware": "a machine", "commit": "0" * 40, "cpu_seconds": 7200}
    text = page(verdicts, [run], synthetic=False)
    assert f"Of {len(verdicts)} verdicts: {len(verdicts)} *{SAME}*.\n" in text
    assert "1 runs, 2.0 core-hours. Seeds: 0. Hardware: a machine." in text


def test_the_afternoon_only_makes_things_smaller():
    assert load_settings(REPOSITORY, {"run": ["cifar10", "mimic-iv"]}, "afternoon")["run"] == ["cifar10"]
    afternoon = load_settings(REPOSITORY, use="afternoon")
    for name in afternoon["run"]:
        models = afternoon["datasets"][name]["models"]
        assert set(models) <= set(REAL["datasets"][name]["models"])
        for model in models:
            assert set(runs_of_model(afternoon, name, model)) <= set(runs_of_model(REAL, name, model)), name
    for name in {*afternoon["run_studies"]} - {"benchmark"}:
        assert set(runs_of_study(afternoon, name)) <= set(runs_of_study(REAL, name)), name


def test_a_base_moves_the_seeds_of_datasets_and_studies_and_no_trials():
    moved = load_settings(REPOSITORY, {"seed_base": 100})
    assert {run.seed for run in runs_of_model(moved, "cifar10", "clai-m")} == {100, 101, 102, 103, 104}
    assert {run.seed for run in runs_of_study(moved, "turns-images")} == {*range(100, 105)}
    assert moved["tuning"] == REAL["tuning"]


def test_hours_that_are_left_are_those_of_this_machine(tmp_path, capsys):
    """The tracked runs took an hour each; here the one that is finished took half of one, with its evaluation."""
    own = {"run": ["cifar10"], "run_studies": []}
    settings = load_settings(REPOSITORY, {"run": [], "run_studies": []}, "afternoon") | own
    for folder in ("paper_figures", "results/afternoon/cifar10/clai-m/seed0"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / COSTS).write_text("name,cell,runs,hours\ncifar10,clai-m,3,1.0\ncifar10,clai-c,3,1.0\n")
    text = plan_text(tmp_path, settings)
    assert "6 runs are left: 6.0 core-hours on machines like those of the tracked runs." in text
    run = tmp_path / "results/afternoon/cifar10/clai-m/seed0"
    record = '{"cpu_seconds": 1200, "device": "%s"}'
    (run / "run.json").write_text(record % "cuda")
    (run / "evaluation.json").write_text('{"cpu_seconds": 600}')
    (run / "metrics.csv").write_text("rule\n")
    text = plan_text(tmp_path, settings)
    assert "5 runs are left: 5.0 core-hours on machines like those" in text, "a GPU's hours say nothing"
    (run / "run.json").write_text(record % "cpu")
    assert "5 runs are left: 2.5 core-hours on this machine." in plan_text(tmp_path, settings)
    end = tell_hourly(tmp_path, settings, seconds=0.01)
    said, until = "", time.monotonic() + 60
    while "5 runs are left: 2.5 core-hours on this machine.\n" not in said:
        assert time.monotonic() < until
        time.sleep(0.05)
        said += capsys.readouterr().err
    end.set()
