"""Documents lead to places that exist, and the hooks before a commit are the linters of `make lint`."""

import re
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
ROOT = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
FOLDERS = [REPOSITORY / name / "README.md" for name in ("envs", "benchmarks")]
DOCUMENTS = [*ROOT, *sorted((REPOSITORY / "docs").glob("*.md")), *FOLDERS]


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
