"""Predictions of a published model for files: the command `clai predict`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clai.errors import InputError
from replication.datasets.image_folder import SUFFIXES
from replication.experiments.published_model import PublishedModel, Vote, load

# Images that are in memory at a time.
_BLOCK = 512


def predict(folder: Path, inputs: Sequence[Path], votes: int, as_json: bool) -> str:
    """Return the predictions of a published model as text, a line an input and below it its votes, or as JSON.

    Args:
        folder: of the model.
        inputs: images and folders of images, or tables of features, .csv, .csv.gz or .parquet.
        votes: references to show for and against each prediction; 0: none.
        as_json: a list of objects with input, label, probability, scores and votes.

    Raises:
        InputError: the model is damaged or takes no such inputs; or an input is missing, is damaged or has another size.
    """
    model = load(folder)
    kind = model.record["data"]["kind"]
    if kind not in ("images", "features"):
        raise InputError(
            f"{folder}: found a model of {kind}, expected one of images or features. Call clai.load and give it arrays"
        )
    entries: list[dict[str, Any]] = []
    for names, x in _images(model, inputs) if kind == "images" else _tables(model, inputs):
        entries += _entries(model, names, x, votes)
    return json.dumps(entries, indent=1) + "\n" if as_json else "".join(_lines(entry) for entry in entries)


def _entries(model: PublishedModel, names: Sequence[str], x: NDArray[Any], votes: int) -> list[dict[str, Any]]:
    scores = model.scores(x)
    probabilities, labels = model.calibrated(scores), model.decided(scores)
    by_class = scores if scores.ndim > 1 else np.stack([-scores, scores], axis=1)
    entries = [
        {
            "input": name,
            "label": str(label),
            "probability": float(probability[model.classes.index(label)]),
            "scores": dict(zip(model.classes, row.tolist(), strict=True)),
        }
        for name, label, probability, row in zip(names, labels, probabilities, by_class, strict=True)
    ]
    if votes:
        for entry, vote in zip(entries, model.votes(x, votes), strict=True):
            entry["votes"] = {
                "for": [reference._asdict() for reference in vote.support],
                "against": [reference._asdict() for reference in vote.opposition],
            }
    return entries


def _lines(entry: dict[str, Any]) -> str:
    text = f"{entry['input']}: {entry['label']} ({entry['probability']:.3f})\n"
    for side, references in entry.get("votes", {}).items():
        for reference in (Vote(**values) for values in references):
            text += (
                f"  {side:7} training sample {reference.item}, {reference.label}: similarity {reference.similarity:+.3f}, "
                f"vote {reference.vote:+.5f}\n"
            )
    return text


def _images(model: PublishedModel, inputs: Sequence[Path]) -> Any:
    """Yield names and pixels (N, height, width, channels) of images in blocks."""
    height, width, channels = model.record["input"]["shape"]
    files = [file for path in inputs for file in _files(path)]
    for start in range(0, len(files), _BLOCK):
        block = files[start : start + _BLOCK]
        yield [str(file) for file in block], np.stack([_pixels(file, height, width, channels) for file in block])


def _files(path: Path) -> list[Path]:
    """Return a file, or the images directly in a folder by name."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(f"{path}: found no image in it, expected {', '.join(SUFFIXES)} files. Name another folder")
    return files


def _pixels(file: Path, height: int, width: int, channels: int) -> NDArray[np.uint8]:
    """Return the pixels of an image file, uint8 (height, width, channels)."""
    from PIL import Image

    advice = "Crop or scale it as the training images were, or name another file"
    try:
        # Of the other formats that Pillow reads, some start a program.
        with Image.open(file, formats=sorted(set(SUFFIXES.values()))) as image:
            if image.size != (width, height):
                raise InputError(
                    f"{file}: found an image of {image.size[0]} x {image.size[1]} pixels, expected {width} x {height}. {advice}"
                )
            pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
            return pixels.reshape(height, width, channels)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # A damaged image can raise almost any error.
        raise InputError(f"{file}: cannot be read as an image ({error}), expected one. {advice}") from error


def _tables(model: PublishedModel, inputs: Sequence[Path]) -> Any:
    """Yield names and features (N, features) of the rows of each table, whose header names the features in any order."""
    from replication.datasets.feature_table import columns_of, first_row, read_table

    names = model.record["input"]["names"]
    for path in inputs:
        given = columns_of(path)
        if missing := [name for name in names if name not in given]:
            raise InputError(
                f"{path}: found no column {', '.join(missing[:5])}, expected {', '.join(names)}. Give the columns these names"
            )
        x = read_table(path, names, texts=[])[names].to_numpy(dtype=np.float32)
        yield [f"{path}:{number + first_row(path)}" for number in range(len(x))], x
