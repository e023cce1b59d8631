"""The article's numbers are those of the tables, and LaTeX stops at one that is not there."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from clai.errors import InputError
from replication.report.article import (
    claims_macros,
    claims_tex,
    macros_tex,
    not_run_macros,
    results_macros,
    runs_macros,
    supplement_tex,
)
from replication.report.latex import typeset

TEMPLATE = Path(__file__).parents[2] / "workflow" / "report" / "article.tex"
COLUMNS = ["dataset", "model", "metric", "mean", "sd", "n", "printed", "data"]


@pytest.fixture
def frames() -> dict[str, pd.DataFrame]:
    table1 = [
        ("cifar10", "clai-m", "accuracy", 82.653, 0.347, 3, 80.46, "CIFAR-10 (JPEG copy)"),
        ("cifar10", "cross-entropy", "ece", 0.03576, None, 1, None, "CIFAR-10 (JPEG copy)"),
        ("sleepedf", "clai-m", "accuracy", None, None, 0, 58.49, "not run: needs Sleep-EDF"),
    ]
    table3 = [("mimic-iv", "clai-m", "auroc", None, None, 0, 0.804, "not run: needs MIMIC-IV")]
    return {"table1": pd.DataFrame(table1, columns=COLUMNS), "table3": pd.DataFrame(table3, columns=COLUMNS)}


def test_macros_hold_the_numbers_as_the_tables_print_them(frames: dict[str, pd.DataFrame]) -> None:
    macros = results_macros(frames)
    assert macros["table1:cifar10:clai-m:accuracy"] == "82.65 (0.35)"
    assert macros["table1:cifar10:clai-m:accuracy:printed"] == "80.46"
    assert macros["table1:cifar10:clai-m:accuracy:n"] == "3"
    assert macros["table1:cifar10:cross-entropy:ece"] == "0.036"
    assert macros["table3:mimic-iv:clai-m:auroc:printed"] == "0.804"


def test_what_was_not_run_has_no_macro_and_is_named(frames: dict[str, pd.DataFrame]) -> None:
    macros = results_macros(frames)
    assert "table1:sleepedf:clai-m:accuracy" not in macros
    assert "table1:sleepedf:data" not in macros
    assert not_run_macros(frames) == {"notrun": "Sleep-EDF; MIMIC-IV"}
    assert not_run_macros({"table1": frames["table1"].iloc[:2]}) == {}


def test_verdicts_and_runs_are_counted() -> None:
    verdicts = ["reproduced", "reproduced", "not reproduced"]
    claims = pd.DataFrame({"id": range(1, 4), "claim": "A & B", "verdict": verdicts, "evidence": ["50 %", None, "c_d"]})
    macros = claims_macros(claims)
    assert (macros["claims:All"], macros["claims:Reproduced"], macros["claims:NotReproduced"]) == ("3", "2", "1")
    assert (macros["claims:NotTestable"], macros["claim:3"]) == ("0", "not reproduced")
    table = claims_tex(claims)
    assert r"A \& B & reproduced & 50 \% \\" in table
    assert "& -- " in table
    records = [{"wall_seconds": 1800, "hardware": "2 cores", "commit": "a" * 40}] * 3
    assert runs_macros(records)["runs:hours"] == "1.5"
    assert runs_macros(records)["runs:commits"] == "a" * 10


def test_supplement_keeps_the_numbers_of_its_outputs_and_leaves_out_what_has_no_data() -> None:
    contents = {name: {"data": ["x"], "caption": name} for name in ("table1", "tableS1", "tableS3", "figureS2")}
    text = supplement_tex(contents | {"tableS4": {"data": [], "caption": ""}})
    assert re.findall(r"\\input\{(\w+)", text) == ["tableS1", "tableS3"]
    assert re.findall(r"\\setcounter\{(\w+)\}\{(\d+)\}", text) == [("table", "0"), ("table", "2"), ("figure", "1")]


def test_text_of_the_article_types_no_number_in() -> None:
    body = TEMPLATE.read_text().split(r"\begin{document}")[1]
    assert not re.findall(r"(?<![\w:{-])\d+\.?\d*", re.sub(r"\\(?:setcounter|addtocounter)\{\w+\}\{-?\d\}", "", body))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_knows_the_macros_repeats_exactly_and_stops_at_an_unknown_one(tmp_path: Path) -> None:
    source = tmp_path / "text.tex"
    head = "\\documentclass{article}\\input{numbers.tex}\\pdfinfoomitdate=1\\pdftrailerid{}\n\\begin{document}"
    numbers = {"numbers.tex": macros_tex({"table1:a:gp:f1": "50 % & more"})}
    source.write_text(head + r"\val{table1:a:gp:f1} \ifval{table1:b:gp:f1}{\val{table1:b:gp:f1}}{none}\end{document}")
    for name in ("one.pdf", "two.pdf"):
        typeset(source, numbers, [], tmp_path / name)
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
    source.write_text(head + r"\val{table1:b:gp:f1}\end{document}")
    with pytest.raises(InputError, match="no number table1:b:gp:f1"):
        typeset(source, numbers, [], tmp_path / "three.pdf")


def test_a_missing_latex_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="texlive-latex-extra"):
        typeset(TEMPLATE, {}, [], tmp_path / "article.pdf")
