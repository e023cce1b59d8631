"""Pack a trained model for publication, evaluate a packed one on prepared data, and picture its votes (figure S1)."""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.nn.utils.parametrize import is_parametrized, remove_parametrizations

from clailearn.calibration import fit_calibration
from clailearn.computation import Inputs
from clailearn.encoders import move
from clailearn.errors import InputError
from clailearn.files import WEIGHTS, load_tensors
from clailearn.inference import sample_references
from clailearn.model import REFERENCES, Model, load
from clailearn.votes import References
from replication.datasets.prepared import Prepared, normalisation
from replication.datasets.recordings import hourly_names
from replication.experiments import evaluation
from replication.experiments.evaluation import Scored, evaluate_scores, votes_of
from replication.models.base import Network, create
from replication.models.clai import CLaI
from replication.models.embedding import Embedded
from replication.models.items import NO_AUGMENTATION, drawn_rows, recording_rows
from replication.models.run import Run
from replication.runs.run import COLUMNS, DESCRIPTION, RunId, checksums, gather

KEPT_REFERENCES = 400
"""Training samples that vote in a published model, as many of each class, weighted by its share."""
IMAGES = 2
"""Test images that are classified rightly, and as many that are not."""
SHOWN_REFERENCES = 5
"""References for the predicted class, and as many against it."""
_DATA = ("dataset", "title", "version", "licence", "source", "miniature")


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
    if shift := run.image_setting("shift"):
        raise InputError(f"inference.shift: found {shift}, expected 0, as packed models see no shifted images")
    kept = None
    if isinstance(model, CLaI):
        assert embedded is not None
        kept, test, val = _voted(run, model, embedded, references)
        if is_parametrized(model.network.head, "weight"):  # orthonormal: the file holds the weight itself
            remove_parametrizations(model.network.head, "weight")
    else:
        test, val = (Scored(model.scores(run, part), part.labels.numpy()) for part in (run.splits.test, run.splits.val))
    found = evaluate_scores(run, test, val, voted=kept is not None).metrics
    scores = val.score if val.score.ndim == 2 else np.stack([-val.score, val.score], axis=1)
    info, settings = run.data.info, run.settings
    published = Model(
        network=model.network,
        kernel=model.kernel if isinstance(model, CLaI) else None,
        references=kept,
        calibration=fit_calibration(scores, val.y),
        inputs=_inputs(run),
        classes=info["classes"],
        settings={
            "embedding_size": settings["embedding_size"],
            "encoder": dict(settings["encoder"]),
            "kernel": {**settings["kernel"], "name": model.kernel.name} if isinstance(model, CLaI) else None,
            "conditioning": "class",
            "rule": "printed",
            "precision": run.training.precision,
        },
        record={
            "run": str(run.id),
            "model": run.model,
            "data": {key: info[key] for key in _DATA},
            "metrics": {"run": dict(metrics), "published": found.set_index("metric")["value"].to_dict()},
            "record": dict(record),
        },
    )
    return published.save(folder, half=torch.bfloat16 if run.training.precision == "bfloat16" else torch.float16)


def _voted(
    run: Run, model: CLaI, embedded: Mapping[str, Embedded], references: int
) -> tuple[References, Scored, Scored]:
    """Return a sample of the references, rounded, and the scores of test and of validation samples by their votes."""
    train, data = embedded["train"], run.data
    items, population = sample_references(train.y, references, run.id.seed)
    rounded = train._replace(z=train.z.half().float())
    if data.info["kind"] == "recordings":
        rows: Any = np.flatnonzero(recording_rows(data, run.settings, run.id)[0])
    else:
        rows = drawn_rows(run.settings, run.id, len(data["y_train"]))
    place = items if rows is None else torch.from_numpy(rows)[items]
    files = [str(name) for name in data["files_train"][place]] if "files_train" in data.arrays else []
    kept = References(rounded.z[:, items], train.y[items], place, population, files)
    return kept, *votes_of(run, model, {**embedded, "train": rounded}, references)


def _inputs(run: Run) -> Inputs:
    """Return what the model takes; for recordings with the statistics of the variables before `hourly_inputs`."""
    info, settings = run.data.info, run.settings
    kind, variables = info["kind"], info.get("variables", [])
    if kind == "recordings":
        train = recording_rows(run.data, settings, run.id)[0]
        found = normalisation(run.data["x_all"][train], kind, variables, f"training data of {run.id}")
        names = list(hourly_names(variables))
        return Inputs(kind, [len(names)], names, found["mean"], found["sd"], variables=variables)
    separately = kind != "features" and settings["normalise_test_separately"]
    statistics = info["normalisation"]["test" if separately else "train"]
    names = list(variables or info.get("channels", []))
    shape = list(run.data["x_test"].shape[1:])
    means, sds, mirror = statistics["mean"], statistics["sd"], run.image_setting("mirror")
    return Inputs(kind, shape, names, means, sds, mirror, resized=info.get("resized", False))


def evaluate(folder: str | Path, prepared: str | Path) -> pd.DataFrame:
    """Evaluate a published model on the test samples of prepared data, as its run was evaluated.

    All references of the run vote: the training samples are embedded again, so that the metrics are those of the run and not of
    the references that the model keeps. Where the machine computes the run's bfloat16 only by emulation, the trunk works in
    float32; predictions near a border may then differ. Returns the columns of `metrics.csv`. Raises InputError for a damaged
    model, or other data than those that it was trained on.
    """
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
    move(published.network, run.device)
    parts = [published.network] if published.kernel is None else [published.network, published.kernel]
    model = create(run.model).around(*parts)
    return gather({str(run.id): evaluation.evaluate(run, model)[0].metrics}, COLUMNS["metrics.csv"])


def keeps_weights(folder: str | Path) -> bool:
    """Return whether the weights compute what those of the run did: not where they are rounded to float16."""
    tensors = load_tensors(Path(folder) / WEIGHTS)
    return all(tensor.dtype != torch.float16 for name, tensor in tensors.items() if name not in REFERENCES)


def vote_pictures(model: Model, data: Prepared, seed: int) -> pd.DataFrame:
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


def _rows(model: Model, data: Prepared, image: int) -> Iterator[dict[str, Any]]:
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
