"""The registry of models: everything that the workflow, the tables and the figures know of one stands in its entry.

Wildcard constraints, the schema's names, the order of table rows, titles, colours and the settings whose change refits a model
derive from here. A new kernel is a class in `clai.kernels` and an entry here. A new baseline on embeddings is a module in
`replication.models` and an entry here (docs/extending.md).
"""

from dataclasses import dataclass
from typing import Literal

Rule = Literal["train_model", "fit_embedding_baseline", "fit_deep_kernel_gp", "fit_row_classifiers"]
"""Scripts of the workflow that fit models. A rule has the name of its script; two rules share `fit_row_classifiers`."""

# These settings decide a training and its history. The validation figures of CLaI's history are votes, so settings of
# inference are among them.
_TRAINING = (
    "device", "threads", "encoder", "target", "normalise_test_separately", "hourly", "validation_share_recordings", "training",
)  # fmt: skip
_CLASSIFIER = (*_TRAINING, "inference.validation_samples", "inference.mirror")
_CLAI = (
    *_CLASSIFIER, "embedding_size", "kernel", "inference.validation_references", "inference.references",
)  # fmt: skip
_ROWS = ("threads", "hourly", "validation_share_recordings")


@dataclass(frozen=True)
class Model:
    """A model as tables, figures and the workflow know it.

    Args:
        title: name in tables and figures.
        reads: settings that decide its fit, dotted below their block.
        colour: in figures, as #RRGGBB.
        rule: what fits it on a dataset; `CELLS` says what fits it in a cell of a study.
        kernel: for CLaI, the kernel's name in `clai.kernels.KERNELS`.
        dash: line style in figures.
        fit: for `fit_embedding_baseline`, `module:function` that fits it.
        latent: whether it leaves latent signals (figure 4).
        recordings_only: whether it is a model of recordings with two classes alone.
    """

    title: str
    reads: tuple[str, ...]
    colour: str
    rule: Rule
    kernel: str | None = None
    dash: str = "-."
    fit: str | None = None
    latent: bool = False
    recordings_only: bool = False


# In the order of table rows; the colours are those of Okabe and Ito.
MODELS: dict[str, Model] = {
    "clai-m": Model("CLaI-M", _CLAI, "#0072B2", "train_model", kernel="gaussian", dash="-"),
    "clai-c": Model("CLaI-C", _CLAI, "#D55E00", "train_model", kernel="cosine", dash="--"),
    "cross-entropy": Model("Cross-entropy (same encoder)", _CLASSIFIER, "#009E73", "train_model"),
    "supervised-contrastive": Model(
        "Supervised contrastive",
        (*_CLASSIFIER, "embedding_size", "inference.validation_references", "baselines.supervised_contrastive"),
        "#F0E442",
        "train_model",
    ),
    "student-t-mixture": Model(
        "Mixture of Student-t",
        ("threads", "baselines.student_t_mixture", "validation_share_recordings"),
        "#CC79A7",
        "fit_embedding_baseline",
        fit="replication.models.student_t_mixture:choose_student_t_mixture",
    ),
    "deep-kernel-gp": Model(
        "Deep-kernel Gaussian process",
        (*_TRAINING, "embedding_size", "baselines.gp.inducing_points"),
        "#56B4E9",
        "fit_deep_kernel_gp",
        latent=True,
        recordings_only=True,
    ),
    "gp": Model(
        "Gaussian process",
        (*_ROWS, "baselines.gp"),
        "#E69F00",
        "fit_row_classifiers",
        latent=True,
        recordings_only=True,
    ),
    "gradient-boosting": Model(
        "Gradient boosting", (*_ROWS, "baselines.gradient_boosting"), "#000000", "fit_row_classifiers"
    ),
    "logistic-regression": Model(
        "Logistic regression", (*_ROWS, "baselines.logistic_regression"), "#7F7F7F", "fit_row_classifiers"
    ),
    "constant": Model("Constant at the prevalence", _ROWS, "#BDBDBD", "fit_row_classifiers", recordings_only=True),
}

CELLS: dict[Rule, str] = {
    "train_model": "replication.experiments.network_cell:fit_cell",
    "fit_embedding_baseline": "replication.experiments.embedding_baselines:fit_cell",
    "fit_deep_kernel_gp": "replication.experiments.deep_kernel_gp:fit_cell",
    "fit_row_classifiers": "replication.experiments.row_cell:fit_cell",
}
"""By the rule that fits a model on a dataset, `module:function` that fits and measures it in a cell of a study."""


def fitted_by(*rules: Rule) -> list[str]:
    """Return the models that these rules fit, in table order."""
    return [name for name, model in MODELS.items() if model.rule in rules]


CLAI: list[str] = [name for name, model in MODELS.items() if model.kernel is not None]
"""The models of Collaborative Learning."""
EMBEDDING = "clai-c"
"""The earlier, cosine form of CLaI, whose long tails motivate the mixture."""
EMBEDDING_BASELINES: list[str] = fitted_by("fit_embedding_baseline")
"""The models that are fitted on the embeddings of `EMBEDDING`; the settings of one are `baselines.<name with underscores>`."""
