"""A published model: read without trust, it gives labels, scores, probabilities and the references that vote for an input.

A folder holds it: `model.json` says what the weights are and how an input must look, `model.safetensors` has the weights and, for
a model of Collaborative Learning, its references. Neither format holds code. `clai.load` reads the folder, and
`replication.experiments.published` writes it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from clai.calibration import LogisticCalibration, scaled_softmax
from clai.encoders import Classifier, Hourly
from clai.errors import InputError
from clai.inference import ParzenMeans, decide, mean_of_views, parzen_means
from clai.trainer import precision_context
from replication.models.embedding import place
from replication.models.tensors import load_tensors
from replication.models.training import Trained, build_clai, build_classifier
from replication.runs.models import CLAI

RECORD, WEIGHTS = "model.json", "model.safetensors"
"""Files of a published model that `load` reads."""
FORMAT = 1
"""Of `model.json`; a later one may mean other things by the same keys."""
REFERENCES = ("reference.z", "reference.y", "reference.item")
"""Tensors of the references: embeddings (K, R, L) float16, class indices (R,) and positions in the training data (R,) int64."""
LARGEST_RECORD = 2**20
"""Largest size of a `model.json`, in bytes."""

# Samples whose output is computed at once; as in `replication.models.embedding`, since rounding may depend on it.
_BLOCK = 512
_ADVICE = "Restore the folder of the model as it was published."

Floats = NDArray[np.float64]


def _integer(most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


_NUMBER = {"type": "number", "minimum": -1e30, "maximum": 1e30}
_POSITIVE = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e30}
_TEXT = {"type": "string", "maxLength": 1000}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Mapping[str, Any], most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


# The bounds keep a hostile record from asking for a network that takes hours to build.
SCHEMA = _object(
    format={"const": FORMAT},
    run=_TEXT,
    model={"enum": [*CLAI, "cross-entropy"]},
    data=_object(
        dataset=_TEXT,
        title=_TEXT,
        licence=_TEXT,
        kind={"enum": ["images", "signals", "features", "recordings"]},
        classes={**_list(_TEXT, 1000, 2), "uniqueItems": True},
    ),
    input=_object(
        shape=_list(_integer(65536), 3), names=_list(_TEXT, 65536), mean=_list(_NUMBER, 65536), sd=_list(_POSITIVE, 65536)
    ),
    settings=_object(
        embedding_size=_integer(4096),
        encoder=_object(
            trunk={"enum": ["resnet2d", "convnet", "resnet1d", "mlp", "hours", "gru"]},
            width=_integer(4096),
            blocks=_list(_integer(16), 8),
            pool={"type": "boolean"},
            layers=_integer(16),
            dropout={"type": "number", "minimum": 0, "maximum": 1},
        ),
        kernel=_object(metric={"enum": ["full", "diagonal", "scalar", "identity"]}),
        mirror={"type": "boolean"},
        precision={"enum": ["bfloat16", "float32"]},
    ),
    population=_list(_integer(2**40), 1000, 0),
    calibration={"anyOf": [_object(temperature=_POSITIVE), _object(slope=_NUMBER, intercept=_NUMBER)]},
    sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"},
    metrics={"type": "object"},
    record={"type": "object"},
)  # fmt: skip
"""JSON schema of `model.json`."""


class Vote(NamedTuple):
    """The vote of one reference: its position in the training data, its class, its similarity in [-1, 1], and its vote.

    The vote is similarity times weight, negative for a reference of another class. The weights of all references add up to 1.
    """

    item: int
    label: str
    similarity: float
    vote: float


class Votes(NamedTuple):
    """The strongest votes about the predicted class of one input.

    Attributes:
        label: the predicted class.
        score: f of this class, the sum of the votes of all references of the model.
        support: the most similar references of the predicted class, the most similar first.
        opposition: the most similar references of other classes, likewise.
    """

    label: str
    score: float
    support: list[Vote]
    opposition: list[Vote]


class References(NamedTuple):
    """References: embeddings (K, R, L), class indices (R,), positions in the training data (R,), members of each class (C,).

    The members of a class are those of the whole training data, for whom its references stand.
    """

    z: Tensor
    y: Tensor
    item: Tensor
    population: Tensor

    def weights(self) -> Tensor:
        """Return the weight of each reference, (R,); they add up to 1."""
        return (self.population / torch.bincount(self.y) / self.population.sum())[self.y]


def _array(x: ArrayLike, names: Sequence[str] | None) -> NDArray[Any]:
    """Return inputs as an array; columns of a data frame in the order of `names`, whatever their own is."""
    columns = getattr(x, "columns", None)
    if names is not None and columns is not None:
        if missing := [name for name in names if name not in columns]:
            raise InputError(
                f"x: found no column {', '.join(missing[:5])}, expected {', '.join(names)}. Give the columns these names"
            )
        x = x[list(names)]  # type: ignore[call-overload, index]
    try:
        return np.ascontiguousarray(x)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"x: cannot be made an array ({error}), expected rows of the same length. Correct it"
        ) from error


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """A trained model with what it takes to use it; `load` reads one.

    Inputs x are arrays, by `record["data"]["kind"]`:

    * images: (N, height, width, channels) uint8;
    * features: (N, features), in the units of the table that the model was trained on, or a data frame with their names;
    * signals: (N, channels, samples) in microvolt;
    * recordings: (hours, inputs), one recording, as `hourly_inputs.hourly_inputs` gives it with `record["input"]`.

    Every method raises InputError for an array of another shape or type, and for a number that is not finite.
    """

    record: Mapping[str, Any]
    model: Trained | Classifier
    references: References | None

    @property
    def classes(self) -> list[str]:
        """Return the names of the classes, in the order of class indices."""
        return list(self.record["data"]["classes"])

    def scores(self, x: ArrayLike) -> Floats:
        """Return f, or the logits of cross-entropy.

        Their shape is (N, C), and the largest is that of the predicted class; (N,) for two classes, above 0 for the second.
        """
        return np.concatenate([self._scores_of(block) for block in self._blocks(x)])

    def probabilities(self, x: ArrayLike) -> Floats:
        """Return probabilities of the classes, (N, C), by the mapping that was fitted on validation samples."""
        return self.calibrated(self.scores(x))

    def predict(self, x: ArrayLike) -> NDArray[np.str_]:
        """Return the names of the predicted classes, (N,)."""
        return self.decided(self.scores(x))

    def calibrated(self, scores: Floats) -> Floats:
        """Return probabilities of the classes, (N, C), for scores that `scores` gave."""
        calibration = self.record["calibration"]
        if scores.ndim > 1:
            return scaled_softmax(scores, calibration["temperature"])
        positive = LogisticCalibration(calibration["slope"], calibration["intercept"])(scores)
        return np.stack([1 - positive, positive], axis=1)

    def decided(self, scores: Floats) -> NDArray[np.str_]:
        """Return the names of the predicted classes, (N,), for scores that `scores` gave."""
        return np.asarray(self.classes)[_decided(scores)]

    def votes(self, x: ArrayLike, k: int = 5) -> list[Votes]:
        """Return the k most similar references for and against the predicted class of each input.

        Raises InputError, too, for a model without references, and for k below 1.
        """
        if k < 1:
            raise InputError(f"k: found {k}, expected a number of references from 1. Correct it.")
        return [vote for block in self._blocks(x) for vote in self._votes_of(block, k)]

    def _blocks(self, x: ArrayLike) -> Iterator[Any]:
        """Yield the encoder's input in blocks; a recording stays whole."""
        data, expected = self.record["data"], self.record["input"]
        shape, kind = tuple(expected["shape"]), data["kind"]
        array = _array(x, expected["names"] if kind == "features" else None)
        real = np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)
        numeric = array.dtype == np.uint8 if kind == "images" else real
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or not len(array) or not numeric:
            unit = "uint8" if kind == "images" else "numbers"
            rows = "hours" if kind == "recordings" else "samples"
            raise InputError(
                f"x: found {array.dtype} {list(array.shape)}, expected {unit} of shape ({rows}, "
                f"{', '.join(map(str, shape))}) for {data['title']}. Bring the {kind} into "
                "this form; a single sample is an array of one."
            )
        if not np.isfinite(array).all():
            raise InputError(
                f"x: found a number that is not finite, expected {kind} without gaps. Leave such samples out."
            )
        if kind == "recordings":
            yield Hourly(torch.tensor(array, dtype=torch.float32), torch.tensor([len(array)]))
            return
        mean, sd = expected["mean"], expected["sd"]
        for start in range(0, len(array), _BLOCK):
            yield _normalised(array[start : start + _BLOCK], kind, mean, sd)

    def _views(self, x: Any) -> list[Any]:
        """Return an input and, where the model looks at it, its mirror image."""
        return [x, x.flip(-1)] if self.record["settings"]["mirror"] else [x]

    @torch.no_grad()
    def _outputs(self, module: nn.Module, x: Any) -> list[Tensor]:
        """Return a module's output of each view."""
        with precision_context(torch.device("cpu"), self.record["settings"]["precision"]):
            return [module(view) for view in self._views(x)]

    def _scores_of(self, x: Any) -> Floats:
        if isinstance(self.model, Classifier):
            logits = torch.stack(self._outputs(self.model, x)).mean(0).double()
            return self._finite(logits if logits.shape[1] > 2 else logits[:, 1] - logits[:, 0])
        return self._decision(self._outputs(self.model.encoder, x))

    def _decision(self, embeddings: list[Tensor]) -> Floats:
        """Return f as `scores` has it, by the embeddings (K, N, L) of each view."""
        f = decide(self._means(embeddings), "printed").double()
        return self._finite(f.T if len(f) > 1 else f[0])

    def _finite(self, scores: Tensor) -> Floats:
        """Return the scores; raise InputError for one that is not finite: of damaged weights, or an input far away."""
        if not scores.isfinite().all():
            raise InputError(
                f"{self.record['run']}: found a score that is not finite, expected finite ones. Check x against input in "
                f"{RECORD}, and {WEIGHTS} against the published one."
            )
        return scores.numpy()

    @torch.no_grad()
    def _means(self, embeddings: list[Tensor]) -> ParzenMeans:
        assert self.references is not None
        assert isinstance(self.model, Trained)
        z_reference, y, _, population = self.references
        means = [parzen_means(self.model.kernel, z, z_reference, y, population, _BLOCK) for z in embeddings]
        return means[0] if len(means) == 1 else mean_of_views(*means)

    @torch.no_grad()
    def _votes_of(self, x: Any, k: int) -> Iterator[Votes]:
        if self.references is None or isinstance(self.model, Classifier):
            raise InputError(
                f"{self.record['run']}: found a model without references, expected one of Collaborative Learning "
                f"({', '.join(CLAI)}), whose references vote. Load such a model."
            )
        embeddings = self._outputs(self.model.encoder, x)
        scores = self._decision(embeddings)
        decided = _decided(scores)
        y, item, weights = self.references.y, self.references.item, self.references.weights()
        for row, label in enumerate(decided.tolist()):
            condition = label if scores.ndim > 1 else 0
            reference = self.references.z[condition]
            similarity = torch.stack(
                [self.model.kernel(z[condition, row : row + 1], reference)[0] for z in embeddings]
            ).mean(0)
            vote = torch.where(y == label, 1, -1) * similarity * weights
            order = similarity.argsort(descending=True, stable=True)
            sides = [
                [
                    Vote(int(item[n]), self.classes[int(y[n])], float(similarity[n]), float(vote[n]))
                    for n in order[own[order]][:k].tolist()
                ]
                for own in (y == label, y != label)
            ]
            score = scores[row, label] if scores.ndim > 1 else abs(scores[row])
            yield Votes(self.classes[label], float(score), *sides)


