"""The command `clailearn fit`: pictures in a folder for each class, or a table of numbers, become a model for `predict`."""

import csv
import gzip
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from clailearn.computation import Inputs, Normalisation
from clailearn.encoders import TRUNKS, build_trunk
from clailearn.errors import InputError, legible
from clailearn.estimator import CLaIClassifier
from clailearn.files import RECORD
from clailearn.fitting import PictureTrunk, logged, validation_split
from clailearn.model import Model
from clailearn.pictures import SUFFIXES, files_below, read_picture, sizes_of
from clailearn.tables import INDEX, counts_rows, number, rows

HELD_OUT, LEAST = 0.2, 5
"""Share of the samples that is held out; the fewest samples of a class, and groups, of which that is at least one."""
STEPS = 300
"""Steps at least of the training on all samples, however few there are."""
LEAST_SIZE, LARGEST_SIZE = TRUNKS["images"]["convnet"], 512
"""Pixels a side that `--size` may ask for."""
SIZE, LARGEST_COMMON = 28, 64
"""Pixels a side to which pictures are resized, unless all have one size up to the second."""
ENCODER = {"trunk": "convnet", "width": 16}
"""The trunk of pictures."""
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation"}


class Given(NamedTuple):
    """What a user gave.

    Attributes:
        x: samples (N, ...).
        labels, groups: of the samples (N,).
        places: file, or file and row, of each sample (N,).
        inputs: what a model takes, without statistics.
        form: the same in words.
    """

    x: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    places: NDArray[Any]
    inputs: Inputs
    form: str


class _Bar(logging.Handler):
    """Draws the epochs of a training on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        epoch, epochs, figures, _ = record.args  # type: ignore[misc]
        if sys.stderr.isatty() or epoch == epochs:
            bar = "#" * (30 * epoch // epochs)  # type: ignore[operator]
            end = "\n" if epoch == epochs else ""
            sys.stderr.write(f"\r[{bar:30}] epoch {epoch} of {epochs}, {str(figures).split('  ')[0]:12}{end}")


def fit(source: Path, out: Path, label: str | None, group: str | None, size: int | None, seed: int) -> None:
    """Hold out a part of the samples, train on the rest, write the model, and print how good it is on that part.

    `cli.main` says what the arguments are. Raises InputError for a file, a row or a column that does not serve, and for too few
    samples.
    """
    # A shell leaves the tilde of --out=~/model as it is.
    source, out = Path(os.path.expanduser(source)), Path(os.path.expanduser(out))
    if not source.exists():
        raise InputError(f"{source}: found nothing there, expected a folder of pictures or a table. Correct the path")
    if (out / RECORD).exists() or out.resolve().is_relative_to(source.resolve()):
        raise InputError(
            f"{out}: found a model, or a folder of the pictures, expected a new folder as --out. Name another"
        )
    wrong = size is not None and (label or not LEAST_SIZE <= size <= LARGEST_SIZE)
    if wrong or source.is_dir() == bool(label) or (group and not label):
        raise InputError(
            f"{source}: found --label {label}, --group {group}, --size {size}; expected --label and perhaps --group for a table, "
            f"perhaps --size from {LEAST_SIZE} to {LARGEST_SIZE} for a folder of pictures. Correct them, or the path"
        )
    given = _table(source, label, group) if label else _pictures(source, size)
    classes, y, counts = np.unique(given.labels, return_inverse=True, return_counts=True)
    groups = set() if given.groups is None else set(given.groups)
    if len(classes) < 2 or counts.min() < LEAST or 0 < len(groups) < LEAST:
        raise InputError(
            f"{source}: found {len(classes)} classes, {counts.min()} samples of '{classes[counts.argmin()]}', {len(groups)} "
            f"groups; expected at least 2 classes, {LEAST} samples of each, and no groups or {LEAST}. Add samples, leave classes "
            "out, or name another column"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        out.mkdir(parents=True, exist_ok=True)
        train, held = validation_split(HELD_OUT, given.labels, given.groups, seed)
        whole = "" if given.groups is None else f" in {len(set(given.groups[held]))} whole groups"
        found = legible(f"{source}: {len(y)} samples of {len(classes)} classes; {given.form}")
        sys.stderr.write(
            f"{found}\n{len(held)} held out{whole} by seed {seed}, {len(train)} to train on, twice: half of them for the "
            f"probabilities, all for the model; device {device}\n"
        )
        model = _learned(given, train, seed, device)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error
    figures = {
        "samples": len(held),
        "accuracy": float((model.predict(given.x[held]) == given.labels[held]).mean()),
        "log_loss": float(log_loss(y[held], model.probabilities(given.x[held]), labels=range(len(classes)))),
        "accuracy_of_majority": float((y[held] == np.bincount(y[train]).argmax()).mean()),
        "seed": seed,
    }
    replace(model, record={"held_out": figures}).save(out)
    sys.stdout.write(
        "{samples} samples held out: accuracy {accuracy:.1%}, log loss {log_loss:.3f}; the most frequent class for all: accuracy "
        "{accuracy_of_majority:.1%}\n".format(**figures)
        + f"{out} holds the model. Next:\n    clailearn predict {shlex.quote(str(out))} "
        f"{shlex.quote(str(source if label else given.places[held[0]]))} --votes 3\n"
    )


def _pictures(folder: Path, size: int | None) -> Given:
    """Read the pictures of a folder, <class>/<file>; the first folders below classes, of one name in any class, are groups."""
    found = files_below(folder)
    files = [file for file in found if file.suffix.lower() in SUFFIXES and file.parent != folder]
    parts = [file.relative_to(folder).parts for file in files]
    classes = sorted({part[0] for part in parts})
    if SPLITS.issuperset(map(str.lower, classes)):
        raise InputError(
            f"{folder}: found {f'folders of splits, {classes}' if classes else 'no picture in a folder'}, expected "
            f"<class>/<file> with {', '.join(SUFFIXES)} files. Move the pictures, or name a folder in it"
        )
    if len(files) < len(found):
        sys.stderr.write(f"{folder}: left out, as no pictures of a class: {len(found) - len(files)} files\n")
    common, shape = sizes_of(files), (size or SIZE, size or SIZE)
    if not size and len(common) == 1 and all(LEAST_SIZE <= side <= LARGEST_COMMON for side in min(common)):
        shape = min(common)
    x = np.stack([read_picture(file, shape, 3, str(file), "Replace or remove the file", resize=True) for file in files])
    groups = None
    if any(len(part) > 2 for part in parts):
        groups = np.array([part[1] if len(part) > 2 else "/".join(part) for part in parts])
    form = f"each scaled to cover {shape[1]} x {shape[0]} pixels, its middle kept"
    places = np.array([*map(str, files)])
    return Given(x, np.array([part[0] for part in parts]), groups, places, Inputs("images", x.shape[1:]), form)


def _table(path: Path, label: str, group: str | None) -> Given:
    """Read a table, whose columns are features, except for those of labels and groups."""
    texts = [label, group] if group else [label]
    y, _ = _whole(rows(path, texts, _text))  # which refuses what cannot be read
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file))
    names = [name for name in header if name not in texts]
    if label == group or not names or not all(names):
        raise InputError(
            f"{path}: found the columns {header}, expected {' and '.join(texts)}, and others with a name for the numbers. "
            "Correct the header (pandas: to_csv(..., index=False))"
        )
    features, places = _whole(rows(path, names, _feature))
    numbering = [n for n, x in zip(names, features.T, strict=True) if INDEX.fullmatch(n) or counts_rows(x)]
    if numbering:
        raise InputError(
            f"{path}: found {', '.join(numbering)}, an index or identifier, expected features. Leave it out of the table "
            "(pandas: to_csv(..., index=False))"
        )
    form = f"{len(names)} columns of numbers: {', '.join(names[:5])}{', ...' * (len(names) > 5)}"
    return Given(
        features, y[:, 0], y[:, 1] if group else None, places, Inputs("features", features.shape[1:], names), form
    )


def _whole(table: Iterator[tuple[str, Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return values and places of all rows of a table; raise the first error among them."""
    places, values = zip(*table, strict=True)
    if error := next((row for row in values if isinstance(row, InputError)), None):
        raise error
    return np.stack(values), np.array(places)


