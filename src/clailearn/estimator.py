"""CLaI as a scikit-learn estimator, for any data."""

from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from torch import nn

from clailearn import model as models
from clailearn.alignment import Target
from clailearn.calibration import fit_calibration
from clailearn.classifier import UNSAVED, ModelClassifier
from clailearn.computation import Computation, Inputs, fresh_modes
from clailearn.errors import InputError
from clailearn.files import ADVICE, MAPPING, expect, integer
from clailearn.fitting import (
    calibration_split,
    check_device,
    check_trunk,
    labels_of_one_type,
    learn,
    network_settings,
    unchanged_by_failure,
    validated,
)
from clailearn.inference import Rule, sample_references
from clailearn.trainer import Precision


class CLaIClassifier(ModelClassifier):
    """Collaborative Learning and Inference: an embedding and a kernel learned by alignment, and a kernel vote to classify.

    `fit` learns phi(x, k) so that similarities of embeddings match the agreement of labels (Algorithm 1 for two classes,
    Algorithm 3 for more). `predict` compares new samples with all training samples (Algorithms 2 and 4).

    For two classes, `predict` and the argmax of `predict_proba` may differ: `predict` follows the vote as the paper does (f > 0),
    and the probability is 1/2 where the calibration puts it, which need not be f = 0. With `calibration=None`, and with the rule
    'parzen', they agree.

    Parameters
    ----------
    kernel : {'gaussian', 'cosine'}, default='gaussian'
        Similarity of embeddings: 'gaussian' is CLaI-M, 'cosine' is CLaI-C. Another kernel goes by its name in
        `clailearn.kernels.KERNELS`.
    conditioning : {'class'} or None, default='class'
        'class' learns an embedding for each class, as the paper does; None learns one embedding for all classes. Problems with
        two classes have one embedding anyway.
    loss : {'alignment', 'parzen'}, default='alignment'
        'alignment' is the paper's. 'parzen', ours, trains the rule 'parzen' itself by a proper score
        (`clailearn.parzen.ParzenLoss`): the sharper decision needs many references, and takes no `target`.
    target : {'zero', 'product', 'simplex'}, default='zero'
        Target similarity. Under the condition of a class, of two samples that both belong to other classes: 0 or 1 ('product');
        other pairs have y y'. Without conditioning, of two samples of different classes: 0, -1 ('product') or -1/(C - 1)
        ('simplex'); others have 1. Problems with two classes always use 'product'.
    rule : {'auto', 'printed', 'centred', 'balanced', 'parzen'}, default='auto'
        Decision rule, see `clailearn.inference.decide`; 'auto' is 'printed', with the loss 'parzen' the rule 'parzen'. If class
        shares differ, 'printed' favours the rarer class for samples that resemble no class much.
    calibration : int, splitter, iterable of splits, or None, default=2
        One of so many parts of the samples calibrates `predict_proba`: by one temperature for more than two classes and for the
        rule 'parzen', by a logistic regression for two. `fit` trains on the other parts first, scores this part, and then
        trains on all samples. A class with fewer samples lowers the number. With `groups` in `fit`, parts are of whole groups.
        Of a splitter of scikit-learn, or an iterable, the first split counts. None leaves the bare mapping, which for more than
        two classes is the paper's. Labels, scores and embeddings do not depend on it.
    embedding_size : int or 'auto', default='auto'
        Dimensions L of the embedding; 'auto' is 16, with the loss 'parzen' 4.
    trunk : torch.nn.Module with a whole number `features`, default=None
        Maps a batch (N, ...) to (N, features). `fit` trains a copy, which starts from the weights of the trunk and keeps their
        layout in memory: convolutions are faster after `trunk.to(memory_format=torch.channels_last)`. None stands for a fully
        connected network of two layers, for vectors, which should be standardised.
    width : int, default=64
        Units in each layer of the default trunk.
    max_references : int or None, default=None
        Training samples that vote, drawn equally from each class; each class keeps its share in the vote. It bounds the time and
        memory of predictions. None: all vote.
    epochs : int, default=30
        Passes over the training samples. With a calibration `fit` trains twice, first on a part of the samples; where labels or
        scores alone count, as in a grid search, `calibration=None` saves that time. A step compares a batch with one other under
        all classes at once; the paper's loops over classes and pairs of batches are in `clailearn.learning`.
    batch_size : int, default=64
        Samples in a batch, at most half of the training samples.
    learning_rate : float, default=1e-2
        Highest learning rate of the one-cycle schedule of AdamW.
    weight_decay : float, default=1e-4
        Weight decay of AdamW; the metric has none.
    precision : {'float64', 'float32', 'bfloat16'}, default='float64'
        Precision of the computation. With 'float64', the other samples of a call change the scores of a sample by roundings
        alone, some 1e-15. With 'bfloat16' on a CPU, a trunk of your own should have no padded convolution whose stride is larger
        than its input is wide: oneDNN's gradient of its weights may then be wrong or NaN.
    device : str, default='cpu'
        Device of the computation, such as 'cpu' or 'cuda'.
    verbose : bool or int, default=0
        Whether to print the figures of each epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws: weights, order, references, parts held out. A number gives the same result in sequence, in
        threads, which train in turn, and in processes, whatever torch's global state; with a trunk of your own, the number of
        torch's threads changes roundings. A process that multiprocessing forks after a fit hangs in torch: use joblib's loky.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels in the order of the columns of `predict_proba`. Of two, the second is the positive class.
    calibration_ : float, clailearn.calibration.LogisticCalibration or None
        The temperature, or the logistic regression; None if `predict_proba` is the bare mapping.
    history_ : list of dict
        One row an epoch: loss, learning_rate, with the paper's loss alignment and centred_alignment.
    model_ : clailearn.model.Model
        What was learned, as a whole: `network`, `kernel` and `references`, whose embeddings are `references.z`.
    reference_labels_ : ndarray of shape (N,)
        Class indices of the references, which are training samples.
    reference_indices_ : ndarray of shape (N,)
        Their numbers: rows in the X of `fit`; those that were added later count on from its end.
    class_count_ : ndarray of shape (C,)
        Samples of each class for which the references stand: their own number, unless `max_references` drew them.
    n_features_in_ : int
        Inputs of a sample; not with a trunk of your own, which may take any shape.

    Notes
    -----
    `fit` takes no `sample_weight`. A weight of two would have to act as two copies of a sample, as scikit-learn asks; but the
    loss is one of pairs in drawn batches, and two copies would also be a pair. In place of `partial_fit` there is
    `add_references`, which lets further samples vote without training.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from clailearn import CLaIClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CLaIClassifier(random_state=0))
    >>> bool(cross_val_score(model, X, y, cv=3).mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str],
        "conditioning": [StrOptions({"class"}), None],
        "loss": [StrOptions({"alignment", "parzen"})],
        "target": [StrOptions(set(get_args(Target)))],
        "rule": [StrOptions({"auto", *get_args(Rule)})],
        "calibration": ["cv_object"],
        "embedding_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "trunk": [nn.Module, None],
        "width": [Interval(Integral, 1, None, closed="left")],
        "max_references": [Interval(Integral, 2, None, closed="left"), None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions(set(get_args(Precision)))],
        "device": [str],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        conditioning: Literal["class"] | None = "class",
        loss: Literal["alignment", "parzen"] = "alignment",
        target: Target = "zero",
        rule: Rule | Literal["auto"] = "auto",
        calibration: Any = 2,
        embedding_size: int | Literal["auto"] = "auto",
        trunk: nn.Module | None = None,
        width: int = 64,
        max_references: int | None = None,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-2,
        weight_decay: float = 1e-4,
        precision: Precision = "float64",
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.conditioning = conditioning
        self.loss = loss
        self.target = target
        self.rule = rule
        self.calibration = calibration
        self.embedding_size = embedding_size
        self.trunk = trunk
        self.width = width
        self.max_references = max_references
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.precision = precision
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn from samples and their labels.

        Parameters
        ----------
        X : array or tensor of shape (N, inputs), or (N, ...) if `trunk` takes it
        y : array of labels of shape (N,), of at least two classes
        groups : array of shape (N,), default=None
            Group of each sample, such as its patient. Samples of one group stay together where samples are held out for
            calibration.
        """
        with unchanged_by_failure(self):
            self._validate_params()
            # A subclass may name fewer parameters, or further ones.
            self._fitted = own = {name: getattr(self, name) for name in CLaIClassifier._parameter_constraints}
            computation = Computation(own["device"], own["precision"])
            check_device(computation)
            self.__dict__.pop("n_features_in_", None)  # of a fit before, which may have had no trunk
            X, y = validated(self, X, (y,))
            check_classification_targets(y)
            if groups is not None:
                if np.ndim(groups) > 1 and np.prod(np.shape(groups)) > len(groups):
                    raise ValueError(f"groups has the shape {np.shape(groups)}, expected (samples,); give one column")
                groups = column_or_1d(labels_of_one_type(groups, "groups"))
                assert_all_finite(groups, input_name="groups")
            check_consistent_length(X, groups)
            classes, labels = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"y holds one class only, {classes[0]}; at least two are needed to tell apart")
            if self.trunk is not None:
                check_trunk(computation, self.trunk, X[:2])
            names = getattr(self, "feature_names_in_", np.array([])).tolist()
            inputs = Inputs("samples", X.shape[1:] if self.trunk is None else (), names)
            seed, seed_of_parts = map(int, check_random_state(self.random_state).randint(2**31, size=2))
            if own["max_references"] is not None:  # too few are refused before the training
                with fresh_modes("cpu"):
                    sample_references(torch.from_numpy(labels), own["max_references"], seed)
            calibration: Any = None
            if split := calibration_split(self.calibration, y, groups, seed_of_parts):
                train, validation = split
                part = learn(own, inputs, X[train], labels[train], classes, seed)[0]
                calibration = fit_calibration(part.scores(X[validation]), labels[validation], log_odds=part.log_odds)
            model, self.history_ = learn(own, inputs, X, labels, classes, seed)
            self._next_index = len(X)
            return self._hold(replace(model, calibration=calibration), classes)


