"""A published model: read without trust, it gives labels, scores, probabilities and the references that vote for an input.

A folder holds it: `model.json` says what the weights are and how an input must look, `model.safetensors` has the weights and, for
a model of Collaborative Learning, its references. Neither format holds code.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from clailearn import kernels
from clailearn.calibration import LogisticCalibration, scaled_softmax
from clailearn.computation import as_array, fresh_modes
from clailearn.encoders import TRUNKS, Classifier, Encoder, Hourly, build_classifier, build_encoder, place
from clailearn.errors import InputError
from clailearn.inference import decide, mean_of_views, parzen_means
from clailearn.kernels import Kernel
from clailearn.records import (
    ADVICE,
    ANY_NUMBER,
    FORMAT,
    POSITIVE,
    RECORD,
    SHA256,
    SWITCH,
    TEXT,
    WEIGHTS,
    Check,
    calibration_checks,
    expect,
    integer,
    list_of,
    number,
    one_of,
    read_json,
)
from clailearn.tensors import fill_module, load_tensors
from clailearn.trainer import precision_context
from clailearn.votes import References, Votes, strongest_votes

REFERENCES = ("reference.z", "reference.y", "reference.item")
"""Tensors of the references: embeddings (K, R, L) float16, class indices (R,) and positions in the training data (R,) int64."""

# The paper's models of Collaborative Learning. Another one names its kernel in the block `kernel`; a classifier has none.
_KERNELS = {"clai-m": "gaussian", "clai-c": "cosine"}
# Samples whose output is computed at once; as in `replication.models.embedding`, since rounding may depend on it.
_BLOCK = 512

Floats = NDArray[np.float64]


# The bounds keep a hostile record from asking for a network that takes hours to build.
_CHECKS: dict[str, Check] = {
    "format": one_of(FORMAT),
    "run": TEXT,
    "model": TEXT,
    "data.title": TEXT,
    "data.kind": one_of(*TRUNKS),
    "data.classes": list_of(TEXT, 1000, 2),
    "input.shape": list_of(integer(65536), 3),
    "input.names": list_of(TEXT, 65536),
    "input.mean": list_of(ANY_NUMBER, 65536),
    "input.sd": list_of(POSITIVE, 65536),
    "settings.embedding_size": integer(4096),
    "settings.encoder.width": integer(4096),
    "settings.encoder.blocks": list_of(integer(16), 8),
    "settings.encoder.pool": SWITCH,
    "settings.encoder.layers": integer(16),
    "settings.encoder.dropout": number(0, 1),
    "settings.kernel.metric": one_of("full", "identity"),
    "settings.mirror": SWITCH,
    "settings.precision": one_of("bfloat16", "float32"),
    "sha256": SHA256,
}


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
            return np.ascontiguousarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:  # of texts, or what pandas has for a missing value
            raise InputError(f"x: found no numbers ({error}), expected columns of numbers. Correct them") from error
    return np.ascontiguousarray(as_array(x))


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
    network: Encoder | Classifier
    kernel: Kernel | None
    references: References | None

    @property
    def classes(self) -> list[str]:
        """Return the names of the classes, in the order of class indices."""
        return list(self.record["data"]["classes"])

    @fresh_modes("cpu")
    def scores(self, x: ArrayLike) -> Floats:
        """Return f, or the logits of cross-entropy.

        Their shape is (N, C), and the largest is that of the predicted class; (N,) for two classes, above 0 for the second.
        """
        return np.concatenate([self._scores_of(self._outputs(block)) for block in self._blocks(x)])

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
        return np.asarray(self.classes)[scores.argmax(1) if scores.ndim > 1 else (scores > 0).astype(np.int64)]

    @fresh_modes("cpu")
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
            yield Hourly(torch.from_numpy(array.astype(np.float32)), torch.tensor([len(array)]))
            return
        mean, sd = expected["mean"], expected["sd"]
        for start in range(0, len(array), _BLOCK):
            yield _normalised(array[start : start + _BLOCK], kind, mean, sd)

    @torch.no_grad()
    def _outputs(self, x: Any) -> list[Tensor]:
        """Return the network's output for an input and, where the model looks at it, for its mirror image."""
        views = [x, x.flip(-1)] if self.record["settings"]["mirror"] else [x]
        with precision_context(torch.device("cpu"), self.record["settings"]["precision"]):
            return [self.network(view) for view in views]

    @torch.no_grad()
    def _scores_of(self, outputs: list[Tensor]) -> Floats:
        """Return scores by the outputs of the network for each view; raise InputError for one that is not finite."""
        if self.kernel is None or self.references is None:
            logits = torch.stack(outputs).mean(0).double()
            scores = logits if logits.shape[1] > 2 else logits[:, 1] - logits[:, 0]
        else:
            z_reference, y, _, population, _ = self.references
            means = [parzen_means(self.kernel, z, z_reference, y, population, _BLOCK) for z in outputs]
            f = decide(mean_of_views(*means), "printed").double()
            scores = f.T if len(f) > 1 else f[0]
        if not scores.isfinite().all():  # of damaged weights, or an input far away
            raise InputError(
                f"{self.record['run']}: found a score that is not finite, expected finite ones. Check x against input in "
                f"{RECORD}, and {WEIGHTS} against the published one."
            )
        return scores.numpy()

    def _votes_of(self, x: Any, k: int) -> Iterator[Votes]:
        if self.kernel is None or self.references is None:
            raise InputError(
                f"{self.record['run']}: found a model without references, expected one of Collaborative Learning "
                f"({', '.join(_KERNELS)}), whose references vote. Load such a model."
            )
        embeddings = self._outputs(x)
        f = torch.from_numpy(self._scores_of(embeddings))
        f = f.T if f.ndim > 1 else f[None]
        return strongest_votes(self.kernel, embeddings, self.references, f, self.classes, "printed", k)


