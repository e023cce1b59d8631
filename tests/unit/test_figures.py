"""Figures show their data, say what was not run, carry the miniature mark, and are the same bytes twice."""

from pathlib import Path
from typing import Any

import matplotlib.text
import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.evidence import Evidence
from replication.report.figures.render import FIGURES, render, save
from replication.report.figures.supplement_accuracy import pool_bins
from replication.report.figures.supplement_cost import NOT_KEPT, RECORD_OPERATIONS
from replication.report.labels import CLASS_COLOURS, CLASS_LABELS, MINI_NOTE
from replication.report.printed_values import read_values
from replication.runs.outputs import evidence_behind
from replication.runs.settings import load_settings
from support.evidence_fixture import (
    DEMO,
    EXPECTED,
    STUDIES,
    without_models,
    write_benchmark,
    write_evidence,
    write_studies,
)

SETTINGS = load_settings(Path(__file__).parents[2])
PRINTED = read_values(Path(__file__).parents[2] / "workflow/config/printed_values.csv")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("results")
    write_evidence(base / "mini", [*EXPECTED, *DEMO], seeds=2, folds=2, miniature=True)
    write_evidence(base / "published", ["cifar10"])
    write_studies(base / "mini", seeds=1, miniature=True)
    write_studies(base / "published")
    write_benchmark(base / "mini", miniature=True)
    write_benchmark(base / "published")
    (base / "real").mkdir()
    return {name: base / name for name in ("mini", "published", "real")}


def drawn(root: Path, name: str) -> Any:
    names = evidence_behind(name, SETTINGS)
    expected = {key: entry for key, entry in (EXPECTED | STUDIES | DEMO).items() if key in names}
    return render(name, Evidence.found(root, expected), "Fixed sentence.", PRINTED)


def words(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text)).replace("\n", " ")


def legend(figure: Any) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_figure_is_the_same_bytes(roots: dict[str, Path], name: str, tmp_path: Path) -> None:
    for suffix in ("pdf", "png"):
        for copy in (1, 2):
            save(drawn(roots["published"], name)[0], tmp_path / f"{copy}.{suffix}")
        assert (tmp_path / f"1.{suffix}").read_bytes() == (tmp_path / f"2.{suffix}").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_miniature_data_is_marked_in_picture_and_caption(roots: dict[str, Path], name: str) -> None:
    figure, _, text, _ = drawn(roots["mini"], name)
    assert "miniature synthetic data" in words(figure)
    assert text.endswith(MINI_NOTE)
    assert "miniature" not in words(drawn(roots["published"], name)[0])


@pytest.mark.parametrize("name", FIGURES)
def test_without_evidence_a_figure_says_what_it_needs(roots: dict[str, Path], name: str) -> None:
    figure, frame, _, runs = drawn(roots["real"], name)
    assert "not run: needs" in words(figure)
    assert frame.empty
    assert runs == []


@pytest.mark.parametrize("left_out", [["clai-m", "clai-c"], ["clai-c"]])
def test_datasets_without_a_clai_model_are_drawn(left_out: list[str], tmp_path: Path) -> None:
    write_evidence(tmp_path / "published", ["pathmnist", "cifar10", "sleepedf-bands", "challenge2019"])
    without_models(tmp_path / "published", left_out)
    for name in FIGURES:
        _, frame, _, _ = drawn(tmp_path / "published", name)
        assert not set(frame.get("model", ())) & set(left_out), name


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_too_small(roots: dict[str, Path], name: str) -> None:
    figure = drawn(roots["mini"], name)[0]
    figure.canvas.draw()
    drawn_within, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn_within.x0, drawn_within.y0) >= 0
    assert drawn_within.x1 <= width
    assert drawn_within.y1 <= height
    for text in figure.findobj(matplotlib.text.Text):
        assert text.get_fontsize() >= 7, text.get_text()


