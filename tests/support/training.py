"""Settings of a small training, for tests to change."""

from clai.trainer import TrainingSettings

SETTINGS = TrainingSettings(
    epochs=4, batch_size=8, optimiser="adamw", learning_rate=1e-2, momentum=0.0, weight_decay=0.0,
    learning_rate_schedule="one_cycle", warmup=0.25, precision="float32", schedule="joint", references=1,
    reference_reduction="mean", pair_weighting="none", samples_per_class=None, target="zero", seed=0,
)  # fmt: skip