def _feature(text: str, place: str) -> float:
    try:
        return number(text, place)
    except InputError as error:
        raise InputError(f"{error}, or remove the column") from None


def _text(text: str, place: str) -> str:
    if not text.strip():
        raise InputError(f"{place}: found nothing, expected a class or a group. Fill it in, or remove the row")
    return text.strip()


def _learned(given: Given, train: NDArray[np.int64], seed: int, device: str) -> Model:
    """Return the model of the samples `train`; it takes samples as they were given."""
    x, images, classes = given.x, given.inputs.kind == "images", len(set(given.labels))
    drawn = np.random.default_rng(seed).permutation(train)[: max(10, 5_000_000 // x[0].size)]  # statistics take memory
    some = x[drawn] if images else x[train]
    axes = (0, 1, 2) if images else 0
    sd = np.where(np.ptp(some, axes) > 0, some.std(axes), 1)
    inputs = replace(given.inputs, mean=some.mean(axes).tolist(), sd=sd.tolist(), resized=images)
    normalised, trunk = Normalisation(inputs.kind, inputs.mean, inputs.sd), None
    if images:
        torch.manual_seed(seed)
        network: Any = build_trunk(ENCODER, inputs.channels)
        network.whiten(normalised(torch.from_numpy(some)).permute(0, 3, 1, 2))
        trunk = PictureTrunk(network, normalised.mean, normalised.sd)
    batch = min(128, 16 * classes, len(train) // 2)
    estimator = CLaIClassifier(
        trunk=trunk,
        epochs=max(10, -(-STEPS // (len(train) // batch // 2))),
        batch_size=batch,
        max_references=max(2000, 4 * classes),
        precision="float32",
        device=device,
        random_state=seed,
    )
    chosen = x[train] if images else normalised(torch.from_numpy(x[train])).numpy()
    with logged(_Bar()):
        groups = None if given.groups is None else given.groups[train]
        estimator.fit(chosen, given.labels[train], groups=groups)
    if estimator.calibration_ is None:
        names, counts = np.unique(given.labels[train], return_counts=True)
        raise InputError(
            f"class {names[counts.argmin()]}: found {counts.min()} samples to train on, expected more, in two groups at least, "
            "for calibrated probabilities. Add samples of it, or hold out others by another --seed"
        )
    model: Any = estimator.model_
    settings = model.settings
    if images:
        model.network.trunk = model.network.trunk.trunk
        settings = {**settings, "encoder": ENCODER}
    files = given.places[train[model.references.item.numpy()]].tolist()
    return replace(model, inputs=inputs, references=model.references._replace(files=files), settings=settings)
