"""Tables are legible where the article sets them: no letter below 7 pt, nothing beyond the line or the page."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SMALLEST, FOOTNOTESIZE = 7.0, 8.0  # pt
TRACKED = sorted((REPOSITORY / "paper_figures").glob("table*.tex"))

MEASURE = r"""
\let\resize\resizebox
\renewcommand{\resizebox}[3]{\setbox0\hbox{#3}\typeout{WIDTH \the\wd0 \space OF \the\linewidth}\resize{#1}{#2}{#3}}
"""


def article(body: str) -> str:
    """A document with the article's page and packages."""
    preamble = (REPOSITORY / "workflow/report/article.tex").read_text().split(r"\begin{document}")[0]
    preamble = preamble.split(r"\title{")[0].replace(r"\input{numbers.tex}", "")
    return f"{preamble}{MEASURE}\\begin{{document}}\n{body}\\end{{document}}\n"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("path", TRACKED, ids=lambda path: path.stem)
def test_no_table_is_set_below_7_pt(path: Path, tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_text(article(path.read_text()))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    sizes = [float(width) for width in re.findall(r"WIDTH ([\d.]+)pt", done.stdout)]
    (line,) = {float(width) for width in re.findall(r"OF ([\d.]+)pt", done.stdout)} or {1.0}
    shrunk = [min(1.0, line / width) for width in sizes]
    assert all(FOOTNOTESIZE * factor >= SMALLEST for factor in shrunk), f"{min(shrunk) * FOOTNOTESIZE:.1f} pt"
    assert "Overfull \\hbox" not in done.stdout
    assert "Float too large" not in done.stdout
