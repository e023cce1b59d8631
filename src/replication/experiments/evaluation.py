"""Figures of merit of trained models: scores and probabilities of test samples against their labels.

A change here fits baselines and networks on own data again, and no other model.
"""

import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.special import expit, softmax
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from clailearn.calibration import fit_logistic, fit_temperature, positive_probability
from clailearn.checkpoints import Checkpoint
from clailearn.encoders import move
from clailearn.errors import InputError
from clailearn.inference import RULES, ParzenMeans, class_scores, decide, log_posteriors
from clailearn.kernels import Kernel
from replication.experiments.latent import degrees_of_freedom, signals_as_seen
from replication.experiments.predictions import measure_predictions, save_predictions
from replication.metrics.classification import choose_threshold, reliability, top_label
from replication.metrics.intervals import Fitted, Predictions
from replication.models.base import Floats, Labels, Model, Network, create
from replication.models.clai import CLaI, Voting, voted
from replication.models.embedding import Embedded, embed, embed_splits, similarity_means
from replication.models.run import Run
from replication.runs.registry import MODELS
from replication.runs.run import RunId

SHARES = ("population", "equal")
"""Class shares of the references: those of the set (the printed sum), or equal ones (each class weighs the same)."""
SIMILARITY_SAMPLES = 200
"""Test samples of a class behind the mean similarity of two classes (claim 12)."""
BY_NUMBER = ("accuracy", "auroc", "log_loss", "log_loss_scaled", "log_loss_calibrated")
"""Metrics by the number of references of a class."""
COUNTED_ITEMS = 4
"""Items whose operations are counted: the count is proportional to their number, and BatchNorm needs two."""


class Scored(NamedTuple):
    """Scores of samples, (N,) for two classes and (N, C) for more, and their labels (N,)."""

    score: Floats
    y: Labels


class Evaluation(NamedTuple):
    """The figures of merit of a run on its test samples.

    metrics: columns rule, shares, metric, value; rule and shares are empty where none is compared. reliability: columns
    kind, mapping, bin, n, confidence, accuracy. predictions: in float32, with what was fitted on validation samples.
    """

    metrics: pd.DataFrame
    reliability: pd.DataFrame
    predictions: Predictions

    def save(self, metrics: str, reliability: str, predictions: str) -> None:
        self.metrics.to_csv(metrics, index=False)
        self.reliability.to_csv(reliability, index=False)
        save_predictions(Path(predictions), {RunId.parse(predictions): self.predictions})


def measure(
    run: Run, path: str, parts: Collection[str]
) -> tuple[Evaluation, dict[str, Embedded], tuple[Floats, Floats], dict[str, pd.DataFrame]]:
    """Evaluate the trained model of a run, whose file is `path`, and measure these `parts` (`runs.outputs.control_parts`).

    Returns the evaluation; the embedded splits of CLaI; mean and standard deviation of a latent process at the test hours, (N,)
    each; and by name what the controls of claims ask of the run. A part that does not apply to the model is empty.
    """
    model = create(run.model).load(run, path)
    process = model.latent(run, run.splits.test) if MODELS[run.model].latent else (np.empty(0), np.empty(0))
    controls = {
        "similarity": pd.DataFrame(columns=["class_a", "class_b", "similarity"]),
        "agreement": pd.DataFrame(columns=["share", "quantity", "value"]),
        "latent": pd.DataFrame(columns=["quantity", "value"]),
        "areas": pd.DataFrame(columns=["since_onset", "area"]),
    }
    evaluation, embedded = evaluate(run, model)
    if embedded or "classes" in parts or "signals" in parts:
        space = model.spaces()[0]
        move(space.module, run.device)
        test, kernel = embedded.get("test") or embed(run, space.module, run.splits.test), space.kernel.cpu()
        if embedded or "classes" in parts:
            controls["similarity"] = class_similarity(run, kernel, test)
        if "rules" in parts:
            controls["agreement"] = measure_agreement(run, kernel, embedded)
        if "signals" in parts:
            controls["latent"], controls["areas"] = signals_as_seen(run, kernel, test)
    return evaluation, embedded, process, controls