def test_figure1_draws_conditioned_classes_apart_from_unknown_ones(roots: dict[str, Path]) -> None:
    figure, frame, _, runs = drawn(roots["published"], "figure1")
    assert sorted(frame["stage"].unique()) == [0, 1, 2, 3, 10]
    assert set(frame.query("stage == 0")["status"]) == {"unknown"}
    assert set(frame.query("stage == 3 and status == 'conditioned'")["label"]) == {0, 1}
    assert set(frame.query("stage == 10 and status == 'current'")["label"]) == {9}
    assert [run["seed"] for run in runs] == [0]
    assert {"class before $k$", "1 Airplane", "10 Truck"} <= legend(figure)


def test_figure2_colours_points_as_the_paper_does(roots: dict[str, Path]) -> None:
    figure, frame, _, _ = drawn(roots["published"], "figure2")
    missing, shown, _ = figure.axes
    assert "not run: needs pathmnist.npz" in " ".join(t.get_text() for t in missing.texts).replace("\n", " ")
    assert sorted(text.get_text() for text in shown.texts) == [str(k) for k in range(10)]
    assert len(shown.collections[0].get_offsets()) == len(frame)
    assert all(len(labels) <= len(CLASS_COLOURS) for labels in CLASS_LABELS.values())


def test_band_powers_take_the_panel_of_the_signals_where_these_were_not_run(tmp_path: Path) -> None:
    write_evidence(tmp_path / "real", ["cifar10", "sleepedf-bands"])
    figure, frame, _, _ = drawn(tmp_path / "real", "figure2")
    assert [axes.get_title() for axes in figure.axes][2] == "(c) Sleep-EDF, band powers"
    assert set(frame["dataset"]) == {"cifar10", "sleepedf-bands"}
    assert set(drawn(tmp_path / "real", "figure3")[1]["dataset"]) == {"cifar10", "sleepedf-bands"}
    write_evidence(tmp_path / "both", ["sleepedf", "sleepedf-bands"])
    assert set(drawn(tmp_path / "both", "figure2")[1]["dataset"]) == {"sleepedf"}
    assert set(drawn(tmp_path / "both", "figure3")[1]["dataset"]) == {"sleepedf"}


def test_figure3_shows_the_mean_of_the_seeds_and_each_floor(roots: dict[str, Path]) -> None:
    _, frame, _, _ = drawn(roots["published"], "figure3")
    history = pd.read_csv(roots["published"] / "cifar10" / "evidence" / "history.csv")
    last = history.query("model == 'clai-c' and epoch == 30")
    row = frame.query("model == 'clai-c' and epoch == 30").set_index("quantity")
    assert row.loc["loss", "mean"] == pytest.approx(last["loss"].mean())
    assert row.loc["loss", "sd"] == pytest.approx(last["loss"].std(ddof=1))
    assert row.loc["floor", "mean"] == pytest.approx(0.1)
    assert row.loc["validation_accuracy", "n"] == 3


def test_figure4_shades_the_event_in_both_kernels_signals_and_the_gaussian_processs(roots: dict[str, Path]) -> None:
    figure, frame, _, _ = drawn(roots["mini"], "figure4")
    spans = [patch for patch in figure.axes[0].patches if patch.get_width() > 0]
    assert [(span.get_x(), span.get_width()) for span in spans] == [(35.5, 12.0)]
    assert set(frame["model"]) == {"clai-m", "clai-c", "gp"}
    assert {"sepsis event", "latent mean ± sd"} <= legend(figure)


def test_figure_s2_shows_every_kernel_target_and_rule_with_its_interval(roots: dict[str, Path]) -> None:
    figure, frame, _, runs = drawn(roots["published"], "figureS2")
    assert len(frame) == 15 * 4 * 2
    assert (frame["low"] < frame["mean"]).all()
    assert len(runs) == 45
    assert {"rule: printed", "rule: parzen"} <= {axes.get_title() for axes in figure.axes}
    assert figure.axes[4].get_ylim()[0] == 0, "no calibration error is below 0"


