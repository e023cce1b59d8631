"""Classifiers with CLaI's trunk and another loss: cross-entropy, supervised contrastive learning, prototypical networks."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from clailearn.checkpoints import Checkpoint
from clailearn.encoders import Classifier, Encoder, build_classifier, build_encoder, move
from clailearn.learning import class_draw
from clailearn.trainer import Epoch, Items
from replication.models.base import Floats, Network, Space, both_spaces, draw_references, draw_shift
from replication.models.embedding import ImageView, further_views, labels_of, outputs, plain
from replication.models.row_classifiers import LogisticRegression
from replication.models.run import Run

INVERSE_PENALTY = 1.0
"""Scikit-learn's C of the read-out."""
SAMPLES_PER_CLASS = 100_000
"""Largest number of training samples of a class for the read-out; probabilities are put back to the prevalence."""


class CrossEntropy(Network):
    """The trunk of CLaI's encoder with logits, trained on cross-entropy.

    It learns from at most `samples_per_class` samples of a class in its batch, which is as large as CLaI's two together; CLaI
    draws from each of its two. Its logits are then shifted to the shares of all samples.
    """

    network: Classifier

    def build(self, run: Run) -> Self:
        return self.around(build_classifier(run.settings, run.inputs, run.classes, run.id.seed))

    def around(self, network: Classifier) -> Self:
        self.module = self.network = network
        return self

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        logits = self.forward(run, x)
        drawn = class_draw(labels, run.training.samples_per_class, torch.default_generator)
        smoothing = run.settings["baselines"]["cross_entropy"]["label_smoothing"]
        return nn.functional.cross_entropy(logits[drawn], labels[drawn], label_smoothing=smoothing)

    def fit(self, run: Run, checkpoint: Checkpoint | None) -> list[Epoch]:
        history = super().fit(run, checkpoint)
        if run.training.samples_per_class is not None:
            bias = self.network.logits.bias
            with torch.no_grad():
                bias.add_(draw_shift(run.splits.train, run.training).to(bias))
        return history


class SupervisedContrastive(Network):
    """Supervised contrastive learning (Khosla et al. 2020): train trunk and projection, drop the projection, read the trunk out.

    The protocol is that of its authors (section 3): a batch holds two augmented copies of each item; the loss compares
    projections on the unit sphere, here by a linear layer, one of their two choices; a logistic regression, their choice, is
    fitted on the frozen features of the trunk. The augmentation is that of the other methods, not the stronger one of the
    authors. The loss takes at most `samples_per_class` samples of a class, as cross-entropy.
    """

    network: Encoder
    read_out: Callable[[Items, Tensor], Floats] | None = None

    def build(self, run: Run) -> Self:
        self.module = self.network = build_encoder(run.settings, run.inputs, 1, run.id.seed)
        return self

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        # The import is slow, and jobs that train another model import this module too.
        from pytorch_metric_learning.losses import SupConLoss

        compare = SupConLoss(temperature=run.settings["baselines"]["supervised_contrastive"]["temperature"])
        z = self.forward(run, x)[0]
        drawn = class_draw(labels, run.training.samples_per_class, torch.default_generator)
        return compare(z[drawn], labels[drawn])

    def copies(self, run: Run) -> int:
        """Return two where copies of an item differ, by augmentation (images) or dropout; else its class alone has positives."""
        kind = run.data.info["kind"]
        return 2 if kind == "images" or (kind == "recordings" and run.settings["encoder"]["dropout"] > 0) else 1

    def scores_at(self, run: Run, items: Items, positions: Tensor) -> Floats:
        """Return the scores of items while the model trains, by a read-out that some training items fit."""
        return self._fit_read_out(run, draw_references(run))(items, positions)

    def scores(self, run: Run, items: Items) -> Floats:
        """Return the scores of all items, by a read-out that all training items fit once."""
        move(self.module, run.device)
        if self.read_out is None:
            self.read_out = self._fit_read_out(run, torch.arange(len(run.splits.train)))
        return self.read_out(items, torch.arange(len(items)))

    def _fit_read_out(self, run: Run, positions: Tensor) -> Callable[[Items, Tensor], Floats]:
        """Return the function from positions of items to scores, means over views, that is fitted on training items."""
        x, y = self._features(run, run.splits.train, positions), labels_of(run.splits.train, positions).numpy()
        regression = LogisticRegression().fit_rows(
            x, y, x, y, inverse_penalty=[INVERSE_PENALTY], samples_per_class=SAMPLES_PER_CLASS, seed=run.id.seed
        )
        views = (plain, *further_views(run))
        return lambda items, at: np.mean(
            [regression.score_rows(self._features(run, items, at, view)) for view in views], axis=0
        )

    def _features(self, run: Run, items: Items, positions: Tensor, view: ImageView = plain) -> Any:
        """Return the trunk's features of all samples of items, (samples, F), without augmentation."""
        features = outputs(run, self.network.trunk, items, positions, view=view)
        return features.to(torch.float32).numpy()


class Prototypical(SupervisedContrastive):
    """The same network, trained as a prototypical one (Snell et al. 2017, equation 2): a control of claim 9.

    Half of a batch is the support, whose class means are the prototypes; the other half asks. A step takes all classes, as a
    batch has them, and not an episode of a few.
    """

    def loss(self, run: Run, x: Any, labels: Tensor) -> Tensor:
        z = self.forward(run, x)[0]
        half = len(z) // 2
        return prototypical_loss(z[:half], labels[:half], z[half:], labels[half:])

    def copies(self, run: Run) -> int:
        return 1

    def spaces(self) -> list[Space]:
        """Return the spaces of the projection, which the loss compares."""
        return both_spaces(self.network, self.network.head.weight.shape[2])


def prototypical_loss(support: Tensor, y_support: Tensor, query: Tensor, y_query: Tensor) -> Tensor:
    """Return the mean of -log softmax(-|z - c_y|^2) over queries (Q, L), c being the class means of the support (S, L).

    A query whose class the support lacks has no prototype and is left out.
    """
    classes, index = y_support.unique(return_inverse=True)
    member = nn.functional.one_hot(index, len(classes)).to(support.dtype)
    prototypes = member.T @ support / member.sum(0).unsqueeze(1)
    known = torch.isin(y_query, classes)
    logits = -torch.cdist(query[known], prototypes, compute_mode="donot_use_mm_for_euclid_dist").square()
    return nn.functional.cross_entropy(logits, torch.searchsorted(classes, y_query[known]))
