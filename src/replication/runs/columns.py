"""Columns of the files that an evidence folder holds: written by the workflow's scripts, read by tables, figures and claims."""

COLUMNS: dict[str, list[str]] = {
    "metrics.csv": ["name", "cell", "seed", "fold", "rule", "shares", "metric", "value"],
    "history.csv": [
        "name", "cell", "seed", "fold", "epoch", "loss", "floor", "alignment", "centred_alignment",
        "validation_accuracy", "learning_rate",
    ],
    "reliability.csv": ["model", "seed", "fold", "kind", "mapping", "bin", "n", "confidence", "accuracy"],
    "similarity.csv": ["model", "seed", "class_a", "class_b", "similarity"],
    "tsne.csv.gz": ["model", "x", "y", "label"],
    "stages.csv.gz": ["stage", "x", "y", "label"],
    "votes.csv.gz": [
        "model", "image", "predicted", "role", "place", "item", "label", "similarity", "vote", "height", "width", "pixels",
    ],
    "intervals.csv": ["model", "other", "metric", "value", "low", "high", "patients", "draws"],
    "comparisons.csv": ["model", "other", "metric", "value", "low", "high", "p", "samples", "seeds", "draws"],
    "signals.csv": ["model", "hour", "signal", "value", "sd", "event"],
    "areas.csv": ["model", "since_onset", "area", "low", "high", "stays"],
    "latent.csv": ["model", "seed", "fold", "quantity", "value"],
    "alignment.csv": ["model", "seed", "epoch", "kernel", "centred_alignment"],
    "agreement.csv": ["model", "seed", "fold", "share", "quantity", "value"],
    "theory.csv": ["check", "setting", "quantity", "value"],
    "benchmark.csv": ["comparison", "variant", "setting", "repetition", "quantity", "value"],
}  # fmt: skip

STUDY_HISTORY = [*COLUMNS["history.csv"], "turn_change", "operations", "seconds"]
"""Columns of the history of a study.

Where classes take turns, `turn_change` is what the later ones do to the ROC-AUC of a class (`replication.models.clai.Turns`).
The others add up the floating-point operations and the wall time (s) of the steps.
"""
