"""A trained model: `fit` of the estimator makes one, a run is published as one, `load` reads both.

A folder holds it (`clailearn.files`), and is read without trust.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from clailearn import files, kernels
from clailearn.calibration import TEMPERATURES, Calibration, LogisticCalibration, calibrated
from clailearn.computation import BLOCK, Computation, Inputs, fresh_modes
from clailearn.encoders import TRUNKS, Classifier, Encoder, build_classifier, build_encoder, move
from clailearn.errors import InputError
from clailearn.inference import RULES, class_scores, mean_of_views, parzen_means, scores_by
from clailearn.kernels import KERNELS, Kernel
from clailearn.votes import References, Votes, strongest_votes

REFERENCES = ("reference.z", "reference.y", "reference.item")
"""Tensors of the references: embeddings (K, R, L), class indices (R,) and positions in the training data (R,)."""
FORMAT = 3
"""Of records; another one means other things by the same keys, or has no checksum of itself."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model with what it takes to use it.

    Inputs x are arrays, by `inputs.kind`:

    * images: (N, height, width, channels) uint8;
    * features: (N, features), in the units of the table that the model was trained on, or a data frame with their names;
    * signals: (N, channels, samples), in the units of the training data;
    * recordings: (hours, inputs), one recording, as `recordings.hourly_inputs` gives it with the statistics of `inputs`;
    * samples: (N, ...), as the estimator was fitted.

    Every method raises InputError for an array of another shape or type, and for a number that is not finite.

    Attributes:
        network: gives embeddings (K, N, L), or, a classifier, logits (N, C).
        kernel, references: what votes; None of a classifier.
        calibration: maps scores to probabilities.
        inputs: what the model takes.
        classes: the labels (C,), in the order of scores.
        settings: of the network and the vote: embedding_size, encoder, kernel, conditioning, rule, precision.
        record: what else `model.json` says; of a published model its run and data, of an estimator its parameters.
        device: where the model computes.
    """

    network: Encoder | Classifier
    kernel: Kernel | None
    references: References | None
    calibration: Calibration
    inputs: Inputs
    classes: list[Any]
    settings: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def computation(self) -> Computation:
        """Return where and how the model computes."""
        return Computation(self.device, self.settings["precision"])

    @property
    def module(self) -> nn.Module:
        """Return the network, with the kernel if there is one, as one module."""
        return self.network if self.kernel is None else nn.ModuleList([self.network, self.kernel])

    @property
    def log_odds(self) -> bool:
        """Return whether scores are logarithms of posteriors by votes, and of two classes of their odds."""
        return self.kernel is not None and self.settings["rule"] == "parzen"

    def scores(self, x: ArrayLike) -> Floats:
        """Return scores (N, C), the largest for the predicted class.

        They are f of the model's rule, of two classes -f and f; by the rule `parzen` logarithms of posteriors, of two classes
        the log odds of each. A classifier has logits; of two classes the log odds of each.
        """
        with self.computation.modes():
            return self._scores(self.outputs(x))

    def probabilities(self, x: ArrayLike) -> Floats:
        """Return probabilities of the classes, (N, C), as fitted on validation samples."""
        return self.probabilities_of(self.scores(x))

    def probabilities_of(self, scores: Floats) -> Floats:
        """Return the probabilities that belong to scores, (N, C) -> (N, C)."""
        return calibrated(scores, self.calibration, log_odds=self.log_odds)

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Return the predicted classes, (N,)."""
        return np.asarray(self.classes)[self.scores(x).argmax(1)]

    def votes(self, x: ArrayLike, k: int = 5) -> list[Votes]:
        """Return the k most similar references for and against the predicted class of each input.

        Raises InputError, too, for a model without references, and for k that is no whole number from 1.
        """
        if not isinstance(k, Integral) or k < 1:
            raise InputError(f"k is {k!r}, expected a whole number of references from 1. Correct it.")
        if self.kernel is None or self.references is None:
            raise InputError(
                f"found a model without references, expected one of Collaborative Learning (a kernel of {', '.join(KERNELS)}), "
                "whose references vote. Load such a model."
            )
        with self.computation.modes():
            views = self.outputs(x)
            scores = self._scores(views)
            return list(
                strongest_votes(self.kernel, views, self.references, scores, self.classes, self.settings["rule"], k)
            )

    def outputs(self, x: ArrayLike) -> list[Tensor]:
        """Return embeddings (K, N, L), or logits (N, C), of each view of the inputs: one, or with `inputs.mirror` two."""
        self.network.eval()
        blocks = []
        with self.computation.modes(), self.computation.rounding():
            for block in self.inputs.blocks(x, self.computation):
                views = [block, block.flip(-1)] if self.inputs.mirror else [block]
                blocks.append([self.network(view) for view in views])
        dim = 1 if isinstance(self.network, Encoder) else 0
        return [_finite(torch.cat(view, dim), "an output of the network") for view in zip(*blocks, strict=True)]

    def _scores(self, outputs: Sequence[Tensor]) -> Floats:
        """Return scores by the outputs for each view; raise InputError for one that is not finite."""
        if self.kernel is None or self.references is None:
            logits = torch.stack(list(outputs)).mean(0).double()
            scores = logits if logits.shape[1] > 2 else class_scores((logits[:, 1] - logits[:, 0])[None])
        else:
            block = BLOCK if self.device == "cpu" else None
            references = self.references.z, self.references.y, self.references.population, block, len(self.classes)
            means = [parzen_means(self.kernel, z, *references) for z in outputs]
            scores = scores_by(mean_of_views(*means), self.settings["rule"])
        return _finite(scores, "a score").double().cpu().numpy()

    def save(self, folder: str | Path, half: torch.dtype | None = None) -> dict[str, Any]:
        """Write the model into a folder, and return what its `model.json` says; raise InputError for what `load` would refuse.

        half: type of the weights of the trunk's layers in the file; embeddings of references are then float16. None: as they are.
        """
        tensors, references = self.module.state_dict(), self.references
        if half is not None:
            layers = {p.data_ptr() for p in self.network.trunk.parameters() if p.ndim > 1}
            tensors = {name: t.to(half) if t.data_ptr() in layers else t for name, t in tensors.items()}
        calibration = self.calibration
        record = {
            **self.record,
            "format": FORMAT,
            "classes": self.classes,
            "input": vars(self.inputs),
            "settings": self.settings,
            "calibration": {} if calibration is None else {"temperature": calibration},
            "population": [],
        }
        if isinstance(calibration, LogisticCalibration):
            record["calibration"] = dict(vars(calibration))
        if references is not None:
            z = references.z if half is None else references.z.half()
            tensors |= dict(zip(REFERENCES, (z, references.y, references.item), strict=True))
            record["population"] = references.population.tolist()
        checks = _CHECKS | _further_checks(record, self.inputs)
        if references is not None and references.files:
            record["reference_files"] = list(references.files)
            checks |= _names_of(references)
        return files.write_model(Path(os.path.expanduser(folder)), record, tensors, checks)


