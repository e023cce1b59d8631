"""Documents lead to places that exist, their figures come from files, and the hooks before a commit are the linters."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from clai.errors import InputError
from replication.report.documents import figure, fill_figures, replace_block, untraced

REPOSITORY = Path(__file__).parents[2]
ROOT = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
FOLDERS = [REPOSITORY / name / "README.md" for name in ("envs", "benchmarks")]
DOCUMENTS = [*ROOT, *sorted((REPOSITORY / "docs").glob("*.md")), *FOLDERS]


NO_RESULTS = {
    "datasets, metrics": r"CIFAR-10|Challenge 2019|\bF1\b",
    "years": r"\(20\d\d\)",
    "tables, figures, claims, algorithms": r"\b(?i:tables?|figures?|claims?|algorithm) S?\d+(?:(?:, | and |, and )S?\d+)*",
    "lines of the paper": r"\blines? \d+",
    "precisions": r"\bb?float(?:16|32)\b",
    "formulae": r"\(1 \+ f\)/2|\b(?:contain|near|to) 0\b|Intervals are of 95 %",
}
"""Numbers in docs/findings.md that no file has to give."""
PYTHON = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
NO_RESULTS_OF_README = NO_RESULTS | {
    "what the package requires": rf"Python {re.escape(PYTHON)} or newer",
    "patients of the open demo, by its authors": r"open demo of\s100 patients",
}
"""Those in the README."""
NO_RESULTS_OF_CAPTIONS = NO_RESULTS | {
    "levels": r"\b95 %(?= interval)|below 0\.05\b",
    "what is zero or one": r"(?:above|excludes|threshold|error of|zero|f >) 0\b|from [01]\b|C is 1|product \+1",
    "ends of scales": r"\b0 for no alarm|\b1 for the best|\[-1, 1\]|probability 1/2",
    "bins that are drawn, as a test holds": r"\bfewer than 50 samples",
    "formulae of captions": r"\bk = 1, 2, 3\b|\b1 - 2p\b|\b1 - p\b|\(1 \+ S\)/2",
    "epochs of the paper's figure 3": r"\bfor 120 epochs",
    "patients of the open demo, by its authors": r"demo has 100 patients",
    "a record, by its author": r"Jordan 2024, arXiv 2404\.00498: 94\.0 % with 3\.6e14 operations",
    "a network, by its authors": r"ResNet-18 at 28 pixels",
    "references": r"\(1979\)|2023, doi:[\w./-]+",
}
"""Those in captions."""
TABLE = """\
model,metric,seed,fold,value
a,accuracy,0,,0.81
a,accuracy,1,,0.83
b,accuracy,0,,0.71
b,accuracy,1,,0.72
a,auc,0,,0.9
"""


def anchors(document: Path) -> set[str]:
    """Return the anchors that a page gets from its headings: lower case, hyphens for spaces, no other punctuation."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_to_files_and_headings_that_exist(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(((?!https:)[^)#]*)(?:#([^)]*))?\)", document.read_text()):
        page = document.parent / target if target else document
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


def test_terms_of_the_glossary_are_in_order() -> None:
    terms = re.findall(r"^### (.+)$", (REPOSITORY / "docs" / "glossary.md").read_text(), flags=re.MULTILINE)
    assert terms == sorted(terms, key=str.lower)


def test_readme_is_short() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert len(re.sub(r"<!-- results:begin -->.*<!-- results:end -->", "", text, flags=re.DOTALL).split()) < 1100