def test_figure_s3_ends_where_all_methods_have_made_as_many_passes(roots: dict[str, Path]) -> None:
    figure, frame, _, _ = drawn(roots["published"], "figureS3")
    assert figure.axes[1].get_xlabel() == "Test accuracy after 100 passes"
    assert set(frame[frame["quantity"] == "test_accuracy"]["passes"]) == {100.0}
    curve = frame[(frame["model"] == "full_joint-all") & (frame["quantity"] == "validation_accuracy")]
    assert curve["mean"].tolist() == pytest.approx([0.05 * epoch for epoch in range(1, 11)])


def test_figure_s5_shows_what_was_measured_beside_what_was_predicted(roots: dict[str, Path]) -> None:
    figure, frame, _, runs = drawn(roots["published"], "figureS5")
    seconds = frame[frame["quantity"] == "seconds"]
    timed = seconds[seconds["predicted"].notna()]
    assert set(timed["variant"]) == {"printed", "sequential", "joint", "linear"}
    assert (timed["mean"] / timed["predicted"]).between(1, 1.02).all()
    assert set(frame["comparison"]) == {
        "batches", "classes", "sampling, 10 classes, share 0.1", "sampling, 2 classes, share 0.02",
    }  # fmt: skip
    assert len(runs) == 1
    assert len(figure.axes) == 6
    assert {"10 classes of equal size", "2 classes, one with a share of 0.02"} <= legend(figure)


def test_figure_s6_draws_the_median_and_range_of_each_method_against_time_and_operations(tmp_path: Path) -> None:
    write_studies(tmp_path / "real", seeds=3)
    path = tmp_path / "real/wide/evidence/history.csv"
    history = pd.read_csv(path).query("model == 'full_product'")
    history["validation_accuracy"] += 0.01 * history["seed"] ** 2
    methods = ("full_product", "cosine_zero", "cross-entropy", "supervised-contrastive")
    pd.concat([history.assign(model=name) for name in methods]).to_csv(path, index=False)
    figure, frame, _, _ = drawn(tmp_path / "real", "figureS6")
    assert set(frame["model"]) == set(methods)
    last = frame.query("model == 'full_product' and quantity == 'seconds'").iloc[-1]
    ended = history[history["epoch"] == history["epoch"].max()]
    assert last["x"] == pytest.approx(ended["seconds"].median())
    assert (last["median"], last["low"], last["high"], last["n"]) == pytest.approx((0.51, 0.5, 0.54, 3))
    left, right = figure.axes
    assert (left.get_xscale(), right.get_xscale()) == ("log", "log")
    assert any(list(line.get_xdata()) == [RECORD_OPERATIONS] for line in right.lines)
    assert all(any(set(line.get_ydata()) == {0.8046} for line in axes.lines) for axes in (left, right))
    assert {"CLaI-M", "CLaI-C", "Cross-entropy", "Supervised contrastive", "the paper's accuracy (80.46 %)"} <= legend(
        figure
    )


def test_figure_s6_says_that_older_evidence_has_no_times(tmp_path: Path) -> None:
    write_studies(tmp_path / "real", seeds=1)
    path = tmp_path / "real/wide/evidence/history.csv"
    pd.read_csv(path).drop(columns=["operations", "seconds", "validation_seconds"]).to_csv(path, index=False)
    figure, frame, _, runs = drawn(tmp_path / "real", "figureS6")
    assert words(figure).count(NOT_KEPT) == 2
    assert frame.empty
    assert runs == []


def test_figure_s4_shows_the_spread_over_folds(roots: dict[str, Path]) -> None:
    figure, frame, _, _ = drawn(roots["mini"], "figureS4")
    assert frame["sd"].notna().all()
    bands = sum(len(axes.collections) for axes in figure.axes)
    assert bands == len(frame[["dataset", "model"]].drop_duplicates())


