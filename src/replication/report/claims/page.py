"""The judged claims as Markdown, a page of all and a page each, and as a table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from replication.report.claims.hypothesis import Outcome
from replication.report.claims.numbers import title_of
from replication.report.claims.readings import TARGETS
from replication.report.texts import table
from replication.runs.registry import CLAIM_TEXTS

Record = Mapping[str, Any]
"""A judged claim, or an estimate of it (`replication.report.claims.judge.record`)."""

WORDS = CLAIM_TEXTS["page"]
PAPER = "Learning Kernels by Alignment for Multiclass Bayes Classification"
CONTROL_WORDS = {
    Outcome.NOT_REPRODUCED: "speaks against it", Outcome.INCONCLUSIVE: "open", Outcome.REPRODUCED: "agrees",
    Outcome.NOT_TESTABLE: "not testable",
}  # fmt: skip
"""What a number of a control says of the claim."""


def verdict_of(claim: Record) -> str:
    """Return the verdict in words: "not reproduced, on a substitute"; an assertion has none."""
    note = f" ({claim['note']})" if claim["note"] else ""
    return ", ".join(filter(None, (claim["outcome"], claim["qualifier"]))) + note or "no verdict"


def number_of(claim: Record) -> str:
    """Write the decisive numbers with what they measure; an assertion and an untested claim have none."""
    return "; ".join(f"{quantity}: {', '.join(numbers)}" for quantity, numbers in claim["decisive"].items())


def claims_frame(claims: Iterable[Record]) -> pd.DataFrame:
    """Return a row for each claim: its texts, verdict, sentence, decisive number, files and what it needs."""
    rows = [
        {
            **{name: claim[name] for name in ("id", "title", "place", "claim", "test", "rule")},
            "verdict": verdict_of(claim), "sentence": claim["sentence"], "number": number_of(claim),
            **{name: "; ".join(claim[name]) for name in ("files", "needs")},
        }
        for claim in claims
    ]  # fmt: skip
    return pd.DataFrame(rows)


def reviews(claims: Iterable[Record]) -> list[dict[str, Any]]:
    """Return each verdict in the terms of schema.org's ClaimReview."""
    paper = {"@type": "ScholarlyArticle", "name": PAPER}
    return [
        {
            "@context": "https://schema.org",
            "@type": "ClaimReview",
            "identifier": claim["id"],
            "url": f"paper_figures/claims/{claim['id']}.md",
            "claimReviewed": claim["claim"],
            "itemReviewed": {"@type": "Claim", "appearance": paper, "description": claim["place"]},
            "reviewBody": claim["sentence"],
            "reviewRating": {
                "@type": "Rating", "alternateName": verdict_of(claim), "ratingExplanation": number_of(claim)
            },
        }
        for claim in claims
        if claim["outcome"]
    ]  # fmt: skip


def lines(claims: Iterable[Record], folder: str) -> str:
    """Return a narrow row for each verdict, with a link to the claim's page in `folder`: claim, verdict, decisive numbers."""
    rows = []
    for claim in [claim for claim in claims if claim["outcome"]]:
        verdict = verdict_of({**claim, "note": ""}).replace(claim["outcome"], f"**{claim['outcome']}**", 1)
        rows.append([_linked(claim, folder), verdict, "; ".join(map(", ".join, claim["decisive"].values()))])
    return table(["The paper's claim", "Verdict", "Decisive number [95 % interval]"], rows)


def in_short(claims: Iterable[Record]) -> str:
    """Say how many verdicts hold, in which ways, and how many do not, in which ways."""
    outcomes = Counter(claim["outcome"] for claim in claims if claim["outcome"])
    ways = {Outcome.IN_PART: "in part", Outcome.REACHED: "by another training"}
    holding = sum(outcomes[outcome] for outcome in (Outcome.REPRODUCED, *ways))
    counted = ", ".join(f"{outcomes[outcome]} {way}" for outcome, way in ways.items() if outcomes[outcome])
    others = {
        Outcome.NOT_REPRODUCED: ("fails", "fail"), Outcome.INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
        Outcome.DEPENDS: ("depends on the reading", "depend on the reading"),
        Outcome.NOT_TESTABLE: ("is not testable here", "are not testable here"),
    }  # fmt: skip
    said = [f"{holding} {'holds' if holding == 1 else 'hold'}{f' ({counted})' if counted else ''}"]
    said += [
        f"{outcomes[outcome]} {verbs[outcomes[outcome] > 1]}" for outcome, verbs in others.items() if outcomes[outcome]
    ]
    return f"Of {outcomes.total()} verdicts {', '.join(said)}."


def _margins(claims: Sequence[Record]) -> str:
    """Say how many verdicts would be others at half and at twice their margins."""
    named = {}
    for name in ("half", "twice"):
        others: dict[str, list[str]] = {}
        for claim in claims:
            if claim[name] != claim["outcome"]:
                others.setdefault(claim[name], []).append(claim["id"])
        said = [
            f"{'claim' if len(ids) == 1 else 'claims'} {', '.join(ids)} would be *{outcome}*"
            for outcome, ids in others.items()
        ]
        named[name] = "; ".join(said) or "no verdict would change"
    return f"With margins halved, {named['half']}; with margins doubled, {named['twice']}."


