"""Pages of the report show what the files hold, and nothing in a cell becomes markup."""

import base64
import io
import re

import pandas as pd
from PIL import Image

from replication.report.html_pages import output_page, readable, runs_page, settings_page, sortable

RUN = {
    "run": "a/gp/seed0/fold1", "seed": 0, "fold": 1, "device": "cpu", "hardware": "2 cores", "threads": 2, "wall_seconds": 1.5,
    "peak_memory_mb": 9, "pairs": None, "commit": "f" * 40, "dirty": False, "config_hash": "ab", "command": "snakemake x",
    "data": {"raw.zip": "sha256:12"}, "versions": {"torch": "2"}, "settings": {"epochs": 3},
    "evaluation": {"config_hash": "cd", "settings": {"epochs": 3, "bins": 15}},
}  # fmt: skip
CONTENT = {"caption": "What <b>it</b> shows.", "evidence": "published", "runs": [RUN["run"]]}


def tidy() -> pd.DataFrame:
    rows = [
        ("x", "gp", "f1", 0.5, 0.01, 0.7),
        ("x", "gp", "auroc", 0.75, None, None),
        ("y", "clai-m", "f1", None, None, 0.7),
    ]
    return pd.DataFrame(rows, columns=["dataset", "model", "metric", "mean", "sd", "printed"])


def test_metrics_of_a_tidy_frame_become_columns() -> None:
    table = readable(tidy()).set_index("dataset")
    assert list(table) == ["model", "F1-score", "AUROC"]
    assert table.loc["x", "F1-score"] == "0.5 (0.01)\n[printed: 0.7]"
    assert table.loc["x", "AUROC"] == "0.75"
    assert table.loc["y", "F1-score"] == "[printed: 0.7]"
    assert table["model"].tolist() == ["Gaussian process", "CLaI-M"]


def test_verdict_and_evidence_of_the_claims_come_first() -> None:
    table = readable(pd.DataFrame(columns=["id", "claim", "test", "evidence", "verdict"]))
    assert list(table) == ["id", "claim", "verdict", "evidence", "test"]


def test_cells_are_text() -> None:
    shown = sortable(pd.DataFrame({"a<b": ["<script>alert(1)</script>", None], "n": [1.23456789, 2.0]}))
    assert "<script>" not in shown
    assert "a&lt;b" in shown
    assert re.findall(r'<td class="\w*">([^<]*)</td>', shown)[1:] == ["1.23457", "", "2"]


def test_page_of_an_output_has_caption_data_and_runs() -> None:
    page = output_page("Table 9", tidy(), "a,b\n", CONTENT, [RUN], None)
    assert "What &lt;b&gt;it&lt;/b&gt; shows." in page
    assert "data:text/csv;base64,YSxiCg==" in page
    assert "a/gp/seed0/fold1" in page
    assert "Miniature synthetic data" not in page
    assert "Miniature synthetic data" in output_page("Table 9", tidy(), "", CONTENT | {"evidence": "mini"}, [RUN], None)


def png() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(stream, "PNG")
    return stream.getvalue()


def test_page_of_a_figure_holds_the_picture() -> None:
    (found,) = re.findall(
        r'src="data:image/webp;base64,([^"]+)"', output_page("Figure 9", tidy(), "", CONTENT, [RUN], png())
    )
    picture = Image.open(io.BytesIO(base64.b64decode(found))).convert("RGB")
    assert picture.size == (3, 2)
    assert picture.getpixel((1, 1)) == (255, 0, 0)


def test_page_holds_no_large_data() -> None:
    assert "text/csv" not in output_page("Figure 9", tidy(), "x" * 10**6, CONTENT, [RUN], png())


def test_pages_load_nothing_from_elsewhere() -> None:
    pages = [
        output_page("T", tidy(), "", CONTENT, [RUN], png()),
        runs_page({"a/gp/seed0/fold1": RUN}, synthetic=False),
        settings_page({"a": {"b": 1}}, "a: 1", False),
    ]
    for page in pages:
        assert not re.findall(r'(?:src|href)="(?!data:)', page)
        assert "http" not in page


def test_runs_come_with_settings_data_and_versions() -> None:
    page = runs_page({"a/gp/seed0/fold1": RUN}, synthetic=False)
    assert "<p>Runs: 1.</p>" in page
    for text in ("<summary>ab</summary>", "&quot;epochs&quot;: 3", "&quot;bins&quot;: 15", "sha256:12", "torch 2"):
        assert text in page


def test_settings_are_listed_by_their_dotted_names() -> None:
    page = settings_page({"training": {"epochs": 3, "crop": None}, "seeds": [0, 1]}, "# comment", False)
    for name, value in (("training.epochs", "3"), ("training.crop", "null"), ("seeds", "[0, 1]")):
        assert re.search(rf'>{re.escape(name)}</td><td class="\w*">{re.escape(value)}<', page)