def _finite(numbers: Tensor, what: str) -> Tensor:
    if not numbers.isfinite().all():  # of damaged weights, or an input far away
        raise InputError(
            f"found {what} that is not finite, expected finite ones. Check x against the training samples, and {files.WEIGHTS} "
            "against the published one."
        )
    return numbers


def build_network(
    settings: Mapping[str, Any], inputs: Inputs, classes: int, seed: int, own: nn.Module | None = None
) -> tuple[Encoder | Classifier, Kernel | None]:
    """Build an untrained network and its kernel, initialised from the seed; a model without a kernel is a classifier.

    own: a trunk of one's own, which the network holds a copy of.
    """
    if settings["kernel"] is None:
        return build_classifier(settings, inputs.channels, classes, seed), None
    conditions = 1 if classes == 2 or settings["conditioning"] is None else classes
    encoder = build_encoder(settings, inputs.channels, conditions, seed, own)
    kernel = kernels.build(settings["kernel"]["name"], settings["embedding_size"], settings["kernel"]["metric"])
    return encoder, kernel


def _are_labels(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2 or {*map(type, value)} not in ({bool}, {int}, {float}, {str}):
        return False
    holds = files.TEXT.holds if isinstance(value[0], str) else files.number(-(2**53), 2**53).holds
    return len({*value}) == len(value) and all(isinstance(label, bool) or holds(label) for label in value)


def _is_kernel(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    return value.get("name") in list(KERNELS) and value.get("metric") in ("full", "identity")


# The bounds keep a hostile record from asking for a network that takes hours to build.
_CHECKS: dict[str, files.Check] = {
    "format": files.one_of(FORMAT),
    "classes": files.Check("a list of at least two labels of one type, each once", _are_labels),
    "input.kind": files.one_of(*TRUNKS, "samples"),
    "input.shape": files.list_of(files.integer(2**31), 3, 0),
    "input.names": files.list_of(files.TEXT, 2**31, 0),
    "input.mean": files.list_of(files.ANY_NUMBER, 65536, 0),
    "input.sd": files.list_of(files.POSITIVE, 65536, 0),
    "input.mirror": files.SWITCH,
    "input.resized": files.optional(files.SWITCH),
    "input.variables": files.optional(files.list_of(files.TEXT, 65536, 0)),
    "settings.embedding_size": files.integer(4096),
    "settings.encoder": files.MAPPING,
    "settings.encoder.width": files.optional(files.integer(65536)),
    "settings.encoder.blocks": files.optional(files.list_of(files.integer(16), 8, 0)),
    "settings.encoder.pool": files.optional(files.SWITCH),
    "settings.encoder.layers": files.optional(files.integer(16)),
    "settings.encoder.dropout": files.optional(files.number(0, 1)),
    "settings.kernel": files.Check(f"nothing, or one of {', '.join(KERNELS)} as name, with a metric", _is_kernel),
    "settings.conditioning": files.optional(files.one_of("class")),
    "settings.rule": files.one_of(*RULES),
    "settings.precision": files.one_of("bfloat16", "float32", "float64"),
    "calibration": files.MAPPING,
    "sha256": files.SHA256,
    files.OF_RECORD: files.SHA256,
}


def _further_checks(record: Mapping[str, Any], inputs: Inputs) -> dict[str, files.Check]:
    """Return the rules that follow from the kind of inputs, the kernel and the classes."""
    own, classes = record["settings"]["encoder"].get("trunk") == "own", len(record["classes"])
    voters = 0 if record["settings"]["kernel"] is None else classes
    dimensions = 0 if own else {"images": 3, "signals": 2}.get(inputs.kind, 1)
    rules = {
        "input.shape": files.list_of(
            files.integer(2**31 if inputs.kind in ("samples", "signals") else 65536), dimensions, dimensions
        ),
        "settings.encoder.trunk": files.one_of(*TRUNKS.get(inputs.kind, ("mlp", "own"))),
        "settings.encoder.name": files.TEXT if own else files.optional(files.TEXT),
        "population": files.list_of(files.integer(2**40), voters, voters),
    }
    if inputs.kind not in ("recordings", "samples"):
        rules |= {
            "input.mean": files.list_of(files.ANY_NUMBER, inputs.channels, inputs.channels),
            "input.sd": files.list_of(files.POSITIVE, inputs.channels, inputs.channels),
        }
    if inputs.kind != "images":
        rules |= {"input.mirror": files.one_of(False), "input.resized": files.one_of(False, None)}
    calibrated = record["calibration"] or not voters or inputs.kind != "samples"  # an estimator may go without
    log_odds = voters and record["settings"]["rule"] == "parzen"
    if calibrated and (classes > 2 or log_odds):
        rules["calibration.temperature"] = files.number(*TEMPERATURES)
    elif calibrated:
        rules |= {f"calibration.{key}": files.number(-1e12, 1e12) for key in ("slope", "intercept")}
    return rules


def _names_of(references: References) -> dict[str, files.Check]:
    return {"reference_files": files.list_of(files.TEXT, len(references.y), len(references.y))}


def record_of(folder: str | Path) -> Path:
    """Return the path of the record of a model, by its folder or one of its files."""
    folder = Path(os.path.expanduser(folder))
    return folder.with_name(files.RECORD) if folder.is_file() else folder / files.RECORD


@fresh_modes("cpu")
def load(folder: str | Path, trunk: nn.Module | None = None) -> Model:
    """Read a model as `clailearn.load` does, but what an estimator has learned without the estimator."""
    path = record_of(folder)
    weights, record = path.with_name(files.WEIGHTS), files.read_json(path)
    if isinstance(record, dict) and record.get("format") in (1, 2):
        raise InputError(
            f"{path}: found format {record['format']}, of an earlier version, expected {FORMAT}. Take a published model anew "
            "from the repository; fit an estimator again and save it."
        )
    files.expect(path, record, _CHECKS)
    record["settings"] = {"kernel": None, "conditioning": None, **record["settings"]}
    given = {f.name: record["input"][f.name] for f in fields(Inputs) if record["input"].get(f.name) is not None}
    inputs, settings, classes = Inputs(**given), record["settings"], record["classes"]
    files.expect(path, record, _further_checks(record, inputs))
    if (found := files.checksum_of_record(record)) != record[files.OF_RECORD]:
        raise InputError(
            f"{path}: found entries with the sha256 {found}, expected {record[files.OF_RECORD]}, as {files.OF_RECORD} has it: "
            f"one of them was changed. {files.ADVICE}"
        )
    _refuse_other_trunk(path, settings["encoder"], trunk)
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # shapes without numbers take no memory
            network, kernel = build_network(settings, inputs, len(classes), 0, trunk)
    except (KeyError, TypeError) as error:  # of what the trunk needs
        raise InputError(
            f"{path}: found no {error} in settings.encoder, expected what the trunk needs. {files.ADVICE}"
        ) from None
    tensors, fitted = files.load_tensors(weights, record["sha256"]), record["calibration"]
    dtype, references = Computation("cpu", settings["precision"]).dtype, None
    if isinstance(network, Encoder):
        conditions, _, size = network.head.weight.shape
        references = checked_references(weights, tensors, (conditions, size), dtype, record["population"])
        if "reference_files" in record:
            files.expect(path, record, _names_of(references))
        references = references._replace(files=record.get("reference_files", []))
    calibration: Calibration = None
    if "slope" in fitted:
        calibration = LogisticCalibration(fitted["slope"], fitted["intercept"])
    elif fitted:
        calibration = float(fitted["temperature"])
    known = {*(key.partition(".")[0] for key in _CHECKS), "population", "reference_files"}
    rest = {key: value for key, value in record.items() if key not in known}
    made = Model(network, kernel, references, calibration, inputs, classes, settings, rest)
    halves = (torch.bfloat16, torch.float16)
    module = made.module.to(dtype)
    files.fill_module(module, {name: t.to(dtype) if t.dtype in halves else t for name, t in tensors.items()}, weights)
    module.requires_grad_(False).eval()
    if trunk is None:
        move(module, torch.device("cpu"))
    else:
        module.cpu()
    return made


def _refuse_other_trunk(path: Path, encoder: Mapping[str, Any], trunk: nn.Module | None) -> None:
    own = encoder["trunk"] == "own"
    if own and getattr(trunk, "features", None) is None:
        raise InputError(
            f"{path}: found a saved estimator that needs a {encoder['name']} as the argument trunk, with its attribute features. "
            "Load it so"
        )
    if not own and trunk is not None:
        raise InputError(f"{path}: found a model that needs no argument trunk. Load it so")


def checked_references(
    path: Path, tensors: dict[str, Tensor], shape: tuple[int, int], dtype: torch.dtype, population: Sequence[int]
) -> References:
    """Return the references of a file; raise InputError unless they are embeddings with classes and positions that fit.

    Args:
        tensors: those of the file, of which this takes `REFERENCES` away.
        shape: conditions K and embedding size L.
        dtype: of the embeddings as they are used; in the file they may be float16.
        population: members of each class (C,), for whom its references stand.
    """
    z, y, item = (tensors.pop(name, torch.empty(0)) for name in REFERENCES)
    fits = z.ndim == 3 and z.dtype in (torch.float16, dtype) and (len(z), z.shape[2]) == shape
    fits = fits and all((t.dtype, t.shape) == (torch.int64, z.shape[1:2]) for t in (y, item))
    if fits and len(y) > 0 and int(y.min()) >= 0 and int(y.max()) < len(population) and int(item.min()) >= 0:
        counts, members = torch.bincount(y, minlength=len(population)), torch.tensor(population)
        if bool((counts > 0).all()) and bool((counts <= members).all()):
            return References(z.to(dtype), y, item, members)
    found = {name: (t.dtype, *t.shape) for name, t in zip(REFERENCES, (z, y, item), strict=True)}
    raise InputError(
        f"{path}: found the references {found}, expected {dtype} embeddings ({shape[0]}, references, {shape[1]}) with int64 "
        f"classes, below {len(population)}, and positions; every class has some, none more than the record says. {files.ADVICE}"
    )
