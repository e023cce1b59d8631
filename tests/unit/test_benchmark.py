"""The benchmark compares the same work, counts what the algorithms do, and its summaries follow from its rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from clai import algorithms_as_printed as printed
from clai.batches import Vectors
from clai.encoders import ConditionedHead, Encoder
from clai.kernels import Cosine, build
from clai.learning import collaborative_learning
from replication.benchmark import analysis
from replication.benchmark.analysis import predicted_seconds
from replication.benchmark.classifiers import measure_classifiers
from replication.benchmark.epochs import measure_epochs, measure_precisions
from replication.benchmark.inference import InferenceCase, random_embeddings, vote_printed, vote_streamed
from replication.benchmark.memory import peak, peaks_alone
from replication.benchmark.timing import COLUMNS
from replication.benchmark.training import SCHEDULES, measure_exact
from replication.models.hardware import choose_precision
from replication.models.run import training_settings
from replication.runs.settings import load_settings

CPU = torch.device("cpu")
BATCHES, BATCH, CLASSES = 5, 4, 3


def settings() -> dict[str, Any]:
    """Those of config.yaml, with a small encoder."""
    whole = load_settings(Path(__file__).parents[2])
    return whole | {
        "embedding_size": 4,
        "encoder": {"trunk": "resnet2d", "width": 4, "blocks": [1, 1], "pool": False},
        "training": whole["training"] | {"batch_size": 4, "precision": "float32"},
    }


class Counting(nn.Module):
    """A trunk that counts the samples that go through it forward, and those that gradients come back for."""

    features = 4

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.forward_samples, self.backward_samples = nn.Linear(3, 4), 0, 0

    def forward(self, x: Tensor) -> Tensor:
        self.forward_samples += len(x)
        features = self.layer(x)
        features.register_hook(self._count)
        return features

    def _count(self, gradient: Tensor) -> None:
        self.backward_samples += len(gradient)


@pytest.mark.parametrize("variant", SCHEDULES)
def test_predictions_count_the_passes_that_each_schedule_makes(variant: str) -> None:
    trunk = Counting()
    encoder = Encoder(trunk, ConditionedHead(4, CLASSES, 2))
    x, y = torch.randn(BATCHES * BATCH, 3), torch.arange(BATCHES * BATCH) % CLASSES
    base = training_settings(settings(), CLASSES, 0)
    given = replace(
        base, epochs=1, batch_size=BATCH, schedule="sequential" if variant == "sequential" else "joint",
        references=1 if variant == "linear" else "all",
    )  # fmt: skip
    if variant == "printed":
        theta: list[Tensor] = list(encoder.parameters())
        printed.learn_multiclass(
            lambda b, k: encoder(b, k)[0], theta, lambda: printed.cosine, printed.target_product, x, y,
            CLASSES, BATCH, 1, 1e-3, torch.randperm,
        )  # fmt: skip
    else:
        collaborative_learning(encoder, Cosine(), Vectors(x, y), CLASSES, given, dict, None)
    assert predicted_seconds(variant, BATCHES, CLASSES, 1.0, 0.0) == trunk.forward_samples / BATCH
    assert predicted_seconds(variant, BATCHES, CLASSES, 0.0, 1.0) == trunk.backward_samples / BATCH


def test_what_is_timed_side_by_side_gives_the_same_result() -> None:
    rows = measure_exact(
        batches=2, batch_size=4, check_batches=3, check_batch_size=4, repetitions=1, settings=settings(), device=CPU
    )
    gaps = {setting: value for _, _, setting, _, quantity, value in rows if quantity == "difference"}
    assert len(gaps) == 2
    assert max(gaps.values()) < 1e-9
    for classes in (1, 3):
        z, z_reference, labels = random_embeddings(7, 60, classes, 4, torch.float64, CPU)
        for kernel in (Cosine().double(), build("gaussian", 4, "full").double()):
            slow = vote_printed(kernel, z, z_reference, labels, 12)
            torch.testing.assert_close(slow, vote_streamed(kernel, z, z_reference, labels), atol=1e-9, rtol=0)


def test_epochs_of_clai_and_of_other_losses_are_timed_on_each_trunk() -> None:
    encoders = [{"trunk": "resnet2d", "width": 2, "blocks": [1]}, {"trunk": "convnet", "width": 2}]
    rows = measure_epochs(
        encoders=encoders, items=16, image_size=9, classes=3, repetitions=2, settings=settings(), device=CPU
    )
    variants = ("clai-c", "clai-m", "cross-entropy", "supervised-contrastive", "bare")
    expected = {
        (variant, f"trunk={trunk};width=2;N=16;C=3;B=4", repetition)
        for variant in variants for trunk in ("resnet2d", "convnet") for repetition in (0, 1)
    }  # fmt: skip
    assert {(variant, setting, repetition) for _, variant, setting, repetition, _, _ in rows} == expected
    assert min(row[-1] for row in rows) > 0
    titles = set(analysis.comparisons(pd.DataFrame(rows, columns=COLUMNS))["second"])
    assert titles == {"cross-entropy", "supervised-contrastive", "bare"}


@pytest.mark.parametrize(("instructions", "chosen"), [("AVX2", "float32"), ("DEFAULT", None)])
def test_the_default_precision_is_timed_against_fixed_ones_under_the_instructions(
    monkeypatch: pytest.MonkeyPatch, instructions: str, chosen: str | None
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    rows = measure_precisions(
        encoders=[{"width": 2, "blocks": [1]}], items=8, image_size=9, repetitions=1, instructions=[instructions],
        settings=settings(), device=CPU,
    )  # fmt: skip
    assert sorted(row[1] for row in rows) == ["auto", "bfloat16", "float32"]
    (setting,) = {row[2] for row in rows}
    chosen = chosen or choose_precision("auto", CPU)
    assert setting == f"instructions={instructions};auto={chosen};trunk=resnet2d;width=2;N=8"


def test_votes_and_classifiers_of_scikit_learn_predict_from_the_same_embeddings() -> None:
    rows = measure_classifiers(test=10, references=60, classes=3, repetitions=1, settings=settings(), device=CPU)
    assert sorted(row[1] for row in rows) == ["clai-c", "clai-m", "k-neighbours", "svm"]
    assert {row[2] for row in rows} == {"P=10;R=60;C=3"}
    table = analysis.comparisons(pd.DataFrame(rows, columns=COLUMNS))
    seconds = {row[1]: row[-1] for row in rows}
    for row in table.to_dict("records"):
        assert row["ratio"] == pytest.approx(seconds[str(row["first"])] / seconds[str(row["second"])])
    assert len(table) == 4


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    """S of 40 MB in the printed vote, not in the streamed one; what this process holds does not count."""
    ballast = torch.ones(2**28, dtype=torch.uint8)
    cases = [InferenceCase(v, "cosine", 2000, 5000, 1, 50, settings(), "cpu") for v in ("printed", "streamed")]
    slow, fast = peaks_alone(cases)
    assert slow - fast > 30
    assert fast < peak("cpu") - len(ballast) / 2**20 + 50


def rows() -> pd.DataFrame:
    """Times of an exact law, C M (M - 1) ms printed, and a ratio that is 2 and 4 in two repetitions."""
    found = []
    for repetition in (0, 1):
        for comparison, shapes in (("batches", [(2, 3), (8, 3)]), ("classes", [(4, 2), (4, 10)])):
            for m, c in shapes:
                for variant, factor in (("printed", 1.0), ("joint", 0.5), ("linear", 0.5 / (2 + 2 * repetition))):
                    row = (comparison, variant, f"M={m};C={c};B=4", repetition)
                    found.append((*row, "seconds", 1e-3 * c * m * (m - 1) * factor))
                    found.append((*row, "predicted", 1e-3 * c * m * (m - 1) * factor * 0.9))
    found.append(("batches", "joint", "M=8;C=3;B=4", 0, "peak_memory_mb", 30.0))
    found.append(("batches", "linear", "M=8;C=3;B=4", 0, "peak_memory_mb", 40.0))
    found.append(("inference", "streamed", "kernel=cosine;P=1;R=2;C=3", 0, "peak_memory_mb", 500.0))
    for n in (10, 100):
        for repetition, error in ((0, 1 / n), (1, 3 / n)):
            found.append(("sampling", "printed", f"C=2;share=0.1;R=200;n={n}", repetition, "error", error))
    return pd.DataFrame(found, columns=COLUMNS)


def test_ratios_are_of_the_same_repetition_at_the_largest_size() -> None:
    table = analysis.comparisons(rows())
    row = table[(table["quantity"] == "seconds") & (table["second"] == "linear")].to_dict("records")
    assert len(row) == 1
    assert row[0]["setting"] == "M=8;C=3;B=4"
    assert (row[0]["ratio"], row[0]["low"], row[0]["high"], row[0]["n"]) == pytest.approx((3, 2, 4, 2))
    assert row[0]["counted"] == pytest.approx(3)
    memory = table[table["quantity"] == "peak_memory_mb"].set_index("second")
    assert memory.loc["linear", "ratio"] == pytest.approx(0.75)
    assert memory.loc["streamed", "second_value"] == 500
    assert np.isnan(memory.loc["streamed", "first_value"])


def test_growth_is_the_power_in_pairs_of_batches_and_in_classes() -> None:
    """Also on a machine that slows down in the longer runs, and in the second repetition."""
    found = []
    for repetition in (0, 1):
        for comparison, shapes in (("batches", [(2, 3), (4, 3), (8, 3)]), ("classes", [(4, 2), (4, 10), (4, 20)])):
            for m, c in shapes:
                slow = (1 + m * c / 100) * (1 + repetition)
                row = (comparison, "printed", f"M={m};C={c};B=4", repetition)
                found.append((*row, "seconds", m * (m - 1) * c * slow))
                found.append((*row, "predicted", predicted_seconds("printed", m, c, 0.1, 0.2) * slow))
    frame = pd.DataFrame(found, columns=COLUMNS)
    for comparison in ("batches", "classes"):
        assert analysis.exponent(frame, comparison, "printed", "passes").tolist() == pytest.approx([1, 1])
        assert (analysis.exponent(frame, comparison, "printed", "seconds") > 1.01).all()
    assert analysis.exponent(frame, "batches", "sequential", "passes").empty


def test_curves_and_samples_are_means_over_repetitions() -> None:
    curves = analysis.curves(rows()).set_index(["quantity", "comparison", "variant", "x"])
    assert curves.loc[("seconds", "classes", "printed", 10), "mean"] == pytest.approx(0.12)
    assert curves.loc[("seconds", "classes", "printed", 10), "predicted"] == pytest.approx(0.108)
    sampled = analysis.sampling(rows()).set_index(["rule", "n", "quantity"])["mean"]
    assert sampled["printed", 100, "error"] == pytest.approx(0.02)
