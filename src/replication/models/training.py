"""From a run to its trained model: build, train, validate after each epoch, save."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save
from torch import Tensor, nn

from clai.alignment import one_vs_rest
from clai.checkpoints import Checkpoint, write_whole
from clai.encoders import Classifier, ConvNet, Encoder, build_classifier, build_encoder, place
from clai.errors import InputError
from clai.inference import decide, predict_labels
from clai.kernels import Kernel, build
from clai.learning import collaborative_learning
from clai.stability import finite
from clai.tensors import fill_module, load_tensors
from clai.trainer import Epoch
from replication.models.cross_entropy import train_cross_entropy
from replication.models.embedding import classifier_outputs, draw_items, embed, labels_of, similarity_means
from replication.models.read_out import fit_trunk_read_out, read_out_scores
from replication.models.run import Run
from replication.models.supervised_contrastive import train_supervised_contrastive, views_of
from replication.runs.models import MODELS

# Two thousand images have 1.9 million patches of 12 values; more would change the filters by less than the seed.
_IMAGES_TO_WHITEN = 2000


class Trained(NamedTuple):
    """A trained encoder, and the kernel that compares its embeddings."""

    encoder: Encoder
    kernel: Kernel


def build_clai(settings: Mapping[str, Any], model: str, inputs: int, conditions: int, seed: int) -> Trained:
    """Build an untrained encoder and the kernel of a CLaI model, initialised from the seed."""
    kernel = MODELS[model].kernel
    if kernel is None:
        raise ValueError(f"{model} has no kernel: expected a model of Collaborative Learning")
    encoder = build_encoder(settings, inputs, conditions, seed)
    return Trained(encoder, build(kernel, settings["embedding_size"], settings["kernel"]["metric"]))


def train(run: Run, checkpoint: Checkpoint) -> tuple[Trained | Classifier | Encoder, list[Epoch]]:
    """Train the run's model: one of CLaI's, `cross-entropy` or `supervised-contrastive`.

    Returns:
        On the CPU a `Classifier` for cross-entropy, the `Encoder` for supervised contrastive learning, else encoder and kernel;
        and the history.

    Raises:
        InputError: a batch is larger than half the training items.
    """
    items, batch = len(run.splits.train), run.training.batch_size
    if 2 * batch > items:
        raise InputError(
            f"{run.id}: found training.batch_size {batch} and {items} training {run.data.info['kind']}, expected a batch of at "
            f"most half of them. Set training.batch_size to {items // 2} or less in the overrides of {run.id.dataset}, "
            "or admit more data."
        )
    if run.model == "cross-entropy":
        return train_classifier(run, checkpoint)
    if run.model == "supervised-contrastive":
        return train_contrastive(run, checkpoint)
    return train_clai(run, checkpoint)


def train_clai(run: Run, checkpoint: Checkpoint) -> tuple[Trained, list[Epoch]]:
    """Train a model of CLaI. Returns it on the CPU and its history, with the floor of the loss if the kernel knows one."""
    encoder, kernel = trained = build_clai(run.settings, run.model, run.inputs, run.conditions, run.id.seed)
    _prepare(encoder, run)
    kernel.to(run.device)
    items = run.splits.train
    shares = (one_vs_rest(items.labels, run.conditions) > 0).double().mean(1).tolist()
    floor = kernel.mean_loss_floor(run.training.target, shares, run.settings["embedding_size"])
    validate = _validation(run, trained, {} if floor is None else {"floor": floor})
    history = collaborative_learning(encoder, kernel, items, run.conditions, run.training, validate, checkpoint)
    return Trained(encoder.cpu(), kernel.cpu()), history


def train_classifier(run: Run, checkpoint: Checkpoint) -> tuple[Classifier, list[Epoch]]:
    """Train the cross-entropy baseline. Returns it on the CPU and its history."""
    classifier = build_classifier(run.settings, run.inputs, run.classes, run.id.seed)
    _prepare(classifier, run)
    items = run.splits.val
    positions = draw_items(items, run.settings["inference"]["validation_samples"], run.id.seed)

    def validate() -> Epoch:
        logits = finite(classifier_outputs(run, classifier, items, positions))
        return {"validation_accuracy": float((logits.argmax(1) == labels_of(items, positions)).double().mean())}

    history = train_cross_entropy(classifier, run.splits.train, run.training, validate, checkpoint)
    return classifier.cpu(), history


def train_contrastive(run: Run, checkpoint: Checkpoint) -> tuple[Encoder, list[Epoch]]:
    """Train the supervised contrastive baseline. Returns it on the CPU and its history.

    The history's validation figures are those of the read-out of its trunk, fitted on `inference.validation_references` items.
    """
    encoder = build_encoder(run.settings, run.inputs, 1, run.id.seed)
    _prepare(encoder, run)
    inference, splits = run.settings["inference"], run.splits
    references = draw_items(splits.train, inference["validation_references"], run.id.seed)
    positions = draw_items(splits.val, inference["validation_samples"], run.id.seed)
    _expect_all_classes(run, references)
    labels = labels_of(splits.val, positions).numpy()

    def validate() -> Epoch:
        scores = read_out_scores(run, encoder, fit_trunk_read_out(run, encoder, references), splits.val, positions)
        predicted = scores > 0 if scores.ndim == 1 else scores.argmax(1)
        row = {"validation_accuracy": float((predicted == labels).mean())}
        if scores.ndim == 1 and len(set(labels)) > 1:
            from sklearn.metrics import roc_auc_score  # slow to import, and many classes need none

            row["validation_auroc"] = float(roc_auc_score(labels, scores))
        return row

    settings = run.settings["baselines"]["supervised_contrastive"]
    views = views_of(run.data.info["kind"], run.settings["encoder"])
    history = train_supervised_contrastive(
        encoder, splits.train, run.training, settings["temperature"], views, validate, checkpoint
    )
    return encoder.cpu(), history


def _prepare(module: Encoder | Classifier, run: Run) -> None:
    """Move an untrained module to the run's device, and whiten a trunk that whitens: by some drawn training images.

    Prepared images may be in the order of their classes, so the first ones would be of one class.
    """
    place(module, run.device)
    if isinstance(module.trunk, ConvNet):
        items = run.splits.train
        images, _ = items.batch(draw_items(items, _IMAGES_TO_WHITEN, run.id.seed), None)
        module.trunk.whiten(images, run.settings["encoder"]["whitening"])


def _validation(run: Run, trained: Trained, constants: Epoch) -> Callable[[], Epoch]:
    """Return the function that measures a model after each epoch: on validation samples, with training items as references.

    It gives the constants, the accuracy of the rule `printed` and, for two classes that both occur among the validation samples,
    the area under the ROC curve.
    """
    inference, splits, precision = run.settings["inference"], run.splits, run.training.precision
    references = draw_items(splits.train, inference["validation_references"], run.id.seed)
    positions = draw_items(splits.val, inference["validation_samples"], run.id.seed)
    _expect_all_classes(run, references)

    def validate() -> Epoch:
        reference = embed(trained.encoder, splits.train, precision, references)
        validation = embed(trained.encoder, splits.val, precision, positions, run.mirror)
        means = similarity_means(run, copy.deepcopy(trained.kernel).cpu(), validation, reference)
        # The accuracy of votes that are not finite would be a number all the same.
        f = finite(decide(means, "printed"))
        row = {**constants, "validation_accuracy": float((predict_labels(f) == validation.y).double().mean())}
        # One class alone has no area under the curve, which is no divergence.
        if run.conditions == 1 and len(validation.y.unique()) > 1:
            from sklearn.metrics import roc_auc_score  # slow to import, and many classes need none

            row["validation_auroc"] = float(roc_auc_score(validation.y.numpy(), f[0].numpy()))
        return row

    return validate


def _expect_all_classes(run: Run, references: Tensor) -> None:
    """Refuse training items, at these positions, that lack a class."""
    present, expected = labels_of(run.splits.train, references).unique().numel(), max(2, run.conditions)
    if present < expected:
        raise InputError(
            f"inference.validation_references: its {len(references)} training items hold {present} of {expected} classes: "
            "give a larger number"
        )


def save_model(path: str | Path, model: Trained | Classifier | Encoder) -> None:
    """Write parameters and buffers of a trained model as a safetensors file."""
    state = _module(model).state_dict()
    write_whole(Path(path), save({name: tensor.contiguous() for name, tensor in state.items()}))


def load_clai(run: Run, path: str | Path) -> Trained:
    """Read the model of CLaI that `save_model` wrote for a run, ready to evaluate."""
    trained = build_clai(run.settings, run.model, run.inputs, run.conditions, run.id.seed)
    _load(path, trained)
    return trained


def load_classifier(run: Run, path: str | Path) -> Classifier:
    """Read the classifier that `save_model` wrote for a run, ready to evaluate."""
    classifier = build_classifier(run.settings, run.inputs, run.classes, run.id.seed)
    _load(path, classifier)
    return classifier


def load_contrastive(run: Run, path: str | Path) -> Encoder:
    """Read the encoder that `save_model` wrote for a run of supervised contrastive learning, ready to evaluate."""
    encoder = build_encoder(run.settings, run.inputs, 1, run.id.seed)
    _load(path, encoder)
    return encoder


def _load(path: str | Path, model: Trained | Classifier | Encoder) -> None:
    module = _module(model)
    fill_module(module, load_tensors(path), path)
    module.eval()


def _module(model: Trained | Classifier | Encoder) -> nn.Module:
    return nn.ModuleList(model) if isinstance(model, Trained) else model
