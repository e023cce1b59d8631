"""Settings are merged in a fixed order, bad ones are refused with what was expected, and a run reads only its own."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from clailearn.errors import InputError
from replication.__main__ import main
from replication.models.row_classifiers import GradientBoosting
from replication.runs.registry import MODELS, check_place, read_yaml
from replication.runs.settings import (
    Settings,
    effective_settings,
    load_settings,
    pass_on,
    runs_of_model,
    runs_of_study,
    select,
)
from support.repository import MINI, REAL, REPOSITORY


def test_own_settings_win_on_real_data_and_the_miniature_over_them() -> None:
    breast = {"source": "medmnist", "medmnist_flag": "breastmnist", "path": "mine"}
    datasets = {"mimic-iv": {"path": "mine", "folds": 9, "variables": {"Pulse": [0, 9]}}, "breastmnist": breast}
    own = {"seeds": [7], "inference": {"mirror": True}, "training": {"epochs": 99}, "datasets": datasets}
    real, mini = load_settings(REPOSITORY, own), load_settings(REPOSITORY, own, "mini")
    assert (real["seeds"], real["inference"]["mirror"], real["datasets"]["mimic-iv"]["path"]) == ([7], True, "mine")
    assert (mini["seeds"], mini["inference"]["mirror"]) == ([0], True)
    assert mini["datasets"]["mimic-iv"] == MINI["datasets"]["mimic-iv"]
    assert (real["miniature"], mini["miniature"]) == (False, True)
    assert (real["datasets"]["breastmnist"]["path"], mini["datasets"]["breastmnist"]["path"]) == ("mine", None)
    assert effective_settings(mini, "breastmnist", "clai-m")["training"]["epochs"] == 10


def test_a_variant_of_a_study_may_have_seeds_of_its_own() -> None:
    own = {"seed_base": 100, "studies": {"ablation": {"seeds": [0], "variant_seeds": {"identity": [0, 5]}}}}
    runs = runs_of_study(load_settings(REPOSITORY, own), "ablation")
    seeds = {cell: [run.seed for run in runs if run.cell == cell] for cell in ("identity_zero", "full_zero")}
    assert seeds == {"identity_zero": [100, 105], "full_zero": [100]}


OWN = {"title": "Pets", "path": "pets", "needs": "pets", "models": ["clai-m"], "overrides": {}}
SPACE = {"baselines.gp.epochs": {"choice": [1, 2]}}
RATE, EPOCHS = {"training.rate": {"choice": [1, 2]}}, {"training.epochs": {"choice": ["many", "few"]}}
SIZE = {"embedding_size": {"choice": list(range(2, 10))}}
REVERSED = {"training.learning_rate": {"loguniform": [0.1, 0.01]}}
STUDY = {"dataset": "cifar10", "scored_on": "test", "seeds": [0], "combine": [{"kernel": ["full"]}]}
TUNING = {"trials": 2, "seeds": [0], "scored_on": "validation", "overrides": {}, "spaces": {"clai-m": SIZE}}
LEAVES = {"baselines.gradient_boosting.max_leaf_nodes": {"choice": [2, 4]}}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"training": {"epoch": 3}}, "training: Additional properties are not allowed .'epoch' was unexpected"),
        ({"tuning": {"cifar10": {"spaces": {"gp": SPACE}}}}, "tuning.cifar10.spaces: found gp, which need rec"),
        ({"tuning": {"cifar10": {"spaces": {"clai-m": RATE}}}}, "tuning.cifar10.spaces.clai-m.training: .* .'rate' was unexp"),
        ({"tuning": {"cifar10": {"spaces": {"cross-entropy": SIZE}}}}, "found 'embedding_size', expected a setting that cross"),
        ({"tuning": {"cifar10": {"trials": 2, "spaces": {"clai-m": EPOCHS}}}}, "training.epochs: 'many' is not of type"),
        ({"tuning": {"mine": TUNING}}, "tuning.mine: found no dataset of this name, .* set `dataset`"),
        ({"tuning": {"cifar10": {"spaces": {"clai-m": REVERSED}}}}, r"learning_rate: found \[0.1, 0.01\], expected the lower"),
        ({"tuning": {"cifar10": {"spaces": {"clai-m": {1: SPACE}}}}}, "spaces.clai-m: 1 is not of type 'string'"),
        ({"tuning": {"cifar10": {"trials": 4, "spaces": {"gradient-boosting": LEAVES}}}}, "found 2 combinations, too few"),
        ({"studies": {"wide": {"combine": [{"kernel": ["rbf"]}]}}}, "studies.wide.combine.0.kernel.0: 'rbf' is not one of"),
        ({"datasets": {"cifar10": {"models": ["clai-m", "gp"]}}}, "datasets.cifar10.models: found gp, which need recordings"),
        ({"datasets": {"challenge2019-septic": {"path": "p"}}}, "challenge2019-septic.path: .* Set datasets.challenge2019.path"),
        ({"datasets": {"mimic-iv": {"minimum_onset_hours": 4}}}, "minimum_onset_hours: 4 is less than the minimum of 6"),
        ({"datasets": {"challenge2019": {"minimum_onset_hours": 7}}}, "minimum_onset_hours: found it for challenge2019"),
        ({"datasets": {"pets": OWN | {"source": "image_folder", "folds": 5}}}, "pets.folds: found it for image_folder, which"),
        ({"datasets": {"pets": OWN | {"source": "image_folder", "classes": ["b", "a"]}}}, "pets.classes: found it for image_f"),
        ({"datasets": {"pets": OWN | {"source": "arrays", "group_column": "patient"}}}, "pets.group_column: found it for arr"),
        ({"datasets": {"pets": OWN | {"source": "image_folder", "raw_of": "challenge2019", "path": None}}}, "pets.raw_of: exp"),
        ({"datasets": {"challenge2019-septic": {"development_share": None}}}, "scored_on: challenge2019-septic has no dev"),
        ({"studies": {"votes-challenge2019": {"predictions": "compared"}}}, "predictions: found it for recordings"),
        ({"studies": {"wide-cpu": {"predictions": "compared", "scored_on": "validation"}}}, "found it for samples of validation"),
        ({"studies": {"ablation": {"combine": [{"method": ["gp"]}]}}}, "ablation.combine: found gp, which need recordings"),
        ({"datasets": {"pets": OWN | {"source": "sleep_edf"}}}, r"pets: 'channels' is .*\n.*pets: 'sampling_rate' is"),
        ({"datasets": {"pets": OWN | {"source": "medmnist", "x": 1}}}, r"pets: 'medmnist_flag' (.*\n)*.*pets: Additional .*'x'"),
        ({"datasets": {"wide": REAL["datasets"]["cifar10"]}}, "datasets.wide: a study or control has this name"),
        ({"studies": {"theory": STUDY}}, "studies.theory: a study or control has this name"),
        ({"studies": {"tuning-cifar10": STUDY}}, "studies.tuning-cifar10: a study or control has this name"),
        ({"datasets": {"sleepedf-bands": {"classes": [False, True]}}}, "classes.0: False is not of .* put a name in quotes"),
        ({"datasets": {"sleepedf-bands": {"classes": [1, "1 "]}}}, "classes: found a class twice among 1, 1, expected each"),
        ({"datasets": {"sleepedf-bands": {"feature_columns": [1]}}}, "1 is not of type 'string', or 'all others' was expected"),
        ({"datasets": {"pets": OWN | {"source": "files"}}}, "datasets.pets.source: 'files' is not one of .'arrays', 'chall"),
        ({"datasets": {"pets": {"title": "Pets"}}}, r"datasets\.pets: 'source' is a required property;[^\n]*\Z"),
        ({"datasets": None}, r"datasets: None is not of type 'object';[^\n]*\Z"),
        ({"datasets": {2024: OWN}}, "datasets: 2024 is not of type 'string'"),
        ({"training": {"learning_rate": math.nan}}, "learning_rate: nan is not of type 'number'"),
        ({"training": {"epochs": 16.5}}, "training.epochs: 16.5 is not of type 'integer'"),
        ({"run": ["cifar100"], "seeds": "many"}, r"run\.0: 'cifar100' is not one of .*\nconfig key seeds: 'many' is not of"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_all_at_once_with_their_keys(own: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"config key .*{message}"):
        load_settings(REPOSITORY, own)


def test_an_own_entry_of_one_line_is_completed_and_what_is_said_wins() -> None:
    own = {"training": {"epochs": 5}, "datasets": {"my-pets": {"source": "image_folder", "path": "pets"}}}
    real = load_settings(REPOSITORY, own)
    entry = real["datasets"]["my-pets"]
    assert (entry["title"], entry["needs"]) == ("My pets", "My pets (set datasets.my-pets.path)")
    training = effective_settings(real, "my-pets", "clai-m")["training"]
    assert (training["epochs"], training["batch_size"], training["learning_rate"]) == (5, "auto", 0.002)
    own["datasets"]["my-pets"] |= {"title": "Dogs", "overrides": {"training": {"epochs": 7}}}
    own["datasets"]["seeds"] = {
        "source": "feature_table",
        "label_column": "variety",
        "group_column": "plant",
        "classes": [1, 2],
    }
    real = load_settings(REPOSITORY, own | {"seed_base": 100})
    assert (real["datasets"]["seeds"]["classes"], real["seeds"]) == ([1, 2], [100, 101, 102])
    assert real["datasets"]["my-pets"]["title"] == "Dogs"
    assert effective_settings(real, "my-pets", "clai-m")["training"]["epochs"] == 7
    assert load_settings(REPOSITORY)["datasets"] == REAL["datasets"]


def test_gradient_boosting_learns_from_a_small_table_of_ones_own() -> None:
    entry = {"source": "arrays", "path": "pets.npz", "models": ["gradient-boosting"]}
    own = load_settings(REPOSITORY, {"datasets": {"pets": entry}})
    chosen = effective_settings(own, "pets", "gradient-boosting")["baselines"]["gradient_boosting"]
    y = np.arange(120) % 3
    x = np.random.default_rng(0).normal(size=(120, 2)) + 3 * y[:, None]
    model = GradientBoosting().fit_rows(x, y, x, y, seed=0, **chosen)
    assert (model.score_rows(x).argmax(axis=1) == y).mean() > 0.9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "expected settings as YAML in UTF-8"),
        ("- a", "found list, expected a mapping"),
        ("a: 1\nb: {c: 1, c: 2}", "the key 'c' stands twice"),
        ("a: &x {c: 1}\nb: {<<: *x, c: 2, c: 3}", "the key 'c' stands twice"),
        ("a: [007, 010]", "YAML reads 007 as 7: put a name in quotes"),
        ("a: {b: 1:30}", "YAML reads 1:30 as 90"),
        ("a: &a {b: *a}", "more than 50 deep"),
        (f"a: {'[' * 3000}{']' * 3000}", "recursion|more than 50 deep"),
        ("\n".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9 if n else 1}]" for n in range(9)), "more than 100,000 entries"),
    ],
)
def test_file_of_settings_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match="expected settings as YAML"):
        read_yaml(tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_yaml(tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text("a: &x {c: 1, d: 0x10}\nb: {<<: *x, c: 2}")
    assert read_yaml(tmp_path / "own.yaml")["b"] == {"c": 2, "d": 16}


@pytest.mark.parametrize(
    "python", ["/home/a b/bin/python", "/home/{y}/bin/python", "/home/a'b/bin/python", "/a&b/python"]
)
def test_a_path_that_a_shell_would_take_apart_is_refused(monkeypatch: pytest.MonkeyPatch, python: str) -> None:
    monkeypatch.chdir(REPOSITORY)
    check_place(str(REPOSITORY))
    monkeypatch.setattr("sys.executable", python)
    with pytest.raises(InputError, match=rf"in the path {re.escape(python)}, expected none"):
        check_place(str(REPOSITORY))


def test_run_reads_its_own_settings_and_no_others() -> None:
    assert select(REAL, ["threads", "baselines.gp.epochs"]) == {"threads": 1, "baselines": {"gp": {"epochs": 10}}}
    with pytest.raises(InputError, match=r"setting baselines\.svm: found none in the configuration"):
        select(REAL, ["baselines.svm"])
    assert pass_on(REAL, "cross-entropy", ["threads"]) == {
        "model": "cross-entropy", "threads": 1, **select(REAL, MODELS["cross-entropy"].reads),
        "registry": [MODELS["cross-entropy"].fit, None],
    }  # fmt: skip


def test_a_setting_that_is_read_and_not_passed_on_is_an_error_with_its_key_and_rule() -> None:
    passed_on = Settings(pass_on(REAL, "cross-entropy", ["training.epochs"]), "train_model")
    assert passed_on["training"]["epochs"] == REAL["training"]["epochs"]
    with pytest.raises(InputError, match="setting encoder: the rule train_model does not pass it on"):
        passed_on["encoder"]
    with pytest.raises(InputError, match=r"setting training\.warmup: the rule train_model does not pass it on"):
        passed_on["training"]["warmup"]


def test_command_prints_what_decides_a_run_and_which_names_there_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(REPOSITORY)
    (tmp_path / "own.yaml").write_text("datasets: {cifar10: {overrides: {training: {epochs: 3}}}}\n")
    assert main(["settings", "cifar10", "clai-m", "--configfile", str(tmp_path / "own.yaml")]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["runs"] == [f"cifar10/clai-m/seed{seed}" for seed in range(5)]
    assert (shown["training"]["epochs"], shown["dataset"]["image_size"]) == (3, 32)
    assert shown["encoder"] == REAL["encoder"] | {"pool": False}
    with pytest.raises(InputError, match=r"found 'svm', expected one of .*clai-m"):
        effective_settings(REAL, "cifar10", "svm")


def test_own_overrides_win_over_what_trials_chose() -> None:
    dataset = "challenge2019"
    own = {"datasets": {dataset: {"overrides": {"training": {"batch_size": "4"}}}}}  # as --config brings it
    settings, chosen = load_settings(REPOSITORY, own), REAL["tuned"]["challenge2019"]["clai-m"]["training"]
    found = effective_settings(settings, dataset, "clai-m")["training"]
    assert (found["batch_size"], found["learning_rate"]) == (4, chosen["learning_rate"])
    own, real = (effective_settings(given, "challenge2019-septic", "clai-m") for given in (settings, REAL))
    assert own == real
    assert effective_settings(REAL, dataset, "clai-m")["training"]["batch_size"] == chosen["batch_size"] != 4


def test_text_of_the_command_line_becomes_what_it_stands_for() -> None:
    training = {"samples": "null", "learning_rate": "1e-3", "epochs": "1e2", "batch_size": 16.0}
    own = {"seeds": ["0", "5"], "datasets": {"mimic-iv": {"path": "null"}}, "training": training}
    settings = load_settings(REPOSITORY, own)
    assert (settings["seeds"], settings["datasets"]["mimic-iv"]["path"]) == ([0, 5], None)
    assert (settings["training"]["samples"], settings["training"]["learning_rate"]) == (None, 0.001)
    assert [str(settings["training"][key]) for key in ("epochs", "batch_size")] == ["100", "16"]


def test_seeds_of_a_model_on_a_dataset_win_over_those_of_all_datasets() -> None:
    seeds = {"model_seeds": {"clai-m": [3]}}
    own = {"model_seeds": {"clai-m": [0, 1]}, "datasets": {"cifar10": {"overrides": seeds}}}
    assert [run.seed for run in runs_of_model(load_settings(REPOSITORY, own), "cifar10", "clai-m")] == [3]
