"""Each number of a page is the cell that it names, in docs/findings.md all are; and frozen pages keep their bytes."""

import hashlib
import random
import re

import pytest

from clailearn.errors import InputError
from replication.report.texts import FILLED, NUMBER, fill, formatted
from support.repository import REPOSITORY

OUTPUTS = REPOSITORY / "paper_figures"
PAGES = {name: (REPOSITORY / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("findings", "choices")}
PAGE = PAGES["findings"]
FROZEN = [
    ("beyond.md", "# Beyond the paper", "1f2ccc66eb966283212cf9d5e125a927f26f579701e10194db7a8dd8708f24b8"),
    ("verdicts.md", "## Verdicts as they followed", "0970e7baebd5936f1c595671ebf781aa3dd78be76a39754837ba4fa1871f1d7b"),
]


@pytest.mark.parametrize("page", PAGES)
def test_each_number_is_the_cell_that_it_names(page: str) -> None:
    assert fill(PAGES[page], OUTPUTS) == PAGES[page], "run workflow/scripts/fill_pages.py"


@pytest.mark.parametrize(("page", "beginning", "checksum"), FROZEN)
def test_what_is_frozen_keeps_its_bytes(page: str, beginning: str, checksum: str) -> None:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    assert hashlib.sha256(text[text.index(beginning) :].encode()).hexdigest() == checksum


def test_no_decimal_number_stands_without_a_cell() -> None:
    assert re.findall(r"\d+\.\d+", FILLED.sub("", PAGE)) == []


def test_a_number_changed_by_some_units_of_its_last_digit_is_found() -> None:
    generator, found = random.Random(0), 0
    shown = [range(*cell.span("shown")) for cell in FILLED.finditer(PAGE)]
    numbers = [number.span() for number in re.finditer(NUMBER, PAGE) if any(number.start() in cell for cell in shown)]
    for start, end in generator.choices(numbers, k=200):
        unit = 10.0 ** -len(PAGE[start:end].partition(".")[2])
        wrong = float(PAGE[start:end].replace("−", "-")) + generator.choice([-1, 1]) * generator.randint(1, 9) * unit
        changed = PAGE[:start] + formatted(wrong, PAGE[start:end]) + PAGE[end:]
        found += fill(changed, OUTPUTS) != changed
    assert found >= 198


@pytest.mark.parametrize("cell", ["table1 pathmnist clai-m", "table1 pathmnist clai-x accuracy"])
def test_a_reference_to_no_row_or_to_several_is_refused(cell: str) -> None:
    with pytest.raises(InputError, match=r"found \d+ rows, expected one"):
        fill(f"90.1<!--{cell}-->", OUTPUTS)
