"""Each number of docs/findings.md stands in what the heading of its section names: tables, figures, claims, evidence files."""

import re
from pathlib import Path

import pytest

from support.repository import PUBLISHED, REPOSITORY

FIGURES = REPOSITORY / "paper_figures"
SECTIONS = re.split(r"^## ", (REPOSITORY / "docs" / "findings.md").read_text(), flags=re.MULTILINE)[1:]
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e-\d+)?")


def named(heading: str) -> list[Path]:
    """The files of a heading such as `What was found (tables 1 and S2, claim 9; `alignment.csv` of the evidence)`."""
    files: list[Path] = []
    kind = ""
    for word, file in re.findall(r"\b(table|figure|claim|S?\d+[ab]?)s?\b|`([\w.]+)`", heading.rpartition("(")[2]):
        if file:
            files += PUBLISHED.glob(f"*/evidence/{file}")
        elif word in ("table", "figure", "claim"):
            kind = word
        elif kind == "claim":
            files.append(FIGURES / "claims" / f"{word}.md")
        else:
            files.append(FIGURES / ("supplement" if word.startswith("S") else "") / f"{kind}{word}.csv")
    return files


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_numbers_stand_in_the_files_of_their_section(section: str) -> None:
    heading, _, text = section.partition("\n")
    there = [abs(float(number)) for file in named(heading) for number in NUMBER.findall(file.read_text())]

    def is_there(number: str) -> bool:
        """As a number or a share, rounded to the digits that are printed."""
        value, least = abs(float(number)), 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9
        return any(abs(scale * other - value) <= least for other in there for scale in (1, 100))

    assert [number for number in NUMBER.findall(text) if not is_there(number)] == []
