"""The report is one file that opens from the file system in a browser and shows everything."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from support.browser import Browser, executable
from support.copies import REPOSITORY, Tree

pytestmark = pytest.mark.slow

CATEGORIES = ["Claims", "Figures", "Runs", "Settings", "Tables"]
PUBLISHED, MINIATURE = "Published evidence", "Miniature synthetic data"


@pytest.fixture(scope="module")
def report(miniature: Tree) -> Path:
    """What `make report` leaves."""
    for arguments in (["--cores", "4", "all", "pages"], ["--report", "report/report.html", "all", "pages"]):
        run = miniature.snakemake(*arguments)
        assert run.returncode == 0, run.stdout[-20000:]
    return miniature.path / "report" / "report.html"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if executable() is None:
        pytest.skip("needs Chromium")
    with Browser(tmp_path / "profile") as opened:
        yield opened


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("mini", ["", "mini/"])
def test_article_is_typeset_with_the_numbers_of_its_tables(miniature: Tree, mini: str) -> None:
    run = miniature.snakemake("--cores", "2", f"report/{mini}article.pdf")
    assert run.returncode == 0, run.stdout[-20000:]
    assert (miniature.path / "report" / mini / "article.pdf").read_bytes().startswith(b"%PDF")
    numbers = (miniature.path / "report" / mini / "article_numbers.tex").read_text()
    for table, metric, digits in (("table1", "accuracy", 2), ("table3", "auroc", 3)):
        frame = pd.read_csv(miniature.path / "paper_figures" / mini / f"{table}.csv")
        for row in frame[frame["metric"] == metric].dropna(subset="mean").to_dict("records"):
            name = f"val:{table}:{row['dataset']}:{row['model']}:{metric}"
            assert f"{name}\\endcsname{{{row['mean']:.{digits}f}" in numbers


def show(browser: Browser, report: Path, category: str, evidence: str, output: str) -> None:
    """Open an output as a reader does: category, evidence, the eye beside the output."""
    browser.open(report)
    browser.click(category)
    browser.click(evidence)
    row = f"[...document.querySelectorAll('tr')].find(row => row.cells[0]?.textContent.trim() === '{output}')"
    browser.until(f"!!{row}")
    browser.run(f"{row}.querySelector('a, button').click()")
    browser.until("!!document.querySelector('iframe')")
    loaded = f"document.readyState === 'complete' && document.querySelector('h1')?.textContent === '{output}'"
    browser.until(loaded, frame=True)


def test_it_is_one_file_of_moderate_size(report: Path) -> None:
    assert report.stat().st_size < 25e6


def test_it_opens_from_the_file_system_without_a_complaint_or_a_request(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.until("document.body.innerText.includes('Settings')")
    names = browser.run("[...document.querySelectorAll('#app nav a, #app li, #app a')].map(x => x.textContent.trim())")
    assert [name for name in CATEGORIES if name not in names] == []
    assert "Replication of" in browser.run("document.body.innerText")
    assert browser.complaints == []


def test_statistics_of_the_runs_are_drawn(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.click("Statistics")
    browser.until("document.querySelectorAll('canvas, svg.marks').length > 0")
    assert browser.complaints == []


@pytest.mark.parametrize("evidence", [PUBLISHED, MINIATURE])
def test_a_table_shows_its_numbers_and_sorts(browser: Browser, report: Path, evidence: str) -> None:
    show(browser, report, "Tables", evidence, "Table 1")
    folder = report.parents[1] / "paper_figures" / ("" if evidence == PUBLISHED else "mini")
    means = pd.read_csv(folder / "table1.csv").query("metric == 'accuracy'")["mean"].dropna()
    column = "[...document.querySelectorAll('thead th')].findIndex(x => x.textContent === 'Accuracy')"
    read = f"(i => [...document.querySelector('tbody').rows].map(row => row.cells[i].textContent))({column})"

    def numbers() -> list[str]:
        return [text.split()[0] for text in browser.run(read, frame=True) if text and not text.startswith("[")]

    assert sorted(numbers()) == sorted(f"{mean:.4g}" for mean in means)
    browser.run(f"document.querySelectorAll('thead th')[{column}].click()", frame=True)
    assert numbers() == [f"{mean:.4g}" for mean in sorted(means)]
    browser.run(f"document.querySelectorAll('thead th')[{column}].click()", frame=True)
    assert numbers() == [f"{mean:.4g}" for mean in sorted(means, reverse=True)]
    assert (".mark" in browser.run("document.querySelector('.mark') ? '.mark' : ''", frame=True)) == (
        evidence == MINIATURE
    )
    assert "Runs behind it" in browser.run("document.body.innerText", frame=True)
    assert browser.complaints == []


@pytest.mark.parametrize("evidence", [PUBLISHED, MINIATURE])
def test_a_figure_is_drawn_with_its_caption(browser: Browser, report: Path, evidence: str) -> None:
    show(browser, report, "Figures", evidence, "Figure 3")
    assert browser.until("document.querySelector('img').naturalWidth", frame=True) > 300
    caption = (REPOSITORY / "workflow" / "report" / "figure3.rst").read_text().split(".")[0]
    assert " ".join(caption.split()) in browser.run("document.body.innerText", frame=True)
    assert browser.complaints == []


def test_claims_stand_with_their_verdicts(browser: Browser, report: Path) -> None:
    show(browser, report, "Claims", PUBLISHED, "Claims")
    verdicts = pd.read_csv(report.parents[1] / "paper_figures" / "claims.csv")["verdict"]
    read = "[...document.querySelectorAll('.yes, .no, .open')].map(x => x.textContent)"
    assert browser.run(read, frame=True) == verdicts.tolist()
    assert browser.complaints == []


@pytest.mark.parametrize(("output", "text"), [("Runs", "cifar10/clai-m/seed0"), ("Settings", "training.epochs")])
def test_runs_and_settings_are_listed(browser: Browser, report: Path, output: str, text: str) -> None:
    show(browser, report, output, PUBLISHED, output)
    assert text in browser.run("document.querySelector('table').innerText", frame=True)
    assert browser.complaints == []