def _decided(scores: Floats) -> NDArray[np.int64]:
    """Return class indices (N,) of scores (N, C) or (N,)."""
    return scores.argmax(1) if scores.ndim > 1 else (scores > 0).astype(np.int64)


def _normalised(x: NDArray[Any], kind: str, mean: list[float], sd: list[float]) -> Tensor:
    """Return samples as the encoder takes them, with the very operations of `clai.batches` and `replication.models.splits`."""
    if kind == "features":
        return torch.from_numpy(((x - np.asarray(mean)) / np.asarray(sd)).astype(np.float32))
    centre, scale = (torch.tensor(values, dtype=torch.float32) for values in (mean, sd))
    if kind == "images":
        return ((torch.tensor(x).float() - centre) / scale).permute(0, 3, 1, 2)
    return (torch.tensor(x, dtype=torch.float32) - centre.unsqueeze(1)) / scale.unsqueeze(1)


def load(folder: str | Path) -> PublishedModel:
    """Read a published model, ready to use on the CPU.

    Args:
        folder: with `model.json` and `model.safetensors`, such as results/published/pathmnist/models/clai-m.

    Raises:
        InputError: a file is missing, is damaged, has another checksum than the record says, or does not fit the record.
    """
    folder = Path(folder)
    record, weights = read_record(folder / RECORD), folder / WEIGHTS
    found = _sha256(weights)
    if found != record["sha256"]:
        raise InputError(f"{weights}: found sha256 {found}, expected {record['sha256']} as {RECORD} says. {_ADVICE}")
    tensors = load_tensors(weights)
    references = _references(weights, {name: tensors.pop(name) for name in REFERENCES if name in tensors}, record)
    return PublishedModel(record, _model(weights, tensors, record), references)