def test_hooks_before_a_commit_are_the_linters_of_make() -> None:
    (local,) = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    linters = (REPOSITORY / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    for hook in local["hooks"]:
        assert f"\t{hook['entry']}" in linters


def document(folder: Path, *definitions: str) -> str:
    """Return a document in which every definition has a figure."""
    (folder / "table.csv").write_text(TABLE)
    figures = [f"[?][f{i}]" for i in range(len(definitions))]
    return "\n".join([*figures, "", *(f'[f{i}]: table.csv "{title}"' for i, title in enumerate(definitions))])


def filled(folder: Path, *definitions: str) -> list[str]:
    text = fill_figures(document(folder, *definitions), folder / "page.md")
    return re.findall(r"^\[(.*)\]\[f\d\]$", text, flags=re.MULTILINE)


def test_figures_come_from_the_rows_that_their_definitions_select(tmp_path: Path) -> None:
    assert filled(tmp_path, "model=a; metric=auc; {value:.2f}", "model=a; metric=auc; {value:.1p} of {metric}") == [
        "0.90",
        "90.0 of auc",
    ]
    assert filled(tmp_path, "model=a|b; metric=accuracy; {value.min:.2f} to {value.max:.2f}") == ["0.71 to 0.83"]
    assert filled(tmp_path, "fold=; seed=1; model=b; {value:.2f}") == ["0.72"]


def test_a_difference_is_paired_and_has_a_t_interval(tmp_path: Path) -> None:
    # Differences of 0.10 and 0.11: mean 0.105, half width 12.706 * 0.005.
    (text,) = filled(tmp_path, "metric=accuracy; model=a - b; {mean:+.1p} ({low:.2p} to {high:.2p}), {n}")
    assert text == "+10.5 (4.15 to 16.85), 2"


def test_a_model_with_a_rule_is_compared_with_one_that_has_none_over_folds(tmp_path: Path) -> None:
    # Differences of 0.10 and 0.11 again. Of two folds each has as many samples as the other: half width 12.706 * 0.005 * 3^(1/2).
    (tmp_path / "folds.csv").write_text(
        "model,metric,rule,seed,fold,value\n"
        "a,accuracy,printed,0,0,0.81\na,accuracy,printed,0,1,0.83\na,accuracy,parzen,0,0,0.5\na,accuracy,parzen,0,1,0.5\n"
        "b,accuracy,,0,0,0.71\nb,accuracy,,0,1,0.72\n"
    )
    title = "model=a - b; metric=accuracy; rule=printed|; {mean:.3f} ({low:.4f} to {high:.4f})"
    assert figure(tmp_path / "folds.csv", title) == "0.105 (-0.0050 to 0.2150)"


def test_numbers_of_the_page_of_claims_are_figures_too(tmp_path: Path) -> None:
    (tmp_path / "claims.md").write_text(
        "## 3a. One.\n\n| Data | Accuracy | n |\n| --- | --- | --- |\n| X | +0.1 [-0.2, +0.4] | 3 |\n\n"
        "## 4. Two.\n\n| Data | Quantity | Value | n |\n| --- | --- | --- | --- |\n"
        "| X | a: p | 0.0018 | -- |\n| Y | a: p | 0.2 | -- |\n"
    )
    assert (
        figure(tmp_path / "claims.md", "claim=3a; data=X; quantity=Accuracy; {value} ({low} to {high})")
        == "+0.1 (-0.2 to +0.4)"
    )
    assert figure(tmp_path / "claims.md", "claim=4; data=X; quantity=a: p; {value}") == "0.0018"
    with pytest.raises(InputError, match="found 2 rows"):
        figure(tmp_path / "claims.md", "claim=4; quantity=a: p; {value}")


@pytest.mark.parametrize(
    "title",
    ["model=c; {value:.1f}", "model=a; {value:.1f}", "model=a; metric=auc; {mean:.1f}", "colour=red; {value}",
     "model=a - b; {mean}", "metric=auc; model=a - b; {mean}"],
)  # fmt: skip
def test_a_definition_that_gives_no_single_figure_is_refused(tmp_path: Path, title: str) -> None:
    with pytest.raises(InputError, match=r"page\.md: \[f0\] is defined as .*, which gives no figure \(.*change its"):
        filled(tmp_path, title)


def test_figures_and_definitions_belong_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\[lost\] lacks a definition"):
        fill_figures("[1.0][lost]", tmp_path / "page.md")
    with pytest.raises(InputError, match=r"\[f0\] lacks a figure"):
        fill_figures(document(tmp_path, "model=a; {value}").replace("[?][f0]", ""), tmp_path / "page.md")


def test_blocks_are_replaced_between_their_marks() -> None:
    text = "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n"
    assert replace_block(text, "x", "new") == text.replace("old", "new")
    with pytest.raises(InputError, match="found no block y"):
        replace_block(text, "y", "new")


def test_every_figure_of_the_findings_is_that_of_its_file() -> None:
    findings = REPOSITORY / "docs" / "findings.md"
    text = findings.read_text()
    assert fill_figures(text, findings) == text, "run `make readme`"
    wrong = re.sub(r"\[[^\[\]]+\](?=\[main\])", "[+9.9]", text)
    assert wrong != text
    assert fill_figures(wrong, findings) == text


def test_no_figure_of_the_findings_is_typed() -> None:
    text = (REPOSITORY / "docs" / "findings.md").read_text()
    assert untraced(text, NO_RESULTS) == []
    assert untraced(text + "An accuracy of 88.4 %.\n", NO_RESULTS) == ["An accuracy of 88.4 %."]


def test_no_result_is_typed_in_the_readme() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert untraced(text, NO_RESULTS_OF_README) == []
    assert untraced(text + "An accuracy of 0.884.\n", NO_RESULTS_OF_README) == ["An accuracy of 0.884."]


CAPTIONS = sorted((REPOSITORY / "workflow" / "report").glob("*.rst"))


@pytest.mark.parametrize("caption", CAPTIONS, ids=lambda path: path.stem)
def test_no_result_is_typed_in_a_caption(caption: Path) -> None:
    assert untraced(caption.read_text(), NO_RESULTS_OF_CAPTIONS) == []


@pytest.mark.parametrize("what", sorted(NO_RESULTS_OF_CAPTIONS.keys() - NO_RESULTS.keys()))
def test_numbers_that_captions_may_type_are_typed_in_one(what: str) -> None:
    assert any(re.search(NO_RESULTS_OF_CAPTIONS[what], caption.read_text()) for caption in CAPTIONS)


def test_code_in_a_document_may_hold_numbers() -> None:
    assert untraced("a\n```python\nx = 5\n```\n    make -j 2\n\nb 3\n", {}) == ["b 3"]
