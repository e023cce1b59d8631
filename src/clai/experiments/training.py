"""From a prepared dataset and settings to a trained model and its embeddings.

The functions here put the parts of the library together the way the paper's experiments do; each workflow script calls one.
Settings are the dictionaries of config.yaml for one dataset (`dataset_settings` of the workflow).
"""

import copy
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from clai.alignment import one_vs_rest
from clai.batches import Images, Items, Recordings, Signals, Splits
from clai.checkpoints import Checkpoint, write_whole
from clai.datasets.hourly_inputs import hourly_inputs, hourly_names
from clai.datasets.prepared import Prepared, normalisation
from clai.encoders import Classifier, ConditionedHead, Encoder, build_trunk
from clai.errors import InputError
from clai.inference import ParzenMeans, decide, parzen_means, predict_labels, sample_references
from clai.kernels import Kernel, build
from clai.learning import batchwise_learning, class_draw, collaborative_learning, draw_shift
from clai.metrics.roc_auc import roc_auc
from clai.stability import finite
from clai.trainer import Epoch, Precision, TrainingSettings, compiled, precision_context

logger = logging.getLogger("clai")

KERNEL_OF_MODEL = {"clai-c": "cosine", "clai-m": "gaussian"}


class Trained(NamedTuple):
    """A trained CLaI model."""

    encoder: Encoder
    kernel: Kernel


class Embedded(NamedTuple):
    """Embeddings (K, N, L) and labels (N,) of one split."""

    z: Tensor
    y: Tensor


def choose_device(wanted: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU; `cuda` without one falls back to the CPU and says so."""
    if wanted != "cpu" and torch.cuda.is_available():
        return torch.device("cuda")
    if wanted == "cuda":
        logger.warning("device is cuda, but none is visible to this job: continuing on the CPU")
    return torch.device("cpu")


def conditions_of(info: Mapping[str, Any]) -> int:
    """C for a multiclass dataset, 1 for a binary one."""
    classes = len(info["classes"])
    return classes if classes > 2 else 1


def validation_rows(
    patients: NDArray[np.int64], y: NDArray[np.int64], candidates: NDArray[np.bool_], share: float, seed: int
) -> NDArray[np.bool_]:
    """Rows of a random share of the candidate patients, drawn alike from those with and without a positive row.

    By patient and not by recording: one patient's stays resemble each other.
    """
    generator = np.random.default_rng(seed)
    chosen: list[NDArray[np.int64]] = []
    positive = np.unique(patients[candidates & (y == 1)])
    for stratum in (positive, np.setdiff1d(np.unique(patients[candidates]), positive)):
        chosen.append(generator.permutation(stratum)[: max(1, round(share * len(stratum)))])
    return np.isin(patients, np.concatenate(chosen)) & candidates


def inputs_of(data: Prepared, settings: Mapping[str, Any]) -> int:
    """Channels or variables that the encoder takes."""
    if data.info["kind"] == "recordings":
        return len(hourly_names(data.info["variables"], **settings["hourly"]))
    return int(data["x_train"].shape[3 if data.info["kind"] == "images" else 1])


def recording_rows(
    data: Prepared, settings: Mapping[str, Any], fold: int | None, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Training, validation and test rows of recordings, (rows,) each."""
    test = np.asarray(data["folds_all"] == fold)
    patients, y = np.asarray(data["patients_all"]), np.asarray(data["y_all"])
    val = validation_rows(patients, y, ~test, settings["validation_share_recordings"], seed)
    return ~test & ~val, val, test


def splits_of(data: Prepared, settings: Mapping[str, Any], fold: int | None, seed: int, device: torch.device) -> Splits:
    """The items of a run, normalised as config.yaml says.

    Args:
        fold: the test fold of recordings; None for datasets with a fixed test set.
        seed: draws the validation patients, and the training samples where `training.samples` asks for fewer than all.

    Recordings are normalised with the statistics of the run's own training rows, the validation rows left out.
    """
    info, kind = data.info, data.info["kind"]
    if kind == "recordings":
        x, y, groups, hours = (np.asarray(data[f"{name}_all"]) for name in ("x", "y", "groups", "hours"))
        rows = recording_rows(data, settings, fold, seed)
        own = normalisation(x, kind, info["variables"], rows[0], f"training data of fold {fold}")
        known = [hourly_inputs(x[r], groups[r], hours[r], own["mean"], own["sd"], **settings["hourly"]) for r in rows]
        return Splits(*(Recordings(seen, y[r], groups[r], device) for seen, r in zip(known, rows, strict=True)))

    def items(split: str) -> Items:
        own = "test" if split == "test" and settings["normalise_test_separately"] else "train"
        mean, sd = info["normalisation"][own]["mean"], info["normalisation"][own]["sd"]
        x, y = data[f"x_{split}"], data[f"y_{split}"]
        samples = settings["training"]["samples"]
        if split == "train" and samples is not None and samples < len(y):
            rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:samples])
            x, y = x[rows], y[rows]
        if kind == "images":
            return Images(x, y, mean, sd, settings["training"]["augmentation"], device)
        return Signals(x, y, mean, sd, device)

    return Splits(items("train"), items("val"), items("test"))


