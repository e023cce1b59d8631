"""Figures of merit of trained models: scores and probabilities of test samples against their labels.

Nothing that is trained rests on this module, so that another figure of merit trains nothing anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from clai.datasets.prepared import Prepared
from clai.encoders import Classifier
from clai.experiments.training import (
    Embedded,
    classifier_outputs,
    conditions_of,
    recording_rows,
    similarity_means,
)
from clai.inference import RULES, decide, probabilities, standard_error
from clai.kernels import Kernel
from clai.metrics.bootstrap import Fold
from clai.metrics.calibration import fit_logistic, fit_temperature, scaled_softmax
from clai.metrics.challenge_utility import HourlyUtility, choose_alarm_threshold, hourly_utility, utility_score
from clai.metrics.classification import binary_metrics, choose_threshold, multiclass_metrics, reliability, top_label
from clai.runs.gather import run_name

Floats = NDArray[np.float64]


class Evaluation(NamedTuple):
    """What is found on the test samples of a run.

    `metrics`: (rule, metric, value), the rule empty but for CLaI. `reliability`: (mapping, bin, n, confidence, accuracy).
    `predictions`: float32 arrays `score`, `probability` and `calibrated`, of shape (N,) for two classes, (N, C) for more; where
    there are utilities, also `alarm` (N,), whether the score is above the threshold that served validation patients best.
    """

    metrics: pd.DataFrame
    reliability: pd.DataFrame
    predictions: dict[str, NDArray[Any]]


class Utilities(NamedTuple):
    """What alarms are worth in the hours of the validation and test stays."""

    val: HourlyUtility
    test: HourlyUtility


def utilities_of(data: Prepared, settings: Mapping[str, Any], seed: int, fold: int | None) -> Utilities | None:
    """The Challenge's utilities of a run's rows; None for data that are not recordings, or whose labels say no onset."""
    before = data.info.get("label_hours_before")
    if data.info["kind"] != "recordings" or before is None:
        return None
    y, recording = data["y_all"], data["groups_all"]
    _, val, test = recording_rows(data, settings, fold, seed)
    return Utilities(*(hourly_utility(y[rows], recording[rows], before) for rows in (val, test)))


def test_folds(
    data: Prepared, settings: Mapping[str, Any], predictions: Sequence[str]
) -> Iterator[tuple[dict[str, str], Fold]]:
    """Each seed's test folds of recordings with what all models predict there, and the file of each model's predictions.

    Args:
        predictions: paths of the `predictions` of runs.
    """
    runs: dict[tuple[int, int | None], dict[str, str]] = {}
    for path in predictions:
        name = run_name(path)
        runs.setdefault((name.seed, name.fold), {})[name.model] = path
    for (seed, fold), paths in sorted(runs.items()):
        rows = recording_rows(data, settings, fold, seed)[2]
        loaded = {model: np.load(path, allow_pickle=False) for model, path in paths.items()}
        utilities = utilities_of(data, settings, seed, fold)
        yield (
            paths,
            Fold(
                number=fold,
                y=data["y_all"][rows],
                patient=data["patients_all"][rows],
                scores={model: found["score"] for model, found in loaded.items()},
                alarms={model: found["alarm"] for model, found in loaded.items() if "alarm" in found},
                calibrated={model: found["calibrated"] for model, found in loaded.items()},
                utility=None if utilities is None else utilities.test,
            ),
        )


def evaluate_clai(
    kernel: Kernel,
    embedded: Mapping[str, Embedded],
    conditions: int,
    settings: Mapping[str, Any],
    seed: int,
    utilities: Utilities | None,
) -> Evaluation:
    """Collaborative Inference with the training samples as references, by each decision rule.

    Args:
        seed: draws the references where `inference.references` is a number.

    Reliability and predictions are those of the paper's rule. The metric standard_error is the mean over test samples and
    conditions of how far a vote of sampled references may be from that of all; 0 for all.
    """
    test, val = embedded["test"], embedded["val"]
    of_test, of_val = (
        similarity_means(kernel, part, embedded["train"], conditions, settings, seed) for part in (test, val)
    )
    rows, found = [], {}
    for rule in RULES:
        score_test, score_val = decide(of_test, rule).double(), decide(of_val, rule).double()
        if conditions > 1:
            found[rule] = evaluate_multiclass(
                score_test.T.numpy(), test.y.numpy(), score_val.T.numpy(), val.y.numpy(), settings
            )
        else:
            given = probabilities(score_test)[:, 1].numpy()
            score, on_validation = score_test[0].numpy(), score_val[0].numpy()
            found[rule] = evaluate_binary(
                score, given, test.y.numpy(), on_validation, val.y.numpy(), settings, utilities
            )
        error = _metric_rows({"standard_error": float(standard_error(of_test, rule).double().mean())})
        rows += [found[rule].metrics.assign(rule=rule), error.assign(rule=rule)]
    return found["printed"]._replace(metrics=pd.concat(rows, ignore_index=True)[["rule", "metric", "value"]])


def evaluate_cross_entropy(
    classifier: Classifier,
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
    device: torch.device,
) -> Evaluation:
    """The cross-entropy baseline, from its logits."""
    test, val = classifier_outputs(classifier, data, settings, seed, fold, device)
    scores, scores_val = test.z[0].double().numpy(), val.z[0].double().numpy()
    if conditions_of(data.info) > 1:
        return evaluate_multiclass(scores, test.y.numpy(), scores_val, val.y.numpy(), settings)
    odds, odds_val = scores[:, 1] - scores[:, 0], scores_val[:, 1] - scores_val[:, 0]
    probability = torch.from_numpy(odds).sigmoid().numpy()
    utilities = utilities_of(data, settings, seed, fold)
    return evaluate_binary(odds, probability, test.y.numpy(), odds_val, val.y.numpy(), settings, utilities)


def evaluate_multiclass(
    score: Floats, y: NDArray[np.int64], score_val: Floats, y_val: NDArray[np.int64], settings: Mapping[str, Any]
) -> Evaluation:
    """Scores (N, C) that softmax turns into probabilities; the temperature is fitted on the validation scores (M, C)."""
    bins = settings["evaluation"]["ece_bins"]
    temperature = fit_temperature(score_val, y_val)
    given, scaled = scaled_softmax(score, 1.0), scaled_softmax(score, temperature)
    metrics = multiclass_metrics(y, given, bins=bins)
    metrics["ece_scaled"] = multiclass_metrics(y, scaled, bins=bins)["ece"]
    metrics["temperature"] = temperature
    diagrams = [
        reliability(*top_label(y, p), bins=bins).assign(mapping=mapping)
        for mapping, p in (("raw", given), ("calibrated", scaled))
    ]
    return Evaluation(_metric_rows(metrics), pd.concat(diagrams, ignore_index=True), _single(score, given, scaled))


def evaluate_binary(
    score: Floats,
    probability: Floats,
    y: NDArray[np.int64],
    score_val: Floats,
    y_val: NDArray[np.int64],
    settings: Mapping[str, Any],
    utilities: Utilities | None,
) -> Evaluation:
    """Scores (N,), positive above 0, with their own probabilities (N,).

    Calibration and the thresholds for F1 and for alarms are fitted on the validation scores (M,).
    """
    bins = settings["evaluation"]["ece_bins"]
    calibrated = fit_logistic(score_val, y_val)(score)
    metrics = binary_metrics(
        y,
        score,
        probability,
        calibrated,
        threshold=0.0,
        threshold_validation=choose_threshold(y_val, score_val),
        bins=bins,
    )
    predictions = _single(score, probability, calibrated)
    if utilities is not None:
        predictions["alarm"] = score > choose_alarm_threshold(utilities.val, score_val)
        metrics["utility"] = utility_score(utilities.test, predictions["alarm"])
    diagrams = [
        reliability(p, y, bins=bins).assign(mapping=mapping)
        for mapping, p in (("raw", probability), ("calibrated", calibrated))
    ]
    return Evaluation(_metric_rows(metrics), pd.concat(diagrams, ignore_index=True), predictions)


def _metric_rows(metrics: Mapping[str, float]) -> pd.DataFrame:
    return pd.DataFrame({"rule": "", "metric": list(metrics), "value": list(metrics.values())})


def _single(score: Floats, probability: Floats, calibrated: Floats) -> dict[str, NDArray[Any]]:
    named = {"score": score, "probability": probability, "calibrated": calibrated}
    return {name: values.astype(np.float32) for name, values in named.items()}


def class_similarity(kernel: Kernel, embedded: Embedded, classes: int, samples: int, seed: int) -> pd.DataFrame:
    """Mean similarity of pairs of samples of two classes, averaged over conditions: (class_a, class_b, similarity).

    Args:
        samples: at most so many samples of each class, drawn with the seed.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for k in range(classes):
        own = (embedded.y == k).nonzero()[:, 0]
        drawn.append(embedded.z[:, own[torch.randperm(len(own), generator=generator)[:samples]]])
    with torch.no_grad():
        rows = [
            {"class_a": a, "class_b": b, "similarity": float(kernel(drawn[a], drawn[b]).mean())}
            for a in range(classes)
            for b in range(classes)
        ]
    return pd.DataFrame(rows)
