"""Evidence folders filled with plausible random numbers, in the form in which evaluations leave them."""

import json
from collections.abc import Callable, Collection, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.metrics.passes import trunk_passes
from replication.report.claims.finding import Finding
from replication.report.claims.judge import find
from replication.report.claims.theory import TURNS
from replication.report.evidence import Evidence, _read_csv, _read_records
from replication.report.labels import RULES
from replication.runs.columns import COLUMNS, STUDY_HISTORY
from replication.runs.outputs import CLAIMS, descriptions, evidence_behind
from replication.runs.record import RUNS, write_records
from support.repository import PRINTED, REAL

DATASETS = ("pathmnist", "cifar10", "sleepedf", "sleepedf-bands", "mimic-iv", "challenge2019")
EXPECTED = descriptions(evidence_behind(CLAIMS, REAL), REAL)
"""All that claims may rest on."""
SEPSIS = ("mimic-iv", "challenge2019")
CLASSES = {
    key: ["no event", "event"] if key in SEPSIS else EXPECTED[key.removesuffix("-bands")]["class_labels"]
    for key in DATASETS
}
GROUPS = ((1, 9), (3, 4, 5, 7), (0, 2))


def finding_on(root: Path, number: str) -> Finding:
    """Return what a claim's judge finds in the evidence below `root`, which may have changed since it was last read."""
    _read_csv.cache_clear()
    _read_records.cache_clear()
    return find(number, Evidence.found(root, EXPECTED), PRINTED)


def change(root: Path, folder: str, file: str, edit: Callable[[pd.DataFrame], Any]) -> None:
    """Change an evidence file in place, as of runs whose predictions were not kept."""
    path = root / folder / "evidence" / file
    frame = pd.read_csv(path)
    changed = edit(frame)
    (frame if changed is None else changed).to_csv(path, index=False)
    (path.parent / "comparisons.csv").unlink(missing_ok=True)


def shift(model: str, metric: str, amounts: float | list[float], **where: str) -> Callable[[pd.DataFrame], None]:
    """Return an edit that adds amounts to a metric of a model, by seed or fold."""

    def edit(metrics: pd.DataFrame) -> None:
        rows = (metrics["model"] == model) & (metrics["metric"] == metric)
        for column, value in where.items():
            rows &= metrics[column] == value
        unit = "fold" if metrics["fold"].notna().any() else "seed"
        by_unit = dict(enumerate(np.broadcast_to(amounts, 5 if unit == "fold" else 3)))
        metrics.loc[rows, "value"] += metrics.loc[rows, unit].map(by_unit)

    return edit


def write_evidence(
    root: Path,
    datasets: Sequence[str],
    *,
    seeds: int = 3,
    gain: float = 0.02,
    theory: bool = True,
) -> None:
    """Write `root`/<dataset>/evidence/ for each of `datasets`.

    gain: by how much CLaI-M is better than CLaI-C in every metric, epochs included.
    """
    for number, dataset in enumerate(datasets):
        rng = np.random.default_rng([7, number])
        folder = root / dataset / "evidence"
        folder.mkdir(parents=True, exist_ok=True)
        binary = dataset in SEPSIS
        models = {"clai-m": gain, "clai-c": 0.0, "cross-entropy": 0.03}
        if binary:
            models = {"clai-m": gain, "clai-c": 0.0, "student-t-mixture": -0.05, "gp": -0.03}
        units: list[tuple[int, int | None]] = [(0, f) for f in range(5)] if binary else [
            (s, None) for s in range(seeds)
        ]  # fmt: skip
        _description(folder, dataset)
        _metrics(folder, dataset, models, units, rng)
        _history(folder, dataset, models, units, rng)
        if binary:
            _sepsis(folder, units, rng)
        else:
            _multiclass(folder, dataset, units, rng)
        _runs(folder, dataset, models, units)
    if theory:
        folder = root / "theory" / "evidence"
        folder.mkdir(parents=True, exist_ok=True)
        write_theory(folder)