def evaluate(run: Run, model: Model) -> tuple[Evaluation, dict[str, Embedded]]:
    """Evaluate a fitted model on the test samples of a run: CLaI by each decision rule, others by their scores.

    The second is what CLaI embeds, by split; empty for other models.
    """
    if isinstance(model, CLaI):
        embedded = embed_splits(run, model.network)
        return evaluate_clai(run, model.kernel, embedded), embedded
    parts = (run.splits.test, run.splits.val)
    test, val = (Scored(model.scores(run, items), items.labels.numpy()) for items in parts)
    return evaluate_scores(run, test, val), {}


def evaluate_clai(run: Run, kernel: Kernel, embedded: Mapping[str, Embedded]) -> Evaluation:
    """Evaluate Collaborative Inference with the training samples as references, by each decision rule.

    Two classes are evaluated with both class shares of the references. Reliability and predictions are those of the rule
    `printed` with the shares `population`.
    """
    samples = (embedded["test"], embedded["val"])
    means = [similarity_means(run, kernel, part, embedded["train"]) for part in samples]
    evaluations = {}
    for shares in SHARES if run.conditions == 1 else SHARES[:1]:
        if shares == "equal":
            means = [part._replace(share=torch.full_like(part.share, 0.5)) for part in means]
        for rule in RULES:
            test, val = (Scored(voted(found, rule), part.y.numpy()) for found, part in zip(means, samples, strict=True))
            evaluations[rule, shares] = evaluate_scores(run, test, val, voted=True)
    rows = [found.metrics.assign(rule=rule, shares=shares) for (rule, shares), found in evaluations.items()]
    return evaluations["printed", "population"]._replace(metrics=pd.concat(rows, ignore_index=True))


def evaluate_scores(run: Run, test: Scored, val: Scored, voted: bool = False) -> Evaluation:
    """Evaluate scores (N, C), whose softmax is the probability, or of two classes log-odds (N,) or, where `voted`, votes.

    Validation samples calibrate, and choose the threshold for F1.
    """
    if test.score.ndim == 2:
        fitted, threshold = Fitted(fit_temperature(val.score, val.y)), None
        probability, calibrated = (softmax(test.score / by, axis=1) for by in (1.0, fitted.temperature))
    else:
        logistic, threshold = fit_logistic(val.score, val.y), choose_threshold(val.y, val.score)
        fitted = Fitted(slope=logistic.slope, intercept=logistic.intercept, vote=voted)
        probability = positive_probability(test.score) if voted else expit(test.score)
        calibrated = logistic(test.score)
    given = Predictions(test.score, probability, calibrated, fitted)
    metrics = measure_predictions(test.y, given, run.data.info["kind"] == "recordings", threshold)
    if threshold is None:
        metrics["temperature"] = fitted.temperature
    rows = pd.DataFrame({"rule": "", "shares": "", "metric": list(metrics), "value": list(metrics.values())})
    score, raw, mapped = (part.astype(np.float32) for part in (test.score, probability, calibrated))
    return Evaluation(rows, reliability_of(test.y, given), Predictions(score, raw, mapped, fitted))


def evaluate_fewer(run: Run, model: Voting, embedded: Mapping[str, Embedded], numbers: Collection[int]) -> pd.DataFrame:
    """Return metrics of votes by so many references of each class: rows of `Evaluation.metrics`, such as `accuracy_of_10`."""
    printed = isinstance(model, CLaI)
    reading = {"rule": "printed", "shares": SHARES[0]} if printed else {}
    rows = []
    for number in numbers:
        test, val = votes_of(run, model, embedded, number * run.classes)
        found = evaluate_scores(run, test, val, voted=printed).metrics
        found = found[found["metric"].isin(BY_NUMBER)]
        rows.append(found.assign(metric=found["metric"] + f"_of_{number}", **reading))
    return pd.concat(rows)


def votes_of(run: Run, model: Voting, embedded: Mapping[str, Embedded], references: int) -> tuple[Scored, Scored]:
    """Return the scores of test and of validation samples by the votes of so many references."""
    inference = {**run.settings["inference"], "references": references}
    fewer, train = replace(run, settings={**run.settings, "inference": inference}), embedded["train"]
    test, val = (Scored(model.vote(fewer, part, train), part.y.numpy()) for part in (embedded["test"], embedded["val"]))
    return test, val


