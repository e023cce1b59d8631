"""Publish a trained model, evaluate a published one on prepared data, and picture its votes (figure S1)."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from clailearn.calibration import fit_logistic
from clailearn.encoders import place
from clailearn.errors import InputError
from clailearn.inference import sample_references
from clailearn.published_model import REFERENCES, PublishedModel, load
from clailearn.records import FORMAT, WEIGHTS, write_model
from clailearn.tensors import load_tensors
from clailearn.votes import References
from replication.datasets.hourly_inputs import hourly_names
from replication.datasets.prepared import DESCRIPTION, Prepared, normalisation
from replication.experiments import evaluation as of_runs
from replication.experiments.evaluation import Scored, evaluate_scores, votes
from replication.models.base import Network, create
from replication.models.batches import NO_AUGMENTATION
from replication.models.clai import CLaI
from replication.models.embedding import Embedded, means_of_views
from replication.models.run import Run
from replication.models.splits import drawn_rows, recording_rows
from replication.runs.run import COLUMNS, RunId, checksums, gather

KEPT_REFERENCES = 400
"""Training samples that vote in a published model, as many of each class, weighted by its share."""
IMAGES = 2
"""Test images that are classified rightly, and as many that are not."""
SHOWN_REFERENCES = 5
"""References for the predicted class, and as many against it."""
_DATA = ("dataset", "title", "version", "licence", "kind", "classes", "source", "miniature")


def pack(
    run: Run,
    model: Network,
    embedded: Mapping[str, Embedded] | None,
    references: int,
    record: Mapping[str, Any],
    metrics: Mapping[str, float],
    folder: Path,
) -> dict[str, Any]:
    """Publish a trained model, of CLaI or of cross-entropy, which has no `embedded`, to a folder, and return its `model.json`.

    A model of Collaborative Learning keeps a sample of its references, as many of each class, drawn with the run's seed. They
    vote with the weight of the class members for whom they stand. Their embeddings are rounded to float16.

    references: to keep. record, metrics: of the run, with its evaluation by the printed rule.
    """
    if run.shift:
        raise InputError(f"inference.shift: found {run.shift}, expected 0, as packed models see no shifted images")
    tensors, kernel = rounded(model, run), dict(run.settings["kernel"])
    of_references: dict[str, Any] = {"population": []}
    if isinstance(model, CLaI):
        assert embedded is not None
        kernel["name"] = model.kernel.name
        train = embedded["train"]
        items, population = sample_references(train.y, references, run.id.seed)
        kept = References(train.z[:, items].half().float(), train.y[items], items, population)
        samples = (embedded["test"], embedded["val"])
        means = [means_of_views(model.kernel, part, kept.z, kept.y, kept.population) for part in samples]
        test, val = (votes(run, found, "printed", part) for found, part in zip(means, samples, strict=True))
        places = _places(run, kept.item)
        tensors |= dict(zip(REFERENCES, (kept.z.half(), kept.y, places), strict=True))
        of_references["population"] = kept.population.tolist()
        if "files_train" in run.data.arrays:
            of_references["reference_files"] = [str(name) for name in run.data["files_train"][places]]
    else:
        test, val = (Scored(model.scores(run, part), part.labels.numpy()) for part in (run.splits.test, run.splits.val))
    evaluation = evaluate_scores(run, test, val, voted=isinstance(model, CLaI))
    published = dict(zip(evaluation.metrics["metric"], evaluation.metrics["value"], strict=True))
    of_many = {"temperature": published.get("temperature")}
    calibration = of_many if run.conditions > 1 else asdict(fit_logistic(val.score, val.y))
    info, settings = run.data.info, run.settings
    described = {
        "format": FORMAT,
        "run": str(run.id),
        "model": run.model,
        "data": {key: info[key] for key in _DATA},
        "input": _input(run),
        "settings": {
            "embedding_size": settings["embedding_size"],
            "encoder": dict(settings["encoder"]),
            "kernel": kernel,
            "mirror": run.mirror,
            "precision": run.training.precision,
        },
        **of_references,
        "calibration": calibration,
        "metrics": {"run": dict(metrics), "published": published},
        "record": dict(record),
    }
    return write_model(folder, described, tensors)


def rounded(model: Network, run: Run) -> dict[str, Tensor]:
    """Return parameters and buffers of a model, the weights of the trunk's layers in half the bits.

    Autocast rounds them to bfloat16 for every use, so that outputs of a run with this precision stay the same. Those of other
    runs are rounded to float16, which changes a prediction in some thousands.
    """
    weights = {p.data_ptr() for p in model.network.trunk.parameters() if p.ndim > 1}
    stored = torch.bfloat16 if run.training.precision == "bfloat16" else torch.float16
    return {
        name: tensor.to(stored) if tensor.data_ptr() in weights else tensor
        for name, tensor in model.module.state_dict().items()
    }


def _places(run: Run, items: Tensor) -> Tensor:
    """Return the rows of training samples in the arrays of the prepared data."""
    if run.data.info["kind"] == "recordings":
        rows: Any = np.flatnonzero(recording_rows(run.data, run.settings, run.id)[0])
    else:
        rows = drawn_rows(run.settings, run.id, len(run.data["y_train"]))
    return items if rows is None else torch.from_numpy(rows)[items]


def _input(run: Run) -> dict[str, Any]:
    """Return shape, names and statistics of an input; for recordings of the variables before `hourly_inputs`."""
    info, settings = run.data.info, run.settings
    if info["kind"] == "recordings":
        train = recording_rows(run.data, settings, run.id)[0]
        statistics = normalisation(
            run.data["x_all"], "recordings", info["variables"], train, f"training data of {run.id}"
        )
        names = list(hourly_names(info["variables"]))
        return {"shape": [len(names)], "names": names, "variables": info["variables"], **statistics}
    separately = info["kind"] != "features" and settings["normalise_test_separately"]
    statistics = info["normalisation"]["test" if separately else "train"]
    names = list(info.get("variables", info.get("channels", [])))
    return {"shape": list(run.data["x_test"].shape[1:]), "names": names, **statistics}


def evaluate(folder: str | Path, prepared: str | Path) -> pd.DataFrame:
    """Evaluate a published model on the test samples of prepared data, as its run was evaluated.

    All references of the run vote: the training samples are embedded again, so that the metrics are those of the run and not of
    the references that the model keeps. Where the machine computes the run's bfloat16 only by emulation, the trunk works in
    float32; predictions near a border may then differ. Returns the columns of `metrics.csv`. Raises InputError for a damaged
    model, or other data than those that it was trained on.
    """
    published, run = reopen(folder, prepared)
    model: Any = create(run.model)
    model.module, model.network, model.kernel = published.network, published.network, published.kernel
    place(published.network, run.device)
    return gather({str(run.id): of_runs.evaluate(run, model, run.splits).metrics}, COLUMNS["metrics.csv"])


def reopen(folder: str | Path, prepared: str | Path) -> tuple[PublishedModel, Run]:
    """Return a published model and its run on prepared data, with the settings of its evaluation; see `evaluate`."""
    published = load(folder)
    record = published.record["record"]
    settings = record["evaluation"]["settings"]
    # An evaluation draws no augmentation, and the record of an older run lacks what can be set since.
    training = {**settings["training"], "augmentation": NO_AUGMENTATION}
    inference = {"shift": 0, **settings["inference"]}
    if training["precision"] == "bfloat16":
        training["precision"] = "auto"
    settings = {**settings, "training": training, "inference": inference}
    run = Run.open(Path(prepared) / DESCRIPTION, settings, RunId.parse(record["run"]))
    if (found := checksums(run.data.info)) != record["data"]:
        raise InputError(
            f"{folder}: found prepared data of {found}, expected of {record['data']}, on which the model was trained. Set "
            f"the path of {run.data.info['dataset']} to these files, or leave the model out."
        )
    return published, run


def keeps_weights(folder: str | Path) -> bool:
    """Return whether the weights compute what those of the run did: not where they are rounded to float16."""
    tensors = load_tensors(Path(folder) / WEIGHTS)
    return all(tensor.dtype != torch.float16 for name, tensor in tensors.items() if name not in REFERENCES)


def vote_pictures(model: PublishedModel, data: Prepared, seed: int) -> pd.DataFrame:
    """Return test images, drawn with the seed, and the references with the strongest votes about them, as `votes.csv.gz`.

    An image has a row with `role` image, then one for each reference; `pixels` are base64 of uint8 (height, width, channels).
    """
    y = np.asarray(data["y_test"])
    order = np.random.default_rng(seed).permutation(len(y))
    predicted = model.predict(data["x_test"])
    right = predicted == np.asarray(model.classes)[y]
    shown = [row for side in (right, ~right) for row in order[side[order]][:IMAGES].tolist()]
    rows = [row for image in shown for row in _rows(model, data, image)]
    return pd.DataFrame(rows, columns=COLUMNS["votes.csv.gz"])


def _rows(model: PublishedModel, data: Prepared, image: int) -> Iterator[dict[str, Any]]:
    pixels = np.asarray(data["x_test"][image])
    (found,) = model.votes(pixels[None], SHOWN_REFERENCES)
    shared = {"model": model.record["model"], "image": image, "predicted": found.label}
    label = model.classes[int(data["y_test"][image])]
    shown = {"role": "image", "place": 0, "item": image, "label": label, "vote": found.score}
    yield {**shared, **_picture(pixels), **shown}
    for role, side in (("for", found.support), ("against", found.opposition)):
        for number, vote in enumerate(side, 1):
            pixels = data["x_train"][vote.item]
            yield {**shared, **_picture(pixels), **vote._asdict(), "role": role, "place": number}


def _picture(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    height, width = pixels.shape[:2]
    text = base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode()
    return {"height": height, "width": width, "pixels": text}