def without_models(root: Path, models: Collection[str]) -> None:
    """Take all rows and records of some models out of the evidence of datasets, as if they had never been trained."""
    for records in root.glob(f"*/evidence/{RUNS}"):
        for file in records.parent.glob("*.csv*"):
            frame = pd.read_csv(file)
            if "model" in frame:
                frame[~frame["model"].isin(models)].to_csv(file, index=False)
            elif "clai-m" in models:  # what shows CLaI-M alone names no model
                file.unlink()
        lines = [
            line for line in records.read_text().splitlines() if json.loads(line)["run"].split("/")[1] not in models
        ]
        records.write_text("".join(f"{line}\n" for line in lines))


def write_theory(folder: Path, margin: float = 0.01) -> None:
    rows: list[tuple[str, str, str, float]] = []
    for share in (0.5, 0.1):
        for rule in ("printed", "centred", "balanced", "parzen", "derivation"):
            value = {"printed": 1.0 if share == 0.5 else 0.6, "parzen": 1.0}.get(rule, 0.95)
            rows.append(("parzen", f"share={share};bandwidth=0.5;rule={rule};seed=0", "agreement_kde", value))
    rows.append(("bound", "size=8;seed=0", "smallest_margin", margin))
    for kernel, floor in (("cosine", 0.1), ("gaussian", 0.01)):
        rows.append(("floor", f"kernel={kernel};size=32;share=0.1;seed=0", "floor", floor))
        rows.append(("floor", f"kernel={kernel};size=32;share=0.1;seed=0", "attained", floor * 1.01))
    _write(folder, "theory.csv", rows)
    write_records(folder, [_record("theory/checks/seed0")])


def _write(folder: Path, file: str, rows: list[tuple[Any, ...]]) -> None:
    """Write an evidence file; whole numbers stay whole beside empty cells."""
    pd.DataFrame(rows, columns=COLUMNS[file]).convert_dtypes().to_csv(folder / file, index=False)


def _record(run: str, **changes: Any) -> dict[str, Any]:
    """Return the record of a run of committed code."""
    whole = {
        "run": run, "commit": "0" * 40, "dirty": False, "settings": {}, "data": {}, "seed": 0, "fold": None, "threads": 1,
        "device": "cpu", "hardware": "test, 1 core", "versions": {"torch": "2"}, "wall_seconds": 12.0, "cpu_seconds": 11.0,
        "training_seconds": 10.0, "peak_memory_mb": 1500.0, "pairs": 10**9, "command": "snakemake x",
    }  # fmt: skip
    return whole | changes


def _description(folder: Path, dataset: str) -> None:
    classes = CLASSES[dataset]
    content: dict[str, Any] = {
        "dataset": dataset, "title": EXPECTED[dataset]["title"], "miniature": False,
        "kind": "recordings" if dataset in SEPSIS else "images", "classes": classes, "licence": "CC-BY-4.0",
        "splits": {"train": {"counts": [4500] * len(classes)}, "test": {"counts": [1000] * len(classes)}},
        "files": [], "arrays": {}, "source": dataset,
    }  # fmt: skip
    (folder / "dataset.json").write_text(json.dumps(content))