def build_clai(settings: Mapping[str, Any], model: str, inputs: int, conditions: int, seed: int) -> Trained:
    """An untrained encoder and kernel, initialised from the seed."""
    torch.manual_seed(seed)
    trunk = build_trunk(settings["encoder"], inputs)
    head = ConditionedHead(int(trunk.features), conditions, settings["embedding_size"])  # type: ignore[arg-type]
    kernel = build(KERNEL_OF_MODEL[model], settings["embedding_size"], settings["kernel"]["metric"])
    return Trained(Encoder(trunk, head), kernel)


def build_classifier(settings: Mapping[str, Any], inputs: int, classes: int, seed: int) -> Classifier:
    """An untrained trunk with logits, initialised from the seed."""
    torch.manual_seed(seed)
    trunk = build_trunk(settings["encoder"], inputs)
    return Classifier(trunk, int(trunk.features), classes)  # type: ignore[arg-type]


def train_clai(
    model: str,
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
    device: torch.device,
    checkpoint: Checkpoint,
) -> tuple[Trained, list[Epoch]]:
    """Train CLaI-C or CLaI-M; returns the model on the CPU and its history with the loss's floor, if it is known, in each row."""
    split = splits_of(data, settings, fold, seed, device)
    conditions = conditions_of(data.info)
    trained = build_clai(settings, model, split.train.inputs, conditions, seed)
    learning = TrainingSettings.of(settings, conditions, seed)
    _place(trained.encoder, device)
    trained.kernel.to(device)
    shares = (one_vs_rest(split.train.labels, conditions) > 0).double().mean(1).tolist()
    floor = trained.kernel.mean_loss_floor(learning.target, shares, settings["embedding_size"])
    validate = _heldout(trained, split, conditions, settings, seed, {} if floor is None else {"floor": floor})
    history = collaborative_learning(
        trained.encoder, trained.kernel, split.train, conditions, learning, validate, checkpoint
    )
    return Trained(trained.encoder.cpu(), trained.kernel.cpu()), history


def train_cross_entropy(
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
    device: torch.device,
    checkpoint: Checkpoint,
) -> tuple[Classifier, list[Epoch]]:
    """Train the cross-entropy baseline; returns the model on the CPU and its history.

    Where CLaI learns from draws of at most so many samples of a class, so does it; its logits are then put back to the class
    shares of all samples.
    """
    split = splits_of(data, settings, fold, seed, device)
    classifier = build_classifier(settings, split.train.inputs, len(data.info["classes"]), seed)
    learning = TrainingSettings.of(settings, conditions_of(data.info), seed)
    _place(classifier, device)
    chosen = _subset(split.val, settings["inference"]["validation_samples"], seed)

    network = compiled(classifier, learning)

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(device, learning.precision):
            logits = network(x)
        drawn = class_draw(labels, learning.samples_per_class, torch.default_generator)
        return nn.functional.cross_entropy(logits[drawn], labels[drawn])

    def validate() -> Epoch:
        logits = finite(_over_items(classifier, split.val, learning.precision, chosen))
        labels = torch.cat([split.val.batch(block, None)[1].cpu() for block in chosen.split(512)])
        return {"validation_accuracy": float((logits.argmax(1) == labels).double().mean())}

    history = batchwise_learning(classifier, objective, split.train, learning, validate, checkpoint)
    if learning.samples_per_class is not None:
        with torch.no_grad():
            classifier.logits.bias.add_(draw_shift(split.train, learning).to(classifier.logits.bias))
    return classifier.cpu(), history


