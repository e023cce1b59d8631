"""A run at work: its data, settings, identity, device and precision, and what follows from them."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch

from clailearn.checkpoints import Checkpoint
from clailearn.encoders import TRUNKS
from clailearn.errors import InputError
from clailearn.trainer import Precision, TrainingSettings
from replication.datasets import prepared
from replication.datasets.files import checksum_of
from replication.datasets.prepared import Prepared
from replication.datasets.recordings import hourly_names
from replication.models.items import Splits, splits_of
from replication.runs.registry import MODELS, read_json
from replication.runs.run import Recorder, RunId, digest, use_threads
from replication.runs.settings import Settings, effective_settings

logger = logging.getLogger("replication")

ENCODERS: dict[str, dict[str, Any]] = {
    "images": {"trunk": "resnet2d", "width": 16, "blocks": [2, 2, 2, 2], "layers": 1},
    "signals": {"trunk": "resnet1d", "width": 16, "blocks": [1, 1, 1, 1], "layers": 1},
    "features": {"trunk": "mlp", "width": 128, "blocks": [], "layers": 2},
    "recordings": {"trunk": "gru", "width": 64, "blocks": [], "layers": 1},
}
"""What `auto` stands for in the block `encoder`, by the kind of data."""
STEPS = 200
"""Steps that `auto` epochs make, of an anchor batch and its reference each."""
SMALLEST_MIRRORED = 28
"""Pixels a side."""


def training_settings(settings: Mapping[str, Any], conditions: int, seed: int) -> TrainingSettings:
    """Take the settings of a training of C conditions, 1 for two classes, from the blocks `training` and `target`."""
    names = [field.name for field in fields(TrainingSettings) if field.default is MISSING]
    target: Any = settings["target"]["multiclass"] if conditions > 1 else "product"  # as in Algorithm 1
    given = {name: settings["training"][name] for name in names if name not in ("target", "seed")}
    return TrainingSettings(**given, target=target, seed=seed)


def suited(settings: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with what suits prepared data, by their `dataset.json`, in place of `auto`.

    A batch is an eighth of the training items, but from 32, or half of them, to 128. Epochs make `STEPS` steps, but are from 16
    to 200. Images are shifted by up to an eighth of their side, and mirrored if they are coloured and no smaller than 28 pixels,
    as letters are.
    """
    kind, training = info["kind"], settings.get("training", {})
    if kind == "recordings":
        items = info["splits"]["all"]["recordings"] // 3  # no fewer are trained on, even in two folds
    else:
        items = min(info["splits"]["train"]["n"], training.get("samples") or math.inf)
    batch = training.get("batch_size", "auto")
    if batch == "auto":
        batch = max(1, min(128, max(items // 8, min(32, items // 2))))
    side = min(info["arrays"]["x_train"]["shape"][1:3]) if kind == "images" else 0
    coloured = kind == "images" and len(set(info["normalisation"]["train"]["mean"])) > 1
    found = {
        "encoder": ENCODERS[kind],
        "training": {
            "batch_size": batch,
            "epochs": min(200, max(16, math.ceil(STEPS / max(1, items // (2 * batch))))),
            "augmentation": {"crop": round(side / 8), "flip": coloured and side >= SMALLEST_MIRRORED},
        },
    }
    return _filled(settings, found)


def _filled(settings: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _filled(value, found.get(key, {}))
        if isinstance(value, dict)
        else found.get(key, value)
        if value == "auto"
        else value
        for key, value in settings.items()
    }


@dataclass(frozen=True, eq=False)
class Run:
    """One run at work: its data, the settings that it reads, and what follows from them, which is computed once."""

    data: Prepared
    settings: Mapping[str, Any]
    id: RunId
    device: torch.device
    embedded: Splits | None = None
    """For a model of embeddings: those of another model, in place of the samples."""

    @classmethod
    def open(cls, description: str | Path, settings: Mapping[str, Any], run_id: RunId) -> Self:
        """Open a run's prepared data (`dataset.json`), choose device and precision, which it records, and set its threads."""
        use_threads(settings["threads"])
        data = prepared.load(Path(description).parent)
        settings = suited(settings, data.info)
        device = choose_device(settings.get("device", "cpu"))
        if "precision" in settings.get("training", {}):
            precision = choose_precision(settings["training"]["precision"], device)
            settings = {**settings, "training": {**settings["training"], "precision": precision}}
        return cls(data, settings, run_id, device)

    @classmethod
    def for_job(cls, job: Any, file: str) -> Self:
        """Open the run of a job of the workflow (`snakemake`), of which `file` is an output.

        A setting that its rule does not pass on is an error where it is read.
        """
        run = cls.open(job.input.prepared, job.params.settings, RunId.parse(file))
        return replace(run, settings=Settings(run.settings, job.rule))

    @property
    def model(self) -> str:
        """Return the key of the model, which a cell of a study names in its settings."""
        return str(self.settings.get("model", self.id.cell))

    @property
    def classes(self) -> int:
        return len(self.data.info["classes"])

    @property
    def conditions(self) -> int:
        """Return C for a multiclass dataset, 1 for a binary one."""
        return self.classes if self.classes > 2 else 1

    @property
    def inputs(self) -> int:
        """Return the number of channels or variables that the encoder takes; raises InputError for one of other data."""
        kind, trunk = self.data.info["kind"], self.settings["encoder"]["trunk"]
        if trunk not in TRUNKS[kind]:
            raise InputError(
                f"{self.id}: found encoder.trunk {trunk} and {kind}, expected {' or '.join(TRUNKS[kind])}. Set it in the "
                f"overrides of {self.id.name}."
            )
        if kind == "recordings":
            return len(hourly_names(self.data.info["variables"]))
        shape = self.data["x_train"].shape
        if (side := min(shape[1:3] if kind == "images" else shape[2:], default=1)) < TRUNKS[kind][trunk]:
            raise InputError(
                f"{self.id}: found {kind} with {side} {'pixels a side' if kind == 'images' else 'samples'}, expected at least "
                f"{TRUNKS[kind][trunk]} for encoder.trunk {trunk}. Provide larger {kind}."
            )
        return int(shape[3 if kind == "images" else 1])

    def image_setting(self, name: str) -> Any:
        """Return a setting of inference that images alone have: `mirror` or `shift`; raises InputError for one of other data."""
        value = self.settings["inference"][name]
        if value and self.data.info["kind"] != "images":
            raise InputError(
                f"inference.{name}: found {value}, expected {type(value)()} for {self.data.info['kind']}, which are no images; "
                "set it so for this dataset"
            )
        return value

    @cached_property
    def splits(self) -> Splits:
        """Return the items; test items are those that the run is scored on, in a study `scored_on` validation those of it."""
        splits = self.embedded or splits_of(self.data, self.settings, self.id, self.device)
        return splits._replace(test=splits.val) if self.settings.get("scored_on") == "validation" else splits

    @cached_property
    def training(self) -> TrainingSettings:
        return training_settings(self.settings, self.conditions, self.id.seed)

    def check(self) -> None:
        """Raise InputError if a batch is larger than half the training items."""
        items, batch, kind = len(self.splits.train), self.training.batch_size, self.data.info["kind"]
        if 2 * batch > items:
            raise InputError(
                f"{self.id}: found training.batch_size {batch} and {items} training {kind}, expected a batch of "
                f"at most half of them. Set training.batch_size to {items // 2} or less in the overrides of {self.id.name}, "
                "or admit more data."
            )

    def recorder(self) -> Recorder:
        """Begin the run's record; its clock starts here."""
        return Recorder(self.id, self.settings, self.data.info, self.device.type)

    def checkpoint(self, output: str | Path, files: Iterable[str]) -> Checkpoint:
        """Return the checkpoint of the fit, beside its `output`.

        It is resumed from only if settings, device, torch and `files` (data, code) are the same.
        """
        made_by = [self.device.type, torch.__version__]
        contents = [checksum_of(Path(file)) for file in files]
        fingerprint = digest([self.settings, str(self.id), contents, *made_by])
        return Checkpoint(Path(output).with_name("checkpoint.pt"), fingerprint)


def refuse_rows(name: str, kind: str, models: Sequence[str]) -> None:
    """Raise InputError for models of rows on data of a kind that has none."""
    if models and kind not in ("features", "recordings"):
        raise InputError(
            f"{name}: found {kind}, expected features or recordings for {', '.join(models)}. Change its `models`."
        )


def check_runs(settings: Mapping[str, Any], dataset: str, description: Path) -> None:
    """Raise InputError unless prepared data (`dataset.json`) allow the trainings that a dataset's settings ask for."""
    models, kind = settings["datasets"][dataset]["models"], read_json(description)["kind"]
    refuse_rows(dataset, kind, [model for model in models if MODELS[model].of == "rows"])
    networks = [model for model in models if MODELS[model].of == "samples"]
    for model in networks[:1]:  # The settings that may not fit are those of all.
        asked = effective_settings(settings, dataset, model)
        run = Run.open(description, asked, RunId.parse(asked["runs"][0]))
        trunk, training = run.settings["encoder"]["trunk"], run.settings["training"]
        logger.info(
            "%s: %s with %d channels or features, %d epochs in batches of %d; images shifted by %d pixels, mirrored: %s",
            dataset, trunk, run.inputs, training["epochs"], training["batch_size"], *list(training["augmentation"].values())[:2],
        )  # fmt: skip
        for name in ("mirror", "shift") if "inference" in run.settings else ():
            run.image_setting(name)
        run.check()


def choose_device(name: str) -> torch.device:
    """Return the device that the setting `device` names; the CPU, with a warning if it says `cuda`, where CUDA is not there."""
    if name != "cpu" and torch.cuda.is_available():
        return torch.device("cuda")
    if name == "cuda":
        logger.warning("device is cuda, but none is visible to this job: continuing on the CPU")
    return torch.device("cpu")


def has_native_bfloat16(device: torch.device) -> bool:
    """Return whether the device computes in bfloat16 itself; emulated, a trunk took sixteen times as long as in float32.

    On the CPU oneDNN must use it (ONEDNN_MAX_CPU_ISA may forbid that), and the processor must have AVX-512 BF16 or AMX.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    processor = torch.cpu.get_capabilities()
    native = any(processor.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
    return native and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision that the setting `training.precision` names: for `auto` bfloat16 where it is native, else float32."""
    native = has_native_bfloat16(device)
    if name == "auto":
        precision: Precision = "bfloat16" if native else "float32"
        reason = "computes it natively" if native else "has no native bfloat16"
        logger.info("training.precision auto: %s, because this %s %s", precision, device.type.upper(), reason)
        return precision
    if name == "bfloat16" and not native:
        logger.warning(
            "training.precision is bfloat16, which this %s emulates, many times as slow as float32. Set it to auto or float32",
            device.type.upper(),
        )
    return name  # type: ignore[return-value]  # the schema allows no other names