@torch.no_grad()
def with_witnesses(
    run: Run, kernel: Kernel, embedded: Mapping[str, Embedded], evaluation: Evaluation, number: int
) -> Evaluation:
    """Return an evaluation of more than two classes that names so many witnesses of each test sample.

    Its metric `same_without_witnesses` is the share of test samples that get the same class where theirs do not vote. All
    training samples are references.
    """
    test, train = embedded["test"], embedded["train"]
    f = torch.from_numpy(evaluation.predictions.score)  # (N, C)
    decided = f.argmax(1)
    named = torch.empty(len(f), number, dtype=torch.long)
    for k in range(run.classes):
        rows, members = decided == k, (train.y == k).nonzero()[:, 0]
        similarity = sum(kernel(z[k, rows], train.z[k, members]) for z in test.views)
        named[rows] = members[similarity.topk(number).indices]
    z_named = train.z[:, named]  # (C, N, number, L)
    similarity = sum(kernel(z[:, :, None], z_named)[:, :, 0] for z in test.views) / len(test.views)
    sign = torch.where(torch.arange(run.classes)[:, None] == decided, 1, -1)
    rest = len(train.y) * f.T - sign * similarity.sum(2)  # the sum of the other votes, (C, N)
    same = float((rest.argmax(0) == decided).double().mean())
    predictions = replace(evaluation.predictions, witnesses=named.numpy())
    found = with_metrics(evaluation, {"same_without_witnesses": same}, rule="printed", shares=SHARES[0])
    return found._replace(predictions=predictions)


def reliability_of(y: Labels, given: Predictions) -> pd.DataFrame:
    """Return the reliability of predictions before and after calibration: of the top label, of two classes of class 1."""
    kind = "top-label" if given.score.ndim == 2 else "positive-rate"
    diagrams = []
    for mapping, p in (("raw", given.probability), ("calibrated", given.calibrated)):
        pairs = top_label(y, p) if p.ndim == 2 else (p, y)
        diagrams.append(reliability(*pairs).assign(kind=kind, mapping=mapping))
    return pd.concat(diagrams, ignore_index=True)


def measure_agreement(run: Run, kernel: Kernel, embedded: Mapping[str, Embedded]) -> pd.DataFrame:
    """Return how often the rules `printed` and `parzen` decide alike on the test samples of a run of CLaI-M (claim 10).

    The Parzen form of the learned Gaussian kernel is a density up to a constant. Training samples are references. Columns share,
    quantity, value: for the class share of each condition, conditions with equal shares together, agreement, the share of test
    samples that f > 0 of both rules decides alike; equal_agreement, the same where each class weighs as much as the rest. For
    many classes, with an empty share, class_agreement, the share of test samples that get the same class.
    """
    means = similarity_means(run, kernel, embedded["test"], embedded["train"])
    rows = []
    for quantity, shares in (("agreement", means.share), ("equal_agreement", torch.full_like(means.share, 0.5))):
        alike = decided_alike(means, shares).tolist()
        rows += [(share, quantity, value) for share, value in zip(shares[:, 0].tolist(), alike, strict=True)]
    if len(means.share) > 1:
        same = class_scores(decide(means, "printed")).argmax(1) == class_scores(log_posteriors(means)).argmax(1)
        rows.append((float("nan"), "class_agreement", float(same.double().mean())))
    found = pd.DataFrame(rows, columns=["share", "quantity", "value"])
    return found.groupby(["share", "quantity"], as_index=False, dropna=False, sort=False).mean()


def decided_alike(means: ParzenMeans, shares: Tensor) -> Tensor:
    """Return the share of samples (K,) that f > 0 of the rules `printed` and `parzen` decides alike, at class shares (K, 1)."""
    printed, parzen = (decide(means._replace(share=shares), rule) > 0 for rule in ("printed", "parzen"))
    return (printed == parzen).double().mean(1)