def test_figure_s8_has_a_panel_a_claim_and_a_point_a_reading(roots: dict[str, Path]) -> None:
    figure, frame, _, runs = drawn(roots["published"], "figureS8")
    titles = {axes.get_title(loc="right").split("  ")[0] for axes in figure.axes} - {""}
    assert titles == {"1", "2", "3a", "3b", "4", "5", "6", "7", "8", "11", "15"}
    means = frame[frame["replicate"].astype(str) == ""]
    of_claim_1 = means[means["claim"] == "1"]
    assert set(of_claim_1["reading"]) == {
        "target zero, network of table 1",
        "target zero, network of the studies",
        "target product, network of the studies",
    }
    assert of_claim_1["estimate"].is_monotonic_increasing
    seeds = frame[(frame["replicate"].astype(str) != "") & (frame["claim"] == "1")]
    assert len(seeds) == of_claim_1["n"].sum()
    assert seeds.groupby("reading")["estimate"].mean().to_dict() == pytest.approx(
        of_claim_1.set_index("reading")["estimate"].to_dict()
    )
    assert "no evidence with an interval" in words(figure), "no sepsis data in this evidence"
    assert {record["run"].split("/")[0] for record in runs} == {"cifar10", "ablation", "decisive"}


def test_bins_are_pooled_by_their_counts() -> None:
    columns = ["model", "kind", "mapping", "bin", "n", "confidence", "accuracy"]
    rows = [("m", "top-label", "raw", 3, 1, 0.2, 1.0), ("m", "top-label", "raw", 3, 3, 0.3, 0.0)]
    pooled = pool_bins(pd.DataFrame(rows, columns=columns))
    assert pooled["n"].tolist() == [4]
    assert pooled["confidence"].tolist() == pytest.approx([0.275])
    assert pooled["accuracy"].tolist() == pytest.approx([0.25])


def test_a_model_without_a_colour_of_its_own_is_drawn_too(tmp_path: Path) -> None:
    write_evidence(tmp_path / "real", ["cifar10"])
    path = tmp_path / "real/cifar10/evidence/reliability.csv"
    frame = pd.read_csv(path)
    pd.concat([frame, frame[frame["model"] == "clai-c"].assign(model="newest")]).to_csv(path, index=False)
    figure, shown, _, _ = render("figureS1", Evidence.found(tmp_path / "real", EXPECTED), "Fixed sentence.", PRINTED)
    assert "newest" in words(figure)
    assert len(figure.axes[0].lines) == 1 + shown["model"].nunique()  # and the diagonal


def test_figure_s9_shows_the_first_run_with_class_and_similarity_of_each_reference(roots: dict[str, Path]) -> None:
    figure, frame, _, runs = drawn(roots["published"], "figureS9")
    titles = [axes.get_title().strip() for axes in figure.axes]
    assert [(run["run"], run["seed"]) for run in runs] == [("cifar10/clai-m/seed0", 0)]
    assert titles.count("0: 0.90") == 1
    assert titles.count("1: 0.90") == 1
    assert titles.count("2: 0.70") == 2
    assert {"CIFAR-10 (JPEG copy)\nclass 0\npredicted 0", "\nclass 0\npredicted 1"} <= {
        text.get_text() for axes in figure.axes for text in axes.texts
    }
    assert list(frame["role"]).count("image") == 2


def test_figure_s9_names_the_file_whose_pixels_are_no_picture(tmp_path: Path) -> None:
    write_evidence(tmp_path / "real", ["cifar10"])
    path = tmp_path / "real" / "cifar10" / "evidence" / "votes.csv.gz"
    pd.read_csv(path).assign(pixels="AAAA").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"votes\.csv\.gz: found pixels that are no picture of 4 x 4"):
        drawn(tmp_path / "real", "figureS9")
