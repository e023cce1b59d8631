"""CLaI as a scikit-learn estimator, for one's own data."""

import copy
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from clai.alignment import Target
from clai.batches import Vectors
from clai.encoders import MLP, ConditionedHead, Encoder
from clai.inference import Rule, decide, parzen_means, predict_labels, probabilities
from clai.kernels import Metric, build
from clai.learning import collaborative_learning
from clai.trainer import Precision, TrainingSettings, precision_context

# Samples embedded, and similarities a side computed, at once.
_BLOCK = 1024


class CLaIClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """Collaborative Learning and Inference: an embedding and a kernel trained by alignment, a kernel vote to classify.

    `fit` learns phi(x, k) so that similarities of embeddings match the agreement of labels (Algorithm 1 for two
    classes, Algorithm 3 for more); `predict` compares new samples with all training samples (Algorithms 2 and 4).

    Parameters
    ----------
    kernel : {'gaussian', 'cosine'}
        Similarity of embeddings: CLaI-M or CLaI-C.
    metric : {'full', 'diagonal', 'scalar', 'identity'}
        What of the Mahalanobis matrix M is learned; of no effect with the cosine kernel.
    target : {'zero', 'product', 'masked'}
        Target similarity of two samples that both do not belong to the class in question: 0, 1, or left out. Two-class
        problems always have y y', which is 'product'.
    rule : {'printed', 'centred', 'balanced', 'parzen'}
        Decision rule, see `clai.inference.decide`. With unequal class shares 'printed' favours the rarer class wherever a
        sample resembles no class much.
    embedding_size : int
        Dimensions L of the embedding.
    trunk : torch.nn.Module with an attribute `features`, or None
        Maps a batch (N, ...) to (N, features); a copy of it is trained, starting from its weights. None: a fully
        connected network of two layers of `width` units, for vectors, which should be standardised.
    width : int
        Units a layer of the default trunk.
    schedule : {'joint', 'sequential'}
        All classes at once, or one after another as printed in the paper.
    references : int or 'all'
        Reference batches that each anchor batch is compared with; 'all' is the paper's, at quadratic cost.
    epochs, batch_size, learning_rate, weight_decay
        Of AdamW with a one-cycle schedule. Batches are smaller where there are fewer than 2 batch_size samples.
    precision : {'float64', 'float32', 'bfloat16'}
        Of the computation. Under float64 the scores of a sample do not depend on which others are predicted with it.
    device : str
        Where to compute, such as 'cpu' or 'cuda'.
    random_state : int, RandomState instance or None
        Seeds initial weights and shuffling.

    Attributes
    ----------
    classes_ : labels, in the order of the columns of `predict_proba`; of two the second is the positive class.
    history_ : list with a dict an epoch: loss, alignment, centred_alignment, ...
    encoder_, kernel_ : the trained modules.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from clai import CLaIClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CLaIClassifier(random_state=0))
    >>> bool(cross_val_score(model, X, y, cv=3).mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        kernel: Literal["gaussian", "cosine"] = "gaussian",
        metric: Metric = "full",
        target: Target = "zero",
        rule: Rule = "printed",
        embedding_size: int = 16,
        trunk: nn.Module | None = None,
        width: int = 64,
        schedule: Literal["joint", "sequential"] = "joint",
        references: int | Literal["all"] = 1,
        epochs: int = 60,
        batch_size: int = 32,
        learning_rate: float = 5e-3,
        weight_decay: float = 1e-4,
        precision: Precision = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.target = target
        self.rule = rule
        self.embedding_size = embedding_size
        self.trunk = trunk
        self.width = width
        self.schedule = schedule
        self.references = references
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.precision = precision
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from X, an array or tensor (N, inputs), or (N, ...) with a trunk of one's own, and labels y (N,)."""
        nd = self.trunk is not None
        X, y = validate_data(self, X, y, dtype=np.float64, allow_nd=nd, ensure_2d=not nd)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}; at least two are needed to tell apart")
        conditions = 1 if len(self.classes_) == 2 else len(self.classes_)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            trunk: Any = MLP(X.shape[1], self.width, 2) if self.trunk is None else copy.deepcopy(self.trunk)
            head = ConditionedHead(trunk.features, conditions, self.embedding_size)
        self.encoder_ = Encoder(trunk, head).to(self.device, self._dtype())
        self.kernel_ = build(self.kernel, self.embedding_size, self.metric).to(self.device, self._dtype())
        data = Vectors(self._tensor(X), torch.from_numpy(labels))
        settings = TrainingSettings(
            epochs=self.epochs,
            batch_size=min(self.batch_size, len(data) // 2),
            optimiser="adamw",
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            learning_rate_schedule="one_cycle",
            warmup=0.25,
            precision=self.precision,
            compile=False,
            schedule=self.schedule,
            references=self.references,
            reference_reduction="mean",
            pair_weighting="none",
            samples_per_class=None,
            target="product" if conditions == 1 else self.target,
            seed=seed,
        )
        self.history_ = collaborative_learning(
            self.encoder_, self.kernel_, data, conditions, settings, validate=dict, checkpoint=None
        )
        self.reference_embeddings_ = self._embed(X)
        self.reference_labels_ = data.labels
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Embeddings, (N, L) for two classes, (N, C L) for C > 2: those under each class's condition side by side."""
        embedded = self._embed(self._validated(X))
        return np.asarray(embedded.transpose(0, 1).flatten(1).cpu().numpy(), dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """f: (N,) for two classes, positive for the second; (N, C) for C > 2, largest for the predicted class."""
        f = self._decide(X)
        return np.asarray((f[0] if len(f) == 1 else f.T).cpu().numpy(), dtype=np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The paper's mapping of f to probabilities (N, C): softmax, or (1 + f) / 2 for two classes. Not calibrated."""
        return np.asarray(probabilities(self._decide(X)).cpu().numpy(), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (N,)."""
        labels = predict_labels(self._decide(X)).cpu().numpy()
        return np.asarray(self.classes_[labels])

    @property
    def _n_features_out(self) -> int:
        return int(self.reference_embeddings_.shape[0] * self.reference_embeddings_.shape[2])

    def _decide(self, X: Any) -> Tensor:
        z = self._embed(self._validated(X))
        means = parzen_means(self.kernel_, z, self.reference_embeddings_, self.reference_labels_, _BLOCK)
        return decide(means, self.rule)

    def _validated(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        nd = self.trunk is not None
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, allow_nd=nd, ensure_2d=not nd))

    @torch.no_grad()
    def _embed(self, X: NDArray[np.float64]) -> Tensor:
        self.encoder_.eval()
        with precision_context(torch.device(self.device), self.precision):
            return torch.cat([self.encoder_(block) for block in self._tensor(X).split(_BLOCK)], dim=1)

    def _tensor(self, X: NDArray[np.float64]) -> Tensor:
        return torch.tensor(X, dtype=self._dtype(), device=self.device)

    def _dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "float64" else torch.float32