def load(folder: str | Path, trunk: nn.Module | None = None) -> models.Model | CLaIClassifier:
    """Read a model of a folder, ready to use on the CPU: a published one, or a `CLaIClassifier` that `save` wrote.

    Both are read without trust: the files hold no code, and a damaged or hostile one raises an error.

    Args:
        folder: with `model.json` and `model.safetensors`, such as results/published/pathmnist/models/clai-m; or one of its files.
        trunk: for an estimator with a trunk of one's own, a module of the same architecture; its weights are replaced in a copy.

    Raises:
        InputError: a file is missing, is damaged, has another checksum than the record says, or does not fit the record or the
            trunk.
    """
    model, path = models.load(folder, trunk), models.record_of(folder)
    return _estimator(path, model, trunk) if "estimator" in model.record else model


def _estimator(path: Path, model: models.Model, trunk: nn.Module | None) -> CLaIClassifier:
    """Return the estimator that was saved as a model; raise InputError unless its parameters and references fit the model."""
    expect(path, model.record, {"estimator.next_index": integer(2**62), "estimator.parameters": MAPPING})
    saved, expected = model.record["estimator"], CLaIClassifier().get_params(deep=False).keys() - UNSAVED
    if saved["parameters"].keys() != expected:
        raise InputError(f"{path}: found other parameters than {', '.join(sorted(expected))}. {ADVICE}")
    estimator = CLaIClassifier(trunk=trunk, **saved["parameters"])
    try:
        estimator._validate_params()
    except ValueError as error:
        raise InputError(f"{path}: {error}. {ADVICE}") from None
    estimator._fitted, estimator._next_index = estimator.get_params(deep=False), saved["next_index"]
    inputs, numbers = model.inputs, model.references.item.tolist() if model.references else []
    settings = network_settings(estimator._fitted)
    if trunk is not None:  # of the same architecture, whatever its class is called
        settings["encoder"] = model.settings["encoder"]
    if inputs.kind != "samples" or model.settings != settings:
        raise InputError(f"{path}: found parameters that do not fit the settings of the network. {ADVICE}")
    if model.classes != sorted(model.classes):
        raise InputError(f"{path}: found the classes {model.classes!r:.100}, expected them sorted. {ADVICE}")
    if len({*numbers}) < len(numbers) or max(numbers, default=0) >= saved["next_index"]:
        raise InputError(
            f"{path}: found positions of references that are not unique, or not below next_index. {ADVICE}"
        )
    if trunk is None:
        estimator.n_features_in_ = inputs.channels
    if inputs.names:
        estimator.feature_names_in_ = np.array(inputs.names, dtype=object)
    return estimator._hold(model, np.array(model.classes))
