"""CLaI as a scikit-learn estimator, for any data."""

import copy
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor, nn

from clailearn.alignment import Target
from clailearn.calibration import fit_logistic, fit_temperature, scaled_softmax
from clailearn.checkpoints import seeded_generators
from clailearn.computation import Samples, labels_of_one_type, printed_log, unchanged_by_failure
from clailearn.encoders import MLP, ConditionedHead, Encoder
from clailearn.inference import Rule, predict_labels, probabilities, sample_references
from clailearn.kernels import Metric, build
from clailearn.learning import collaborative_learning
from clailearn.references import VotingReferences
from clailearn.trainer import EarlyStopping, Epoch, Precision, TrainingSettings
from clailearn.validation import calibration_split, validation_split


class CLaIClassifier(
    VotingReferences, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """Collaborative Learning and Inference: an embedding and a kernel learned by alignment, and a kernel vote to classify.

    `fit` learns phi(x, k) so that similarities of embeddings match the agreement of labels (Algorithm 1 for two classes,
    Algorithm 3 for more). `predict` compares new samples with all training samples (Algorithms 2 and 4).

    Parameters
    ----------
    kernel : {'gaussian', 'cosine'}, default='gaussian'
        Similarity of embeddings: 'gaussian' is CLaI-M, 'cosine' is CLaI-C. Another kernel goes by its name in
        `clailearn.kernels.KERNELS`.
    metric : {'full', 'identity'}, default='full'
        Learned part of the Mahalanobis matrix M: all of it, or nothing. The cosine kernel has no M and ignores it.
    conditioning : {'class'} or None, default='class'
        'class' learns an embedding for each class, as the paper does; None learns one embedding for all classes. Problems with
        two classes have one embedding anyway.
    target : {'zero', 'product', 'simplex'}, default='zero'
        Target similarity. Under the condition of a class, of two samples that both belong to other classes: 0 or 1 ('product');
        other pairs have y y'. Without conditioning, of two samples of different classes: 0, -1 ('product') or -1/(C - 1)
        ('simplex'); others have 1. Problems with two classes always use 'product'.
    rule : {'printed', 'centred', 'balanced', 'parzen'}, default='printed'
        Decision rule, see `clailearn.inference.decide`. If class shares differ, 'printed' favours the rarer class for samples
        that resemble no class much.
    calibration : int, splitter, iterable of splits, or None, default=2
        One of so many parts of the samples calibrates `predict_proba`: by one temperature for more than two classes, by a
        logistic regression for two. `fit` trains on the other parts first, scores this part, and then trains on all samples. A
        class with fewer samples lowers the number. With `groups` in `fit`, parts are of whole groups. Of a splitter of
        scikit-learn, or an iterable, the first split counts. None leaves the bare mapping, which for more than two classes is
        the paper's. Labels, scores and embeddings do not depend on it.
    embedding_size : int, default=16
        Dimensions L of the embedding.
    trunk : torch.nn.Module with a whole number `features`, default=None
        Maps a batch (N, ...) to (N, features). `fit` trains a copy, which starts from the weights of the trunk and keeps their
        layout in memory: convolutions are faster after `trunk.to(memory_format=torch.channels_last)`. None stands for a fully
        connected network of two layers, for vectors, which should be standardised.
    width : int, default=64
        Units in each layer of the default trunk.
    max_references : int or None, default=None
        Training samples that vote, drawn equally from each class; each class keeps its share in the vote. It bounds the time and
        memory of predictions. None: all vote.
    schedule : {'joint', 'sequential'}, default='joint'
        Whether a step compares samples under all classes at once, or under one class after another as the paper prints it.
    references : int or 'all', default=1
        Reference batches that a step compares with its anchor batch. The paper has 'all', whose cost is quadratic in the number
        of batches.
    epochs : int, default=30
        Passes over the training samples; with 'sequential', passes for each class.
    batch_size : int, default=64
        Samples in a batch, at most half of the training samples.
    learning_rate : float, default=1e-2
        Highest learning rate of the one-cycle schedule of AdamW.
    weight_decay : float, default=1e-4
        Weight decay of AdamW; the metric has none.
    early_stopping : bool, default=False
        Whether to hold out samples of `fit`, to stop once the accuracy on them has not risen for `n_iter_no_change` epochs, and
        to keep the weights of the best epoch. The held-out samples vote in the end. The learning rate falls over all `epochs`,
        whenever training stops.
    validation_fraction : float, default=0.1
        Share of the samples that early stopping holds out, of each class alike; with `groups` in `fit`, about this share, in
        whole groups, and at most half of them.
    n_iter_no_change : int, default=10
        Epochs without a rise after which early stopping stops.
    precision : {'float64', 'float32', 'bfloat16'}, default='float64'
        Precision of the computation. With 'float64', scores of a sample do not depend on the other samples of the call. With
        'bfloat16' on a CPU, a trunk of your own should have no padded convolution whose stride is larger than its input is wide:
        oneDNN's gradient of its weights may then be wrong or NaN.
    device : str, default='cpu'
        Device of the computation, such as 'cpu' or 'cuda'.
    verbose : bool or int, default=0
        Whether to print the figures of each epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of initial weights, shuffling and the parts of the calibration. A number gives the same result in sequence, in
        threads, which train in turn, and in processes, whatever torch's global state; with a trunk of your own, the number of
        torch's threads changes roundings. A process that multiprocessing forks after a fit hangs in torch: use joblib's loky.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels in the order of the columns of `predict_proba`. Of two, the second is the positive class.
    calibration_ : float, clailearn.calibration.LogisticCalibration or None
        The temperature, or the logistic regression for two classes; None if `predict_proba` is the bare mapping.
    history_ : list of dict
        One row an epoch: loss, alignment, centred_alignment, learning_rate, and validation_accuracy of early stopping.
    encoder_ : clailearn.encoders.Encoder
        The trained encoder.
    kernel_ : clailearn.kernels.Kernel
        The trained kernel.
    reference_embeddings_ : Tensor of shape (K, N, L)
        Embeddings of the training samples under each of K conditions: 1 for two classes or without conditioning, else C.
    reference_labels_ : Tensor of shape (N,)
        Their class indices.
    reference_indices_ : ndarray of shape (N,)
        Their numbers: rows in the X of `fit`; those that were added later count on from its end.
    class_count_ : ndarray of shape (C,)
        Samples of each class for which the references stand: their own number, unless `max_references` drew them.
    n_features_in_ : int
        Inputs of a sample.

    Notes
    -----
    `fit` takes no `sample_weight`. A weight of two would have to act as two copies of a sample, as scikit-learn asks; but the
    loss is one of pairs in drawn batches, and two copies would also be a pair.

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
        "metric": [StrOptions(set(get_args(Metric)))],
        "conditioning": [StrOptions({"class"}), None],
        "target": [StrOptions(set(get_args(Target)))],
        "rule": [StrOptions(set(get_args(Rule)))],
        "calibration": ["cv_object"],
        "embedding_size": [Interval(Integral, 1, None, closed="left")],
        "trunk": [nn.Module, None],
        "width": [Interval(Integral, 1, None, closed="left")],
        "max_references": [Interval(Integral, 4, None, closed="left"), None],
        "schedule": [StrOptions({"joint", "sequential"})],
        "references": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"})],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions(set(get_args(Precision)))],
        "device": [str],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        metric: Metric = "full",
        conditioning: Literal["class"] | None = "class",
        target: Target = "zero",
        rule: Rule = "printed",
        calibration: Any = 2,
        embedding_size: int = 16,
        trunk: nn.Module | None = None,
        width: int = 64,
        max_references: int | None = None,
        schedule: Literal["joint", "sequential"] = "joint",
        references: int | Literal["all"] = 1,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-2,
        weight_decay: float = 1e-4,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        precision: Precision = "float64",
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.conditioning = conditioning
        self.target = target
        self.rule = rule
        self.calibration = calibration
        self.embedding_size = embedding_size
        self.trunk = trunk
        self.width = width
        self.max_references = max_references
        self.schedule = schedule
        self.references = references
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.precision = precision
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from samples and their labels.

        Parameters
        ----------
        X : array or tensor of shape (N, inputs), or (N, ...) if `trunk` takes it
        y : array of labels of shape (N,), of at least two classes
        groups : array of shape (N,), default=None
            Group of each sample, such as its patient. Samples of one group stay together where samples are held out, for
            calibration or early stopping.
        """
        with unchanged_by_failure(self):
            self._validate_params()
            self._fitted = self.get_params(deep=False)
            self._computation.check_device()
            X, y = self._checked(X, y)
            check_classification_targets(y)
            if groups is not None:
                groups = column_or_1d(labels_of_one_type(groups, "groups"))
                assert_all_finite(groups, input_name="groups")
            check_consistent_length(X, groups)
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"y holds one class only, {self.classes_[0]}; at least two are needed to tell apart")
            if self.trunk is not None:
                self._computation.check_trunk(self.trunk, X[:2])
            seed, seed_of_parts = map(int, check_random_state(self.random_state).randint(2**31, size=2))
            self.calibration_ = None
            if split := calibration_split(self.calibration, y, groups, seed_of_parts):
                train, validation = split
                self._learn(X[train], labels[train], None if groups is None else groups[train], seed)
                f = self._decide(X[validation]).cpu().numpy()
                calibrate: Any = fit_temperature if len(f) > 1 else fit_logistic
                self.calibration_ = calibrate(f.T if len(f) > 1 else f[0], labels[validation])
            self._learn(X, labels, groups, seed)
        return self

    def _learn(self, X: NDArray[Any], labels: NDArray[np.int64], groups: NDArray[Any] | None, seed: int) -> None:
        """Train encoder and kernel, and embed the references."""
        train, validation = np.arange(len(X)), None
        if self.early_stopping:
            train, validation = validation_split(self.validation_fraction, self.classes_[labels], groups, seed)
        data = Samples(X if validation is None else X[train], torch.from_numpy(labels[train]), self._computation.tensor)
        if self.references == "all" and len(data) < 4:
            raise ValueError(
                f"found {len(data)} samples to train on, and references='all' needs two batches of two; add samples, or set "
                "references=1 (calibration and early stopping hold out a part of the samples: None and False leave them out)"
            )
        conditions = 1 if len(self.classes_) == 2 else len(self.classes_)
        computation = self._computation
        settings = TrainingSettings(
            epochs=int(self.epochs),  # torch takes no integers of numpy
            batch_size=int(min(self.batch_size, len(data) // 2)),
            optimiser="adamw",
            learning_rate=self.learning_rate,
            momentum=0.0,
            weight_decay=self.weight_decay,
            learning_rate_schedule="one_cycle",
            warmup=0.25,
            precision=self.precision,
            schedule=self.schedule,
            references=self.references,
            reference_reduction="mean",
            pair_weighting="none",
            samples_per_class=None,
            target="product" if conditions == 1 else self.target,
            conditioning="class" if conditions == 1 else self.conditioning,
            seed=seed,
        )
        with computation.modes(training=True):
            with seeded_generators(seed, torch.device("cpu")):
                network = self._untrained(X.shape[1]).to(self.device, computation.dtype)
            self.encoder_, self.kernel_ = network
            validate: Callable[[], Epoch] = dict
            stopping = None
            if validation is not None:
                stopping = EarlyStopping(network, self.n_iter_no_change)
                validate = partial(self._validate, data, X[validation], labels[validation], seed)
            with printed_log(bool(self.verbose)):
                self.history_ = collaborative_learning(
                    self.encoder_, self.kernel_, data, conditions, settings, validate, checkpoint=None, stop=stopping
                )
            if stopping is not None:
                stopping.restore()
            self._set_references(X, labels, seed)

    def _untrained(self, inputs: int) -> Any:
        """Return an untrained encoder for the classes of the fit, and the kernel, as a list of modules."""
        conditions = 1 if self.conditioning is None or len(self.classes_) == 2 else len(self.classes_)
        trunk: Any = MLP(inputs, self.width, 2) if self.trunk is None else copy.deepcopy(self.trunk)
        encoder = Encoder(trunk, ConditionedHead(trunk.features, conditions, self.embedding_size))
        return nn.ModuleList([encoder, build(self.kernel, self.embedding_size, self.metric)])

    def _validate(self, data: Any, X: NDArray[Any], labels: NDArray[np.int64], seed: int) -> Epoch:
        """Return the accuracy of samples that were held out of training."""
        self._set_references(data.x, data.labels.numpy(), seed)
        return {"validation_accuracy": float((predict_labels(self._decide(X)).cpu().numpy() == labels).mean())}

    def _set_references(self, X: NDArray[Any], labels: NDArray[np.int64], seed: int) -> None:
        """Embed the samples of a fit that vote: all, or a draw."""
        y = torch.from_numpy(labels)
        items, population = torch.arange(len(y)), torch.bincount(y)
        if self.max_references is not None:
            items, population = sample_references(y, self.max_references, seed)
        self.reference_embeddings_ = self._computation.embed(self.encoder_, X[items.numpy()])
        self.reference_labels_ = y[items]
        self.reference_indices_, self.class_count_ = items.numpy(), population.numpy()
        self._next_index = len(y)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return embeddings: (N, L) for two classes or without conditioning; else (N, C L), the conditions side by side."""
        X = self._checked(X)
        embedded = self._computation.embed(self.encoder_, X)
        return np.asarray(embedded.transpose(0, 1).flatten(1).cpu().numpy(), dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return f: (N,) for two classes, positive for the second; (N, C) for C > 2, largest for the predicted class."""
        f = self._decide(self._checked(X))
        return np.asarray((f[0] if len(f) == 1 else f.T).cpu().numpy(), dtype=np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (N, C).

        With `calibration` the probabilities are fitted on scores of samples that were held out of training: the softmax of
        f / temperature for more than two classes (Guo et al. 2017), a logistic regression on f for two (Platt 1999). n training
        samples cannot show that a class is rarer than about one in n, so the temperature's probabilities p become
        (n p + 1) / (n + C). For two classes the likelier one may differ from `predict`, which is the vote's.

        Without it probabilities are uncalibrated: the softmax of f for more than two classes, as in the paper (section III-D2),
        and (1 + f) / 2 for two, which is this library's since the paper gives none. f lies in [-1, 1], so that a bare softmax
        is never confident.
        """
        f = self._decide(self._checked(X))
        if self.calibration_ is None:
            return np.asarray(probabilities(f).cpu().numpy(), dtype=np.float64)
        if len(f) == 1:
            positive = self.calibration_(f[0].cpu().numpy())
            return np.stack([1 - positive, positive], axis=1)
        p, n = scaled_softmax(f.T.cpu().numpy(), self.calibration_), self.class_count_.sum()
        return (n * p + 1) / (n + len(f))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels (N,)."""
        labels = predict_labels(self._decide(self._checked(X))).cpu().numpy()
        return np.asarray(self.classes_[labels])

    @property
    def _n_features_out(self) -> int:
        return int(self.reference_embeddings_.shape[0] * self.reference_embeddings_.shape[2])

    def _decide(self, X: NDArray[Any]) -> Tensor:
        computation = self._computation
        with computation.modes():
            return self._scores(computation.embed(self.encoder_, X))
