"""Time an epoch of CLaI against epochs of other losses on the same trunk, and of the default precision against fixed ones."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from clai.batches import Images
from clai.encoders import ConvNet, build_classifier
from clai.learning import collaborative_learning
from clai.trainer import Precision, TrainingSettings, precision_context
from replication.benchmark.timing import Row, time_in_turn
from replication.benchmark.training import CHANNELS, images, placed
from replication.models.cross_entropy import train_cross_entropy
from replication.models.hardware import choose_precision
from replication.models.run import training_settings
from replication.models.supervised_contrastive import train_supervised_contrastive
from replication.models.training import build_clai

INSTRUCTIONS = "ONEDNN_MAX_CPU_ISA"
"""Environment variable that limits oneDNN to some instructions of the processor; DEFAULT is no limit."""


def measure_epochs(
    *,
    encoders: Sequence[Mapping[str, Any]],
    items: int,
    image_size: int,
    classes: int,
    repetitions: int,
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Time an epoch of the linear schedule with either kernel and of other losses on the same trunk.

    The others are cross-entropy, the supervised contrastive loss of pytorch-metric-learning, which computes the whole matrix of
    similarities as CLaI does, and the bare forward and backward passes of the trunk, which are the limit. All but the last draw
    batches, augment and optimise as in training. The bare trunk gets the same batches ready-made.

    Args:
        encoders: settings of each trunk, which replace those of `settings["encoder"]` that they name.
        items, image_size, classes: of random images.
    """
    rows: list[Row] = []
    for encoder in encoders:
        own = _settings_with(settings, encoder)
        data = _data(own, items, image_size, classes, device)
        learning = _learning(own, classes)
        setting = f"{_name(own)};N={items};C={classes};B={learning.batch_size}"
        preparations = {
            "clai-c": _prepare_clai("clai-c", own, data, classes, learning, device),
            "clai-m": _prepare_clai("clai-m", own, data, classes, learning, device),
            "cross-entropy": _prepare_cross_entropy(own, data, classes, learning, device),
            "supervised-contrastive": _prepare_contrastive(own, data, learning, device),
            "bare": _prepare_bare(own, data, classes, learning, device),
        }
        rows += time_in_turn(
            "epoch", {variant: (setting, prepare) for variant, prepare in preparations.items()}, repetitions, device
        )
    return rows


@dataclass(frozen=True)
class PrecisionCase:
    """The trunks that are timed in every precision, and the size of their epochs; as in `measure_precisions`."""

    encoders: Sequence[Mapping[str, Any]]
    items: int
    image_size: int
    repetitions: int
    settings: Mapping[str, Any]
    device: str
    instructions: str

    def measure(self) -> list[Row]:
        """Time the epochs of CLaI-M for two classes."""
        device, rows = torch.device(self.device), []
        chosen = choose_precision("auto", device)
        for encoder in self.encoders:
            own = _settings_with(self.settings, encoder)
            data = _data(own, self.items, self.image_size, 2, device)
            setting = f"instructions={self.instructions};auto={chosen};{_name(own)};N={self.items}"
            precisions: dict[str, Precision] = {"auto": chosen, "bfloat16": "bfloat16", "float32": "float32"}
            preparations = {}
            for name, precision in precisions.items():
                learning = replace(_learning(own, 2), precision=precision)
                preparations[name] = (setting, _prepare_clai("clai-m", own, data, 2, learning, device))
            rows += time_in_turn("precision", preparations, self.repetitions, device)
        return rows


def measure_precisions(
    *,
    encoders: Sequence[Mapping[str, Any]],
    items: int,
    image_size: int,
    repetitions: int,
    instructions: Sequence[str],
    settings: Mapping[str, Any],
    device: torch.device,
) -> list[Row]:
    """Time an epoch in the default precision, `auto`, and in each that it may choose; convolutions are channels-last in all.

    Args:
        encoders, items, image_size: as in `measure_epochs`.
        instructions: values of `INSTRUCTIONS`. Under AVX2, a processor with native bfloat16 stands in for one without it. A value
            other than that of this process gets a process of its own. On a GPU the first value alone is measured.
    """
    rows: list[Row] = []
    for value in instructions if device.type == "cpu" else instructions[:1]:
        case = PrecisionCase(encoders, items, image_size, repetitions, settings, device.type, value)
        if value == os.environ.get(INSTRUCTIONS, "DEFAULT"):
            rows += case.measure()
            continue
        answer = subprocess.run(
            [sys.executable, "-c", "from replication.benchmark.epochs import serve; serve()"],
            input=pickle.dumps((case, torch.get_num_threads())),
            env=os.environ | {INSTRUCTIONS: value},  # oneDNN reads it once, when it first computes
            stdout=subprocess.PIPE,
            check=True,
        )
        rows += pickle.loads(answer.stdout)
    return rows