def keeps_weights(folder: str | Path) -> bool:
    """Return whether the weights compute what those of the run did: not where they are rounded to float16."""
    tensors = load_tensors(Path(folder) / WEIGHTS)
    return all(tensor.dtype != torch.float16 for name, tensor in tensors.items() if name not in REFERENCES)


def read_record(path: Path) -> dict[str, Any]:
    """Return a `model.json`; raises InputError, naming file and key, where it is missing, or is not as `SCHEMA` has it."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_RECORD + 1)
        if len(content) > LARGEST_RECORD:
            raise ValueError(f"more than {LARGEST_RECORD} bytes")
        record = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
        jsonschema.Draft202012Validator(SCHEMA).validate(record)
    except jsonschema.ValidationError as error:
        key = ".".join(str(part) for part in error.absolute_path) or "the whole"
        raise InputError(
            f"{path}: found at {key} what is no part of a published model ({error.message:.200}), expected format "
            f"{FORMAT}. {_ADVICE}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected the record of a published model as JSON. {_ADVICE}"
        ) from None
    _check_agreement(path, record)
    return dict(record)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _check_agreement(path: Path, record: Mapping[str, Any]) -> None:
    """Raise InputError where parts of a record contradict each other."""
    kind, shape = record["data"]["kind"], record["input"]["shape"]
    classes, clai = len(record["data"]["classes"]), record["model"] in CLAI
    dimensions = {"images": 3, "signals": 2, "features": 1, "recordings": 1}[kind]
    channels = shape[2] if kind == "images" and len(shape) == 3 else shape[0]
    counts = [len(record["input"][key]) for key in ("mean", "sd")]
    wrong = {
        "input.shape": len(shape) != dimensions or int(np.prod(shape, dtype=object)) > 2**24,
        "input.mean": kind != "recordings" and counts != [channels, channels],
        "population": len(record["population"]) != (classes if clai else 0),
        "calibration": ("temperature" in record["calibration"]) != (classes > 2),
        "settings.mirror": record["settings"]["mirror"] and kind != "images",
        "settings.encoder.trunk": (record["settings"]["encoder"]["trunk"] in ("hours", "gru"))
        != (kind == "recordings"),
    }
    for key, bad in wrong.items():
        if bad:
            raise InputError(
                f"{path}: found a {key} that contradicts the kind {kind}, the shape {shape} or the {classes} classes, expected "
                f"parts that belong together. {_ADVICE}"
            )


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected the weights of a published model. {_ADVICE}"
        ) from None


def _references(path: Path, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> References | None:
    """Return the references of a model of Collaborative Learning; raise InputError where they are not as the record says."""
    if record["model"] not in CLAI and not tensors:
        return None
    classes, size = len(record["data"]["classes"]), record["settings"]["embedding_size"]
    conditions = classes if classes > 2 else 1
    z, y, item = (tensors.get(name) for name in REFERENCES)
    fits = z is not None and y is not None and item is not None and record["model"] in CLAI
    if fits:
        assert z is not None
        assert y is not None
        assert item is not None
        population = torch.tensor(record["population"])
        fits = (z.ndim, z.dtype) == (3, torch.float16) and (len(z), z.shape[2]) == (conditions, size)
        fits = fits and all((t.dtype, t.shape) == (torch.int64, z.shape[1:2]) for t in (y, item))
        fits = fits and len(y) > 0 and int(y.min()) >= 0 and int(y.max()) < classes and int(item.min()) >= 0
        if fits:
            counts = torch.bincount(y, minlength=classes)
            if bool((counts > 0).all()) and bool((counts <= population).all()):
                return References(z.float(), y, item, population)
    found = {name: (tensor.dtype, *tensor.shape) for name, tensor in tensors.items()}
    raise InputError(
        f"{path}: found the references {found}, expected for {record['model']} float16 embeddings ({conditions}, references, "
        f"{size}) with int64 classes, below {classes}, and positions; every class has some, none more than in "
        f"`population`. {_ADVICE}"
    )


def _model(path: Path, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> Trained | Classifier:
    """Return the network of the record with these weights, ready to evaluate."""
    settings, shape, classes = record["settings"], record["input"]["shape"], len(record["data"]["classes"])
    inputs = shape[2] if record["data"]["kind"] == "images" else shape[0]
    # A network on the device `meta` has shapes and no numbers: what the weights do not fill takes no memory.
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model: Trained | Classifier
        if record["model"] in CLAI:
            model = build_clai(settings, record["model"], inputs, classes if classes > 2 else 1, seed=0)
        else:
            model = build_classifier(settings, inputs, classes, seed=0)
    module = nn.ModuleList(model) if isinstance(model, Trained) else model
    own = module.state_dict()
    halves = (torch.bfloat16, torch.float16)
    single = {name: tensor.float() if tensor.dtype in halves else tensor for name, tensor in tensors.items()}
    shapes = [{name: (t.dtype, t.shape) for name, t in state.items()} for state in (single, own)]
    if shapes[0] != shapes[1]:
        odd = sorted(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name))
        raise InputError(
            f"{path}: found tensors that the network of {RECORD} lacks, lacks them, or has in another shape "
            f"({', '.join(odd[:3])}), expected its {len(own)}. {_ADVICE}"
        )
    module.load_state_dict(single, assign=True)
    module.requires_grad_(False).eval()
    place(module, torch.device("cpu"))
    return model
