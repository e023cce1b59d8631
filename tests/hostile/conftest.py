"""Counts the hostile inputs that parsers have read, over all processes of the tests.

With CLAI_HOSTILE_PAGE the counts become the table of that page; without it, a complete run with other counts than docs/data.md
has fails.
"""

import os
import re
from pathlib import Path

import pytest

from support.hostile import SCALE, Attack

COUNTS = "hostile"
BAR = 20_000
"""Inputs that all parsers together must read in continuous integration."""
PAGE = Path(__file__).parents[2] / "docs" / "data.md"
BEGIN, END = "<!-- hostile:begin -->\n", "<!-- hostile:end -->"


@pytest.fixture
def attack(tmp_path: Path, request: pytest.FixtureRequest) -> Attack:
    """Attacks of one test; its counts go into the test's report, which reaches the process that collects them."""
    attack = Attack(tmp_path.resolve())
    request.node.user_properties.append((COUNTS, attack.counts))
    return attack


def collected(config: pytest.Config) -> dict[str, dict[str, int]]:
    """Return cases and refusals of each parser, from the reports of all tests so far."""
    total: dict[str, dict[str, int]] = {}
    for report in config.pluginmanager.get_plugin("terminalreporter").getreports("passed"):
        for parser, counts in dict(report.user_properties).get(COUNTS, {}).items():
            known = total.setdefault(parser, dict.fromkeys(counts, 0))
            for name, number in counts.items():
                known[name] += number
    return dict(sorted(total.items()))


def table(total: dict[str, dict[str, int]]) -> str:
    """Return the counts as a table of Markdown. An escape fails its test, so that none can stand in it."""
    rows = [(parser, counts["cases"], counts["refused"]) for parser, counts in total.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = ["| parser | inputs | refused | valid results | escapes |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {parser} | {cases:,} | {refused:,} | {cases - refused:,} | 0 |" for parser, cases, refused in rows]
    return "".join(f"{line}\n" for line in lines)


def published(page: Path) -> dict[str, int]:
    """Return the number of inputs of each parser in the table of a page."""
    text = page.read_text().partition(BEGIN)[2].partition(END)[0]
    return {
        row[1]: int(row[2].replace(",", "")) for row in re.finditer(r"^\| (.+?) \| ([\d,]+) \|", text, re.MULTILINE)
    }


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the table, or compare the counts of a complete run with it."""
    if hasattr(session.config, "workerinput") or SCALE != 1 or exitstatus:
        return
    total = collected(session.config)
    if page := os.environ.get("CLAI_HOSTILE_PAGE"):
        before, _, rest = Path(page).read_text().partition(BEGIN)
        Path(page).write_text(before + BEGIN + table(total) + END + rest.partition(END)[2])
        return
    inputs = {parser: counts["cases"] for parser, counts in total.items()}
    inputs["all"] = sum(inputs.values())
    if inputs.keys() >= published(PAGE).keys() and (inputs != published(PAGE) or inputs["all"] < BAR):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the inputs of each parser."""
    if not (total := collected(terminalreporter.config)):
        return
    terminalreporter.section("hostile inputs")
    terminalreporter.write(table(total))
    terminalreporter.write_line(
        f"expected: the inputs that {PAGE.name} has, {BAR:,} or more in all; `make hostile` writes them"
    )