def prepare_epoch(
    settings: Mapping[str, Any], items: int, image_size: int, classes: int, device: torch.device
) -> Callable[[], object]:
    """Return a function that trains CLaI-M for one further epoch of the linear schedule, on random images."""
    data, learning = _data(settings, items, image_size, classes, device), _learning(settings, classes)
    return _prepare_clai("clai-m", settings, data, classes, learning, device)()


def serve() -> None:
    """Be a process of `measure_precisions`: read a pickled case from standard input, write its rows to standard output."""
    case, threads = pickle.load(sys.stdin.buffer)
    torch.set_num_threads(threads)
    sys.stdout.buffer.write(pickle.dumps(case.measure()))


def _settings_with(settings: Mapping[str, Any], encoder: Mapping[str, Any]) -> dict[str, Any]:
    return {**settings, "encoder": {**settings["encoder"], **encoder}}


def _name(settings: Mapping[str, Any]) -> str:
    """Return the trunk as the column `setting` has it."""
    return f"trunk={settings['encoder']['trunk']};width={settings['encoder']['width']}"


def _data(settings: Mapping[str, Any], items: int, image_size: int, classes: int, device: torch.device) -> Images:
    x, labels = images(items, image_size, classes)
    return Images(x, labels, [127.5] * CHANNELS, [64.0] * CHANNELS, settings["training"]["augmentation"], device)


def _learning(settings: Mapping[str, Any], classes: int) -> TrainingSettings:
    """Return the settings of an epoch of the linear schedule, in the precision that the settings name."""
    base = training_settings(settings, classes, 0)
    return replace(base, epochs=1, schedule="joint", references=1)


def _prepared(module: Any, data: Images, device: torch.device) -> Any:
    """Place a model with a trunk as training does, and whiten a trunk that whitens."""
    placed(module, device)
    if isinstance(module.trunk, ConvNet):
        module.trunk.whiten(data.batch(torch.arange(min(len(data), 512)), None)[0])
    return module


def _prepare_clai(
    model: str,
    settings: Mapping[str, Any],
    data: Images,
    classes: int,
    learning: TrainingSettings,
    device: torch.device,
) -> Callable[[], Callable[[], object]]:
    conditions = classes if classes > 2 else 1

    def prepare() -> Callable[[], object]:
        encoder, kernel = build_clai(settings, model, CHANNELS, conditions, 0)
        _prepared(encoder, data, device)
        kernel.to(device)
        return lambda: collaborative_learning(encoder, kernel, data, conditions, learning, dict, None)

    return prepare


def _prepare_cross_entropy(
    settings: Mapping[str, Any], data: Images, classes: int, learning: TrainingSettings, device: torch.device
) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        classifier = _prepared(build_classifier(settings, CHANNELS, classes, 0), data, device)
        return lambda: train_cross_entropy(classifier, data, learning, dict, None)

    return prepare


def _prepare_contrastive(
    settings: Mapping[str, Any], data: Images, learning: TrainingSettings, device: torch.device
) -> Callable[[], Callable[[], object]]:
    temperature = settings["baselines"]["supervised_contrastive"]["temperature"]

    def prepare() -> Callable[[], object]:
        encoder = _prepared(build_clai(settings, "clai-c", CHANNELS, 1, 0).encoder, data, device)
        return lambda: train_supervised_contrastive(encoder, data, learning, temperature, 1, dict, None)

    return prepare


def _prepare_bare(
    settings: Mapping[str, Any], data: Images, classes: int, learning: TrainingSettings, device: torch.device
) -> Callable[[], Callable[[], object]]:
    group = 2 * learning.batch_size
    blocks = torch.arange(len(data) // group * group).split(group)

    def prepare() -> Callable[[], object]:
        trunk = _prepared(build_classifier(settings, CHANNELS, classes, 0), data, device).trunk
        batches = [data.batch(block, None)[0] for block in blocks]

        def run() -> None:
            for inputs in batches:
                trunk.zero_grad(set_to_none=True)
                with precision_context(device, learning.precision):
                    features = trunk(inputs)
                features.backward(torch.ones_like(features))

        return run

    return prepare
