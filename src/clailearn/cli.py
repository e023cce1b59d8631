"""Train a model on your pictures or table, and predict with it or with a published one."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clailearn.errors import InputError, legible
from clailearn.model import Model, load
from clailearn.pictures import SUFFIXES, files_below, read_picture
from clailearn.tables import number, rows

FARTHEST = 1e12
"""Standard deviations from the training samples beyond which the squares of a network's numbers may leave float32."""
_ADVICE = "Crop or scale it as the training images were, or name another file"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `clailearn` and return its exit status."""
    parser = argparse.ArgumentParser(prog="clailearn", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    predictions = commands.add_parser(
        "predict", help="labels, probabilities and votes by a model of `clailearn fit`, or a published one"
    )
    predictions.add_argument("model", type=Path, help="its folder, such as results/published/pathmnist/models/clai-m")
    predictions.add_argument("inputs", type=Path, nargs="+", help="pictures, folders, or tables of features")
    predictions.add_argument(
        "--votes",
        type=int,
        default=0,
        metavar="K",
        help="show the K most similar references on each side (default: none)",
    )
    predictions.add_argument("--json", action="store_true", help="print JSON, with the scores of all classes")
    fit = commands.add_parser("fit", help="a model of your own pictures, or of a table of numbers")
    fit.add_argument(
        "source", type=Path, help="a folder with <class>/<file> or <class>/<group>/<file>, or a table, .csv or .csv.gz"
    )
    fit.add_argument("--out", type=Path, required=True, help="folder for the model")
    fit.add_argument("--label", help="column of the classes in a table; all others but that of --group are numbers")
    fit.add_argument("--group", help="column of the groups, such as patients, which are held out whole")
    fit.add_argument(
        "--size", type=int, metavar="N", help="pixels a side to which pictures are resized (default: theirs, or 28)"
    )
    fit.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="decides which part is held out, and the weights at the start (default: 0)",
    )
    options = parser.parse_args(arguments)
    if options.command == "predict" and options.votes < 0:
        predictions.error(f"argument --votes: found {options.votes}, expected a number of references from 0")
    if options.command == "fit" and not 0 <= options.seed < 2**32:
        fit.error(f"argument --seed: found {options.seed}, expected a whole number from 0 to {2**32 - 1}")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if options.command == "fit":
            from clailearn import fit_command  # slow, and predictions need it not

            fit_command.fit(*(getattr(options, key) for key in ("source", "out", "label", "group", "size", "seed")))
            return 0
        entries = predict(options.model, options.inputs, options.votes)
    except (InputError, OSError) as error:  # OSError: a folder that may not be written, a full disk
        parser.exit(1, f"error: {error}\n")
    except ModuleNotFoundError as error:
        parser.exit(1, f"error: {error.name} is not installed; to read pictures, pip install pillow\n")
    sys.stdout.write(json.dumps(entries, indent=1) + "\n" if options.json else "".join(map(_lines, entries)))
    return int(any("error" in entry for entry in entries))


def predict(folder: Path, inputs: Sequence[Path], votes: int) -> list[dict[str, Any]]:
    """Return what a model predicts of each input: input, label, probability, scores and votes; or input and error.

    `main` says what the arguments are. Raises InputError where the model is damaged or takes no such inputs, or where no input
    can be read and has the right size.
    """
    model = load(folder)
    kind, channels = model.inputs.kind, model.inputs.channels
    if kind not in ("images", "features") or (kind == "images" and channels not in (1, 3)):
        images = kind == "images"
        other = f"images with {channels} channels" if images else "signals or recordings, or an estimator"
        raise InputError(
            f"{folder}: found a model of {other}, expected one of pictures or features. Call clailearn.load and give it arrays"
        )
    found: list[tuple[str, NDArray[Any] | InputError]] = []
    for path in inputs:
        for row in _pictures(path, model) if kind == "images" else _features(path, model):
            found.append(row)
            if len(found) % 1000 == 0:
                sys.stderr.write(f"{len(found)} inputs are read\n")
    good = [(name, values) for name, values in found if not isinstance(values, InputError)]
    if not good:
        raise InputError("\n".join(legible(str(error)) for _, error in found) or "found no input, expected some")
    predicted = iter(_entries(model, [name for name, _ in good], np.stack([values for _, values in good]), votes))
    return [
        {"input": name, "error": str(values)} if isinstance(values, InputError) else next(predicted)
        for name, values in found
    ]


def _entries(model: Model, names: Sequence[str], x: NDArray[Any], votes: int) -> list[dict[str, Any]]:
    scores = model.scores(x)
    entries = [
        {
            "input": name,
            "label": model.classes[row.argmax()],
            "probability": float(probability[row.argmax()]),
            "scores": dict(zip(model.classes, row.tolist(), strict=True)),
        }
        for name, probability, row in zip(names, model.probabilities_of(scores), scores, strict=True)
    ]
    if votes:
        for entry, vote in zip(entries, model.votes(x, votes), strict=True):
            entry["votes"] = {
                "for": [reference._asdict() for reference in vote.support],
                "against": [reference._asdict() for reference in vote.opposition],
            }
    return entries


def _lines(entry: dict[str, Any]) -> str:
    lines = [entry.get("error") or f"{entry['input']}: {entry['label']} ({entry['probability']:.3f})"]
    for side, votes in entry.get("votes", {}).items():
        for vote in votes:
            sample = vote["file"] or f"training sample {vote['item']}"
            numbers = "similarity {similarity:+.3f}, vote {vote:+.5f}".format(**vote)
            lines.append(f"  {side:7} {sample}, {vote['label']}: {numbers}")
    return "".join(f"{legible(line)}\n" for line in lines)


def _features(path: Path, model: Model) -> Iterator[tuple[str, NDArray[Any] | InputError]]:
    """Yield place and values, or the error, of each row of a table; a row far from the training samples is one, too."""
    mean, sd, names = np.array(model.inputs.mean), np.array(model.inputs.sd), model.inputs.names
    for place, values in rows(path, names, number):
        if not isinstance(values, InputError) and (distance := np.abs((values - mean) / sd)).max() > FARTHEST:
            furthest = distance.argmax()
            found = f"found {values[furthest]:g}, which is too far from the training samples. Correct or remove the row"
            values = InputError(f"{place}: column '{names[furthest]}': {found}")
        yield place, values


def _pictures(path: Path, model: Model) -> Iterator[tuple[str, NDArray[np.uint8] | InputError]]:
    """Yield name and pixels, or the error, of a picture, or of all pictures below a folder by name."""
    files = [path]
    if path.is_dir():
        found = files_below(path)
        files = [file for file in found if file.suffix.lower() in SUFFIXES]
        if len(files) < len(found):
            others = {file.suffix or file.name for file in found} - {file.suffix for file in files}
            left_out = f"{path}: files left out: {len(found) - len(files)} ({', '.join(sorted(others))})"
            sys.stderr.write(f"{legible(left_out)}\n")
    if not files:
        yield str(path), InputError(f"{path}: found no picture in it, expected {', '.join(SUFFIXES)} files")
    height, width, channels = model.inputs.shape
    for file in files:
        try:
            yield str(file), read_picture(file, (height, width), channels, str(file), _ADVICE, model.inputs.resized)
        except InputError as error:
            yield str(file), error