def class_similarity(run: Run, kernel: Kernel, embedded: Embedded) -> pd.DataFrame:
    """Return the mean similarity of drawn samples of two classes, over conditions: columns class_a, class_b, similarity."""
    generator = torch.Generator().manual_seed(run.id.seed)
    drawn = []
    for k in range(run.classes):
        members = (embedded.y == k).nonzero()[:, 0]
        drawn.append(embedded.z[:, members[torch.randperm(len(members), generator=generator)[:SIMILARITY_SAMPLES]]])
    with torch.no_grad():
        rows = [
            {"class_a": a, "class_b": b, "similarity": float(kernel(drawn[a], drawn[b]).mean())}
            for a in range(run.classes)
            for b in range(run.classes)
        ]
    return pd.DataFrame(rows)


def run_cell(run: Run, checkpoint: Checkpoint) -> tuple[Model, Evaluation, pd.DataFrame]:
    """Fit the model of a cell of a study, and evaluate it on the samples that the study is scored on.

    The last is the history, a row an epoch; of a network, `operations` are the floating-point operations up to the end of each.
    """
    inference = run.settings.get("inference", {})  # not every model reads it
    if inference.get("witnesses") and (run.conditions == 1 or inference["references"] != "all"):
        raise InputError(
            f"{run.id}: found inference.witnesses, expected it for three or more classes and with references: all. Remove it"
        )
    model = create(run.model)
    history = pd.DataFrame(model.fit(run, checkpoint) or {"epoch": []})
    if isinstance(model, Network):
        per_item = operations_per_item(run, model)
        if per_item is not None:
            history["operations"] = history["epoch"] * model.passes(run) * len(run.splits.train) * per_item
    evaluation, embedded = evaluate(run, model)
    if isinstance(model, Voting) and (numbers := inference.get("fewer_references")):
        more = evaluate_fewer(run, model, embedded or embed_splits(run, model.network), numbers)
        evaluation = evaluation._replace(metrics=pd.concat([evaluation.metrics, more], ignore_index=True))
    if isinstance(model, CLaI) and (number := inference.get("witnesses")):
        evaluation = with_witnesses(run, model.kernel.cpu(), embedded, evaluation, number)
    if isinstance(model, Network) and (most := inference.get("tail_samples")):
        test = embedded.get("test") or embed(run, model.spaces()[0].module, run.splits.test)
        tails = degrees_of_freedom(test, run.classes, most, run.id.seed)
        evaluation = with_metrics(evaluation, {"degrees_of_freedom": tails})
    if isinstance(model, CLaI) and (varied := inference.get("varied_shares")):
        means = similarity_means(run, model.kernel.cpu(), embedded["test"], embedded["train"])
        alike = {
            f"agreement_at_{s:g}": float(decided_alike(means, torch.full_like(means.share, s)).mean()) for s in varied
        }
        evaluation = with_metrics(evaluation, alike)
    return model, evaluation, history


def with_metrics(evaluation: Evaluation, values: Mapping[str, float], rule: str = "", shares: str = "") -> Evaluation:
    """Return an evaluation with further metrics, by a decision rule and class shares or without any."""
    rows = pd.DataFrame({"rule": rule, "shares": shares, "metric": list(values), "value": list(values.values())})
    return evaluation._replace(metrics=pd.concat([evaluation.metrics, rows], ignore_index=True))


def operations_per_item(run: Run, model: Network) -> float | None:
    """Count the operations of one training item in a model's network, forward and backward.

    A multiplication and an addition are two operations, as Jordan (2024, arXiv 2404.00498) counts. PyTorch's counter knows
    convolutions and matrix products, from their shapes; the layout in memory and the precision change nothing. Normalisation,
    activations, the loss and the optimiser are not counted: together they are a few per cent. None for recordings, because the
    counter does not know recurrent layers.
    """
    if run.data.info["kind"] == "recordings":
        return None
    model = copy.deepcopy(model)
    model.module.cpu().train()
    x = run.splits.train.batch(torch.arange(COUNTED_ITEMS), None)[0].cpu()
    with FlopCounterMode(display=False) as counter:
        model.forward(run, x).sum().backward()
    return counter.get_total_flops() / COUNTED_ITEMS