def _linked(claim: Record, folder: str) -> str:
    return f"[{claim['id']}]({folder}/{claim['id']}.md) {claim['title']}"


def claims_page(claims: Sequence[Record]) -> str:
    """Write the page of all claims: a table that fits a screen, what was found in sentences, and the rules of verdicts."""
    judged = [claim for claim in claims if claim["outcome"]]
    found = [
        " ".join([f"- **{claim['id']}** {claim['sentence']}", *(f"*{of}*" for of in claim["decisive"])])
        for claim in judged
    ]
    assertions = [f"- {_linked(claim, 'claims')}" for claim in claims if not claim["outcome"]]
    blocks = [
        "# The paper's claims", in_short(judged), _margins(judged), lines(judged, "claims"),
        "## What was found", WORDS["data"], WORDS["in short"], "In italics: what the decisive number measures.",
        "\n".join(found), WORDS["legend"],
        "## Without a verdict", "\n".join(assertions), "## Rules of verdicts", WORDS["rules"],
    ]  # fmt: skip
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def claim_page(claim: Record) -> str:
    """Write the page of a claim: verdict, test, rule, the paper's readings, options, controls and files."""
    judged = bool(claim["outcome"])
    outcomes = {**claim["readings"], **claim["parts"]}
    verdict, number = verdict_of(claim), number_of(claim)
    found = [claim["sentence"], f"Decisive: {number}." if number else ""]
    margins = f"At half of its margins the verdict would be *{claim['half']}*, at twice *{claim['twice']}*."
    blocks = [
        f"# {claim['id']}. {claim['title']}", f"**{verdict[0].upper()}{verdict[1:]}.**", *filter(None, found),
        f"**The paper's claim** ({claim['place']}). {claim['claim']}",
        f"**Test.** {claim['test']}", f"**Rule.** {claim['rule']}",
        *([margins] if judged and any(estimate["margins"] for estimate in claim["estimates"]) else []),
        *_list("Part by part" if claim["parts"] else "By reading", [f"{n}: *{o}*" for n, o in outcomes.items()]),
        *_estimates("The paper's readings", claim, "test"),
        *_estimates("On a substitute, beside the paper's own data, without a say", claim, "informs"),
        *(_estimates("Options of ours, without a say", claim, "option") or ["No option of ours was run."] * judged),
        *_estimates("Controls", claim, "control"),
        *_estimates("Beside it", claim, "beside"),
        *_list("Without a say", claim["without_say"]),
        *_list("What the test leaves out", [*claim["limits"], *(f"Not run: {name}." for name in claim["not_controlled"])]),
        *_list("Readings without evidence", claim["untested"]),
        *_list("What it would take", claim["needs"]),
        *_list("Files", [f"`{file}`" for file in claim["files"]]),
        "[All claims and the rules of verdicts](../claims.md)",
    ]  # fmt: skip
    return "\n\n".join(blocks) + "\n"


def _estimates(heading: str, claim: Record, role: str) -> list[str]:
    estimates = [estimate for estimate in claim["estimates"] if estimate["role"] == role]
    columns = {
        "Option": lambda e: CLAIM_TEXTS["options"].get(e["option"], ""),
        "Part": lambda e: e["part"],
        "Targets": lambda e: TARGETS.get(e["target"], {}).get("name", ""),
        "Data": lambda e: e["data"].replace(", study", "; study"),
        "Model": lambda e: title_of(e["model"]),
        "Quantity": lambda e: e["quantity"],
        "Value": lambda e: e["text"],
        "n": lambda e: str(e["n"] or ""),
        "Images or sleepers": lambda e: str(e["samples"] or ""),
        "Outcome": _outcome,
        "At half, at twice the margin": _at_margins,
    }
    cells = {head: [cell(estimate) for estimate in estimates] for head, cell in columns.items()}
    heads = [head for head, column in cells.items() if any(column)]
    rows = zip(*(cells[head] for head in heads), strict=True)
    return [f"## {heading}", table(heads, rows)] if estimates else []


def _outcome(estimate: Record) -> str:
    if estimate["role"] == "control":
        return CONTROL_WORDS.get(estimate["outcome"], "")
    more = f"; n that would decide: {estimate['n_needed']}" if estimate["n_needed"] else ""
    return f"{estimate['outcome'] or ''}{more}"


def _at_margins(estimate: Record) -> str:
    """Say what a number would say at half and at twice its margin, where it has one."""
    judged = estimate["margins"] and estimate["role"] != "control" and estimate["outcome"] != Outcome.NO_SAY
    return f"{estimate['half']}, {estimate['twice']}" if judged else ""


def _list(heading: str, texts: Sequence[str]) -> list[str]:
    bullets = "\n".join(f"- {text[0].upper()}{text[1:]}" for text in texts)
    return [f"**{heading}:**", bullets] if texts else []