def train_supervised_contrastive(
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
    device: torch.device,
    checkpoint: Checkpoint,
) -> tuple[Trained, list[Epoch]]:
    """Train the same trunk with the supervised contrastive loss (Khosla et al. 2020) of pytorch-metric-learning.

    The projection is a head with one condition. Inference is the cosine kernel's, every class voting with the one embedding: the
    class of the largest mean similarity. Returns the model on the CPU, its head repeated for all classes, and its history.
    """
    from pytorch_metric_learning.losses import SupConLoss

    split = splits_of(data, settings, fold, seed, device)
    conditions = conditions_of(data.info)
    trained = build_clai(settings, "clai-c", split.train.inputs, 1, seed)
    learning = TrainingSettings.of(settings, conditions, seed)
    _place(trained.encoder, device)
    loss = SupConLoss(temperature=settings["baselines"]["supervised_contrastive"]["temperature"])

    network = compiled(trained.encoder, learning)

    def objective(x: Any, labels: Tensor) -> Tensor:
        with precision_context(device, learning.precision):
            z = network(x)[0]
        return loss(z, labels)

    validate = _heldout(trained, split, conditions, settings, seed, {})
    history = batchwise_learning(trained.encoder, objective, split.train, learning, validate, checkpoint)
    head = trained.encoder.head
    head.weight = nn.Parameter(head.weight.detach().repeat(conditions, 1, 1))
    head.bias = nn.Parameter(head.bias.detach().repeat(conditions, 1, 1))
    return Trained(trained.encoder.cpu(), trained.kernel), history


def _heldout(
    trained: Trained, split: Splits, conditions: int, settings: Mapping[str, Any], seed: int, constant: Epoch
) -> Callable[[], Epoch]:
    """What is measured after an epoch on validation samples, some training items as references: the paper's rule's accuracy and,
    for two classes that both occur there, its area under the ROC curve.
    """
    precision: Precision = settings["training"]["precision"]
    references = _subset(split.train, settings["inference"]["validation_references"], seed)
    chosen = _subset(split.val, settings["inference"]["validation_samples"], seed)
    blocks = list(references.split(512))
    found = torch.cat([split.train.batch(block, None)[1].cpu() for block in blocks]).unique().numel()
    if found < max(2, conditions):
        raise InputError(
            f"inference.validation_references: its {len(references)} training items hold {found} of "
            f"{max(2, conditions)} classes: give a larger number"
        )

    def validate() -> Epoch:
        reference = embed(trained.encoder, split.train, precision, references)
        heldout = embed(trained.encoder, split.val, precision, chosen)
        means = similarity_means(copy.deepcopy(trained.kernel).cpu(), heldout, reference, conditions, settings, seed)
        f = finite(decide(means, "printed"))  # of which an accuracy would be a number in any case
        found = {**constant, "validation_accuracy": float((predict_labels(f) == heldout.y).double().mean())}
        known = conditions == 1 and len(heldout.y.unique()) > 1  # one class has no AUROC, which is no divergence
        return found | ({"validation_auroc": roc_auc(heldout.y.numpy(), f[0].numpy())} if known else {})

    return validate


def _place(module: nn.Module, device: torch.device) -> None:
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def _subset(items: Items, count: int | None, seed: int) -> Tensor:
    """A seeded choice of at most `count` items, or all of them in order."""
    if count is None:
        return torch.arange(len(items))
    return torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))[:count]