def _normalised(x: NDArray[Any], kind: str, mean: list[float], sd: list[float]) -> Tensor:
    """Return samples as the encoder takes them, with the very operations of `batches` and `splits` in `replication.models`."""
    if kind == "features":
        return torch.from_numpy(((x - np.asarray(mean)) / np.asarray(sd)).astype(np.float32))
    centre, scale = (torch.tensor(values, dtype=torch.float32) for values in (mean, sd))
    if kind == "images":
        return ((torch.tensor(x).float() - centre) / scale).permute(0, 3, 1, 2)
    return (torch.from_numpy(x.astype(np.float32)) - centre.unsqueeze(1)) / scale.unsqueeze(1)


@fresh_modes("cpu")
def load(folder: str | Path) -> PublishedModel:
    """Read a published model, ready to use on the CPU.

    Args:
        folder: with `model.json` and `model.safetensors`, such as results/published/pathmnist/models/clai-m.

    Raises:
        InputError: a file is missing, is damaged, has another checksum than the record says, or does not fit the record.
    """
    path, weights = Path(folder, RECORD), Path(folder, WEIGHTS)
    record = read_json(path)
    expect(path, record, _CHECKS)
    expect(path, record, _checks_of(record))
    tensors = load_tensors(weights, record["sha256"])
    network, kernel = _network(record)
    references = None
    if isinstance(network, Encoder):
        conditions, _, size = network.head.weight.shape
        references = checked_references(weights, tensors, (conditions, size), torch.float16, record["population"])
        if "reference_files" in record:
            expect(path, record, {"reference_files": list_of(TEXT, len(references.y), len(references.y))})
        references = references._replace(z=references.z.float(), files=record.get("reference_files", []))
    module = (network if kernel is None else nn.ModuleList([network, kernel])).float()
    halves = (torch.bfloat16, torch.float16)
    single = {name: tensor.float() if tensor.dtype in halves else tensor for name, tensor in tensors.items()}
    fill_module(module, single, weights)
    module.requires_grad_(False).eval()
    place(module, torch.device("cpu"))
    return PublishedModel(record, network, kernel, references)


