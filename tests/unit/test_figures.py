"""Figures show their data, say what was not run, carry the miniature mark, and are legible at print size."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.text
import pandas as pd
import pytest

from replication.report.claims.judge import judge
from replication.report.figures.render import FIGURES, render, save
from replication.report.labels import MINI_NOTE
from replication.runs.registry import CLAIMS, CLAIMS_FIGURE
from support.published import PUBLISHED, VERDICTS, copy_evidence, evidence_for, without_models

LINE = 0.03
"""Width of a line (inches), which may lie on the edge of a figure."""


def drawn(name: str, root: Path = PUBLISHED) -> Any:
    claims = ()
    if FIGURES[name].judged:
        claims = VERDICTS if root.samefile(PUBLISHED) else judge(evidence_for(CLAIMS, root))
    return render(name, evidence_for(name, root), "Fixed sentence.", claims)


def words(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text)).replace("\n", " ")


@pytest.mark.parametrize("name", FIGURES)
def test_miniature_data_are_marked_and_nothing_is_cut_off_or_too_small(name: str, tmp_path: Path) -> None:
    (tmp_path / "mini").symlink_to(PUBLISHED)
    figure, _, text, _ = drawn(name, tmp_path / "mini")
    assert "miniature synthetic data" in words(figure)
    assert text.endswith(MINI_NOTE)
    figure.canvas.draw()
    drawn_within, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn_within.x0, drawn_within.y0) >= -LINE
    assert drawn_within.x1 <= width + LINE
    assert drawn_within.y1 <= height + LINE
    for part in figure.findobj(matplotlib.text.Text):
        assert part.get_fontsize() >= 7, part.get_text()


def test_a_matplotlibrc_changes_nothing(tmp_path: Path) -> None:
    rows = {"figure.facecolor": "red", "lines.linewidth": 9, "savefig.bbox": "tight", "text.usetex": True}
    for name, settings in (("a.png", {}), ("b.png", rows)):
        with mpl.rc_context(settings):
            save(drawn("supplement/figureS3")[0], tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_without_evidence_a_figure_says_what_it_needs(name: str, tmp_path: Path) -> None:
    figure, frame, _, runs = drawn(name, tmp_path)
    assert "not run: needs" in words(figure)
    assert frame.empty
    assert runs == []


def test_datasets_without_a_clai_model_are_drawn(tmp_path: Path) -> None:
    left_out = ["clai-m", "clai-c"]
    root = copy_evidence(tmp_path / "published", "pathmnist", "cifar10", "sleepedf-bands", "challenge2019")
    without_models(root, left_out)
    for name in FIGURES:
        figure, frame, _, _ = drawn(name, root)
        assert not set(frame.get("model", ())) & set(left_out), name
        assert "nan" not in words(figure).split(), name


def test_figures_of_training_show_the_mean_of_the_seeds_and_each_floor() -> None:
    _, frame, _, _ = drawn("supplement/figureS5")
    history = pd.read_csv(PUBLISHED / "cifar10" / "evidence" / "history.csv")
    last = history.query("cell == 'clai-c' and epoch == epoch.max()")
    row = frame.query("dataset == 'cifar10' and model == 'clai-c'").groupby("quantity").last()
    assert row.loc["loss", "mean"] == pytest.approx(last["loss"].mean())
    assert row.loc["loss", "sd"] == pytest.approx(last["loss"].std(ddof=1))
    assert row.loc["floor", "mean"] == pytest.approx(last["floor"].mean())
    assert row.loc["validation_accuracy", "n"] == len(last)


def test_the_verdicts_at_a_glance_have_a_row_each_and_their_numbers_stand_on_the_right_side() -> None:
    figure, frame, _, _ = drawn(CLAIMS_FIGURE)
    judged = {claim["id"]: claim for claim in VERDICTS if claim["outcome"]}
    assert list(frame["claim"].unique()) == list(judged)
    for name, rows in frame.groupby("claim"):
        numbers = [number for numbers in judged[str(name)]["decisive"].values() for number in numbers]
        assert [number.split(" with ")[0] for number in numbers] == list(rows["number"].dropna())
    known = frame.dropna(subset="distance")
    assert (known.loc[known["verdict"] == "not reproduced", "to"] < 0).all()
    assert (known.loc[known["verdict"].isin(["reproduced", "reached, by another training"]), "from"] > -1).all()
    unsure = known[known["verdict"] == "inconclusive"]
    assert ((unsure["from"] < 0) & (unsure["to"] > 0)).all()
    for word in {claim["outcome"] for claim in judged.values()}:
        assert word in words(figure)