def _metrics(
    folder: Path, dataset: str, models: dict[str, float], units: Sequence[tuple[int, int | None]],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    good = ["accuracy", "precision", "recall", "f1", "macro_f1", "kappa", "roc_auc", "mean_confidence"]
    bad = ["ece", "ece_scaled"]
    if dataset in SEPSIS:
        good = ["auroc", "auprc", "f1", "f1_validation", "utility"]
        bad = [
            "ece",
            "ece_calibrated",
            "ece_positive_rate",
            "ece_positive_rate_calibrated",
            "brier",
            "brier_calibrated",
        ]
    rows = []
    for seed, fold in units:
        common = rng.normal(0, 0.01)
        for model, gain in models.items():
            clai = model.startswith("clai")
            shares = ("population", "equal") if dataset in SEPSIS else ("population",)
            for rule, of_classes in product(RULES, shares) if clai else [("", "")]:
                values = {m: 0.80 + gain + common + rng.normal(0, 0.002) for m in good}
                values |= {m: 0.25 - gain + common + rng.normal(0, 0.002) for m in bad}
                values |= {"prevalence": 0.1} if dataset in SEPSIS else {"temperature": 0.1}
                rows += [
                    (dataset, model, seed, fold, rule, of_classes, metric, value) for metric, value in values.items()
                ]
    _write(folder, "metrics.csv", rows)


def _history(
    folder: Path, dataset: str, models: dict[str, float], units: Sequence[tuple[int, int | None]],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    rows = []
    for seed, fold in units:
        for model, gain in models.items():
            if model in ("gp", "student-t-mixture"):
                continue
            clai = model.startswith("clai")
            floor = {"clai-m": 0.01, "clai-c": 0.1}.get(model)
            for epoch in range(1, 31):
                progress = 1 - np.exp(-epoch / (10 - 150 * gain))
                loss = (floor or 0.2) + 0.6 * (1 - progress) + abs(rng.normal(0, 0.003))
                alignment = 0.2 + 0.6 * progress + rng.normal(0, 0.003) if clai else None
                accuracy = 0.1 + (0.7 + gain) * progress + rng.normal(0, 0.003)
                row = (dataset, model, seed, fold, epoch, loss, floor, alignment, alignment, accuracy, 1e-3, 1e6)
                rows.append(row)
    _write(folder, "history.csv", rows)


def _multiclass(folder: Path, dataset: str, units: Sequence[tuple[int, int | None]], rng: np.random.Generator) -> None:
    measured = pd.read_csv(folder / "metrics.csv", keep_default_na=False).query("rule in ['printed', '']")
    means = measured.groupby(["model", "metric"])["value"].mean()
    pairs = [("clai-m", "clai-c", None), ("clai-m", "cross-entropy", -0.01), ("clai-c", "cross-entropy", -0.02)]
    comparisons = []
    for model, other, gap in pairs:
        for metric, p in {"accuracy": 0.01, "macro_f1": 0.02, "ece": 0.2, "ece_scaled": 0.3, "roc_auc": 0.002}.items():
            value = means[model, metric] - means[other, metric] if gap is None else gap
            comparisons.append((model, other, metric, value, value - 0.015, value + 0.015, p, 10000, len(units), 1000))
    _write(folder, "comparisons.csv", comparisons)
    n_classes, rows = len(CLASSES[dataset]), []
    group_of = {c: i for i, group in enumerate(GROUPS) for c in group}
    for model in ("clai-m", "clai-c"):
        for seed, _ in units:
            for a in range(n_classes):
                for b in range(a, n_classes):
                    near = a in group_of and group_of[a] == group_of.get(b)
                    value = 0.9 if a == b else (0.2 if near else -0.3) + rng.normal(0, 0.02)
                    rows += [(model, seed, a, b, value)] + ([(model, seed, b, a, value)] if a != b else [])
    _write(folder, "similarity.csv", rows)


def _sepsis(folder: Path, units: Sequence[tuple[int, int | None]], rng: np.random.Generator) -> None:
    latent = []
    for seed, fold in units:
        for model in ("clai-m", "clai-c"):
            values = {"area_effect": -0.8, "area_effect_control": -0.1, "roughness": 0.1}
            latent += [(model, seed, fold, q, v + rng.normal(0, 0.02)) for q, v in values.items()]
        latent.append(("gp", seed, fold, "roughness", 0.4 + rng.normal(0, 0.02)))
    _write(folder, "latent.csv", latent)


def _runs(folder: Path, dataset: str, models: Collection[str], units: Sequence[tuple[int, int | None]]) -> None:
    records = []
    for model in models:
        for seed, fold in units:
            run = f"{dataset}/{model}/seed{seed}" + (f"/fold{fold}" if fold is not None else "")
            training = {"epochs": 5, "batch_size": 64, "pair_weighting": "none"}
            settings = {"threads": 2, "training": training, "target": {"multiclass": "zero"}}
            data = {f"{dataset}_images.zip": "sha256:" + "ab" * 32}
            records.append(_record(run, seed=seed, fold=fold, settings=settings, data=data, threads=2))
    write_records(folder, records)


def write_studies(root: Path, gain: float = 0.02) -> None:
    """Write `root`/<study>/evidence/ of all studies; gain: of the zero target over product, and of joint over sequential."""
    rng = np.random.default_rng(11)
    kernels = ("cosine", "identity", "full")
    cells = {
        "ablation": [f"{kernel}_{target}" for kernel in kernels for target in ("zero", "product")],
        "convergence": [
            f"{k}_{s}-long" for k in ("cosine", "full") for s in ("sequential-all", "joint-all", "joint-1")
        ],
        "wide": ["full_product", "cosine_zero", "cross-entropy", "supervised-contrastive"],
        "sprint": ["full", "cross-entropy"],
        "epochs-120": ["full_zero", "cosine_zero"],
        **{
            study: [f"{k}_{t}_{schedule}" for k in ("cosine", "full") for t in ("zero", "product")]
            for study, schedule in TURNS.items()
        },
    }
    for study, own in cells.items():
        folder = root / study / "evidence"
        folder.mkdir(parents=True, exist_ok=True)
        metrics, history, runs = [], [], []
        for cell in own:
            better = gain * (cell.endswith("_zero") or "joint" in cell)
            for seed in range(3):
                shares = "" if cell.startswith("cross") else "population"
                for rule in RULES if shares else ("",):
                    values = {m: 0.5 + better + rng.normal(0, 0.001) for m in ("accuracy", "macro_f1", "roc_auc")}
                    values |= {m: 0.2 + rng.normal(0, 0.001) for m in ("ece", "ece_scaled")}
                    metrics += [
                        (study, cell, seed, "", rule, shares, metric, value) for metric, value in values.items()
                    ]
                epochs = 120 if study == "epochs-120" else 20
                for epoch in range(1, epochs + 1):
                    score = 0.5 * epoch / epochs
                    learned = (1 - score, 0.1, score, score, score, 1e-3, 1e6)
                    cost = (epoch * 1e12, epoch * (10.0 + seed))
                    change = -0.05 + gain * ("_zero_" in cell) + rng.normal(0, 0.001) if study in TURNS else ""
                    history.append((study, cell, seed, "", epoch, *learned, change, *cost))
                settings = {"encoder": {"width": 32}, "training": {"batch_size": 64}}
                runs.append(_record(f"{study}/{cell}/seed{seed}", seed=seed, settings=settings))
        _write(folder, "metrics.csv", metrics)
        pd.DataFrame(history, columns=STUDY_HISTORY).to_csv(folder / "history.csv", index=False)
        write_records(folder, runs)
        _description(folder, "cifar10")


def write_benchmark(root: Path, *, power: float = 1.0, miniature: bool = False) -> None:
    """Write `root`/benchmark/evidence/: seconds of an epoch grow with this power of the pairs of batches and of the classes."""
    rng = np.random.default_rng(5)
    rows: list[tuple[str, str, str, int, str, float]] = []

    def timed(comparison: str, setting: str, variant: str, predicted: float, beyond: float = 1.0) -> None:
        for repetition in range(3):
            row, seconds = (comparison, variant, setting, repetition), predicted * beyond * float(rng.uniform(1, 1.02))
            rows.extend([(*row, "seconds", seconds), (*row, "predicted", predicted)])

    for variant, predicted in (("sequential", 9.5), ("joint", 1.0)):
        timed("joint", "M=8;C=10;B=32", variant, predicted)
    shapes = [("batches", m, 10) for m in (2, 4, 8, 16)] + [("classes", 4, c) for c in (2, 5, 10)]
    for comparison, m, c in shapes:
        setting, beyond = f"M={m};C={c};B=16", (m * (m - 1) / 2 * c) ** (power - 1)
        for variant in ("printed", "sequential", "joint", "linear"):
            forward, backward = trunk_passes(variant, m, c)
            timed(comparison, setting, variant, forward + 2 * backward, beyond)
        rows.append((comparison, "printed", setting, 0, "peak_memory_mb", 30.0 * c ** (power - 1)))
    folder = root / "benchmark" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, "benchmark.csv", rows)
    title = EXPECTED["benchmark"]["title"] + " (miniature synthetic)" * miniature
    (folder / "dataset.json").write_text(json.dumps({"title": title, "licence": "MIT", "miniature": miniature}))
    write_records(folder, [_record("benchmark/measurements/seed0", settings={"threads": 2}, threads=2)])