def _kernel_of(record: Mapping[str, Any]) -> str | None:
    """Return the name of a model's kernel; None for a classifier."""
    name = record["settings"]["kernel"].get("name", _KERNELS.get(record["model"]))
    return None if name is None else str(name)


def _checks_of(record: Mapping[str, Any]) -> dict[str, Check]:
    """Return the rules that follow from the model, the kind of its data and its classes."""
    kernel, kind, shape = _kernel_of(record), record["data"]["kind"], record["input"]["shape"]
    classes, dimensions = len(record["data"]["classes"]), {"images": 3, "signals": 2}.get(kind, 1)
    channels, voters = shape[-1] if kind == "images" else shape[0], 0 if kernel is None else classes
    rules = {
        "model": Check(
            f"cross-entropy, or a model with a kernel of {', '.join(kernels.KERNELS)}",
            lambda model: kernel in kernels.KERNELS or (kernel is None and model == "cross-entropy"),
        ),
        "input.shape": list_of(integer(65536), dimensions, dimensions),
        "settings.encoder.trunk": one_of(*TRUNKS[kind]),
        "population": list_of(integer(2**40), voters, voters),
    }
    if kind != "recordings":
        rules |= {
            "input.mean": list_of(ANY_NUMBER, channels, channels),
            "input.sd": list_of(POSITIVE, channels, channels),
        }
    if kind != "images":
        rules["settings.mirror"] = one_of(False)
    return rules | calibration_checks(classes)


def checked_references(
    path: Path, tensors: dict[str, Tensor], shape: tuple[int, int], dtype: torch.dtype, population: Sequence[int]
) -> References:
    """Return the references of a file; raise InputError unless they are embeddings with classes and positions that fit.

    Args:
        tensors: those of the file, of which this takes `REFERENCES` away.
        shape: conditions K and embedding size L.
        dtype: of the embeddings.
        population: members of each class (C,), for whom its references stand.
    """
    z, y, item = (tensors.pop(name, torch.empty(0)) for name in REFERENCES)
    fits = (z.ndim, z.dtype) == (3, dtype) and (len(z), z.shape[2]) == shape
    fits = fits and all((t.dtype, t.shape) == (torch.int64, z.shape[1:2]) for t in (y, item))
    if fits and len(y) > 0 and int(y.min()) >= 0 and int(y.max()) < len(population) and int(item.min()) >= 0:
        counts, members = torch.bincount(y, minlength=len(population)), torch.tensor(population)
        if bool((counts > 0).all()) and bool((counts <= members).all()):
            return References(z, y, item, members)
    found = {name: (t.dtype, *t.shape) for name, t in zip(REFERENCES, (z, y, item), strict=True)}
    raise InputError(
        f"{path}: found the references {found}, expected {dtype} embeddings ({shape[0]}, references, {shape[1]}) with int64 "
        f"classes, below {len(population)}, and positions; every class has some, none more than the record says. {ADVICE}"
    )


def _network(record: Mapping[str, Any]) -> tuple[Encoder | Classifier, Kernel | None]:
    """Return the untrained network of a record and its kernel, on the device `meta`: shapes without numbers take no memory."""
    settings, shape, classes = record["settings"], record["input"]["shape"], len(record["data"]["classes"])
    inputs, kernel = shape[2] if record["data"]["kind"] == "images" else shape[0], _kernel_of(record)
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        if kernel is None:
            return build_classifier(settings, inputs, classes, seed=0), None
        encoder = build_encoder(settings, inputs, classes if classes > 2 else 1, seed=0)
        return encoder, kernels.build(kernel, settings["embedding_size"], settings["kernel"]["metric"])