@torch.no_grad()
def _over_items(module: nn.Module, items: Items, precision: Precision, chosen: Tensor | None, dim: int = 0) -> Tensor:
    """A module's output over items in blocks, concatenated along `dim`, on the CPU."""
    module.eval()
    device = next(module.parameters()).device
    outputs = []
    for block in (torch.arange(len(items)) if chosen is None else chosen).split(512):
        with precision_context(device, precision):
            outputs.append(module(items.batch(block, None)[0]).cpu())
    return torch.cat(outputs, dim)


def embed(encoder: Encoder, items: Items, precision: Precision, chosen: Tensor | None = None) -> Embedded:
    """Embeddings and labels of all items, or of the chosen ones, without augmentation, on the CPU."""
    z = _over_items(encoder, items, precision, chosen, dim=1)
    labels = items.labels if chosen is None else torch.cat([items.batch(b, None)[1].cpu() for b in chosen.split(512)])
    return Embedded(z, labels)


def similarity_means(
    kernel: Kernel, test: Embedded, reference: Embedded, conditions: int, settings: Mapping[str, Any], seed: int
) -> ParzenMeans:
    """What the decision rules are made from, over all references or a sample of them; everything on the CPU.

    An encoder without conditions has one embedding, which then serves all of them.
    """
    number, block = settings["inference"]["references"], settings["inference"]["block"]
    equal = settings["inference"]["reference_shares"] == "equal"
    z, z_reference, labels = test.z.expand(conditions, -1, -1), reference.z.expand(conditions, -1, -1), reference.y
    if number == "all" or number >= len(labels):
        return parzen_means(kernel, z, z_reference, labels, block, equal=equal)
    items, population = sample_references(labels, number, seed)
    return parzen_means(kernel, z, z_reference[:, items], labels[items], block, population, equal)


def embed_splits(
    trained: Trained, data: Prepared, settings: Mapping[str, Any], seed: int, fold: int | None, device: torch.device
) -> dict[str, Embedded]:
    """Embeddings of the training (reference), validation and test samples of a run."""
    split = splits_of(data, settings, fold, seed, device)
    _place(trained.encoder, device)
    precision: Precision = settings["training"]["precision"]
    return {name: embed(trained.encoder, getattr(split, name), precision) for name in Splits._fields}


def classifier_outputs(
    classifier: Classifier,
    data: Prepared,
    settings: Mapping[str, Any],
    seed: int,
    fold: int | None,
    device: torch.device,
) -> tuple[Embedded, Embedded]:
    """Logits (1, N, C) and labels of the test and of the validation samples of a run."""
    split = splits_of(data, settings, fold, seed, device)
    _place(classifier, device)
    precision: Precision = settings["training"]["precision"]
    parts = (split.test, split.val)
    test, val = (Embedded(_over_items(classifier, p, precision, None).unsqueeze(0), p.labels) for p in parts)
    return test, val


def save_parameters(path: Path, module: nn.Module) -> None:
    """Parameters and buffers of a module as a safetensors file."""
    write_whole(Path(path), save({name: tensor.contiguous() for name, tensor in module.state_dict().items()}))


def load_parameters(path: Path, module: nn.Module) -> None:
    """Fill a module of the same make with saved parameters and set it to evaluation."""
    module.load_state_dict(load_file(path))
    module.eval()


def save_embedded(path: Path, embedded: Mapping[str, Embedded]) -> None:
    """Embeddings and labels of all splits as a safetensors file with tensors `z_<split>` and `y_<split>`."""
    tensors = {f"z_{name}": part.z.contiguous() for name, part in embedded.items()}
    write_whole(Path(path), save(tensors | {f"y_{name}": part.y.contiguous() for name, part in embedded.items()}))


def load_embedded(path: Path) -> dict[str, Embedded]:
    """The splits that `save_embedded` wrote."""
    tensors = load_file(path)
    return {name: Embedded(tensors[f"z_{name}"], tensors[f"y_{name}"]) for name in Splits._fields}
