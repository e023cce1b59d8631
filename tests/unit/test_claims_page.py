"""The page of claims opens with the verdicts, shows the evidence by reading, and counts its intervals."""

import re
from pathlib import Path

from replication.report.claims.judgement import CLAIMS, judge
from replication.report.claims.page import claims_page
from replication.report.evidence import Evidence
from replication.report.printed_values import read_values
from replication.report.statistics import Interval
from support.evidence_fixture import EXPECTED, STUDIES, write_evidence, write_studies

PAPER = read_values(Path(__file__).parents[2] / "workflow" / "config" / "printed_values.csv")


def page(root: Path, caption: str = "The caption.") -> str:
    return claims_page(judge(Evidence.found(root, EXPECTED | STUDIES), PAPER), caption)


def test_the_page_opens_with_a_table_of_verdicts_and_states_the_rules_once(tmp_path: Path) -> None:
    write_evidence(tmp_path / "mini", ["cifar10"], miniature=True)
    text = page(tmp_path / "mini")
    assert text.startswith("# The paper's claims\n\nClaims: 16. Verdicts, of which claim 3 has two: ")
    overview = text.split("\n\n")[2].splitlines()
    assert len(overview) == len(CLAIMS) + 2
    assert "| **reproduced, where tested** | accuracy, CLaI-M minus CLaI-C: +" in overview[2]
    assert text.count("## Rules of verdicts") == 1
    assert text.count("\n**Rule.** ") == text.count("\n**Verdict.** ") == len(CLAIMS)
    assert "The caption." in text


def test_links_of_the_table_lead_to_the_sections(tmp_path: Path) -> None:
    text = page(tmp_path)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\(#([^)]+)\)", text)
    assert len(links) == len(CLAIMS)
    assert set(links) <= anchors


def test_evidence_stands_in_tables_by_reading_with_one_unit(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    write_studies(tmp_path)
    section = page(tmp_path).split("\n## 1. ")[1].split("\n## ")[0]
    blocks = section.split("\n\n")
    judged = blocks[blocks.index("**Evidence, in percentage points:**") + 1].splitlines()
    assert judged[0] == "| Target | Network | Data | Accuracy, CLaI-M minus CLaI-C | n | Test samples | Outcome |"
    assert [row.split(" | ")[:2] for row in judged[2:]] == [
        ["| zero", "of table 1"],
        ["| zero", "of the studies"],
        ["| product", "of the studies"],
    ]
    silent = blocks[blocks.index("**Beside it, without a say in the verdict, in percentage points:**") + 1]
    assert silent.count("target ") == 3


def test_a_verdict_says_how_readings_without_an_option_of_ours_come_out(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    write_studies(tmp_path)
    text = " ".join(page(tmp_path).split("\n## 1. ")[1].split("\n## ")[0].split())
    assert re.search(r"Of 3 readings with evidence: [^.]+\. .*Of the 1 without an option of ours: 1 [a-z ]+\.", text)


def test_long_tables_are_folded(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["challenge2019"])
    section = page(tmp_path).split("\n## 8. ")[1].split("\n## ")[0]
    judged = (
        next(claim for claim in CLAIMS if claim.number == "8")
        .judge(Evidence.found(tmp_path, EXPECTED | STUDIES), PAPER)
        .judged
    )
    readings = {(p.reading, p.model) for p in judged}
    assert len(readings) == 32
    assert "<summary>32 rows</summary>" in section


def test_the_page_says_how_many_intervals_it_has(tmp_path: Path) -> None:
    write_evidence(tmp_path, ["cifar10"])
    write_studies(tmp_path)
    judgements = judge(Evidence.found(tmp_path, EXPECTED | STUDIES), PAPER)
    groups = zip(*[(finding.parts, finding.judged) for _, finding in judgements], strict=True)
    shown, deciding = (
        sum(isinstance(part.value, Interval) and part.value.known for parts in group for part in parts)
        for group in groups
    )
    assert shown > deciding > 0
    text = " ".join(claims_page(judgements, "The caption.").split())
    assert f"The page has {shown} intervals, {deciding} of them with a say in a verdict." in text
    assert "one in 20 excludes 0 by chance" in text


def test_lines_of_the_page_are_wrapped_outside_its_table_and_within_no_number(tmp_path: Path) -> None:
    write_evidence(tmp_path, list(EXPECTED))
    write_studies(tmp_path)
    lines = page(tmp_path, "Data: " + "many words " * 30).splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    assert not [line for line in lines if line.count("[") != line.count("]")]
    assert not [line for line in lines if re.search(r"\b[np] =$", line)]
