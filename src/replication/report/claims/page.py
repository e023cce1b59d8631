"""The judged claims as a Markdown page and as a table."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from replication.metrics.bootstrap import LEVEL
from replication.report.claims.hypothesis import RULES, Outcome, Reading, Verdict, varying

Record = Mapping[str, Any]
"""A judged claim, or a part of it (`replication.report.claims.judge.record`)."""

LONG_TABLE = 16
"""Rows beyond which a table of evidence is folded."""
CONTROL_WORDS = {
    Outcome.NOT_REPRODUCED: "speaks against it", Outcome.INCONCLUSIVE: "inconclusive", Outcome.REPRODUCED: "agrees",
}  # fmt: skip
"""What a number of a control says of the claim."""
FEW = 6
"""Combinations of choices that a sentence may list."""
NOT_COUNTED = "not counted"
ABOUT = (
    "Each verdict follows from the evidence by the rules below; none is typed. A mean stands before its 95 % interval over "
    "n seeds, folds or repetitions, differences with their sign. Where a table has a column of test samples, the interval "
    f"counts the choice of so many images, or sleepers, as well; *{NOT_COUNTED}* stands for seeds alone. Figure S7 draws all "
    "readings. A control has no say. It speaks against a claim where the same is found without Collaborative Learning, or the "
    "opposite under the control's own conditions. The table shows its first number, and in brackets how many say so."
)
READINGS = (
    "Choices of readings: *target* of pairs without the class of the condition; *network* of table 1, or of the studies "
    "`ablation` and `decisive` (one block a stage, twice the channels, images halved after the stem, AdamW); *epochs* ours, "
    "or the 120 of figure 3; *cohort* septic (line 651) or whole; *loss* printed, or balanced by class, and of claim 3a "
    "raw, or above its floor; *shares* of the references' classes as in the data (population) or equal; decision *rule*; "
    "*ECE* of the top label (line 763) or of the positive rate; *probability* raw, or calibrated on validation data. The "
    "network of the studies, loss balanced or above its floor, equal shares and calibration are ours; the others stand in "
    "the paper, or fill a place that it leaves empty. Each verdict that rests on both kinds says how the readings without "
    "an option of ours come out."
)


def claims_frame(claims: Iterable[Record]) -> pd.DataFrame:
    """Return a row for each claim: id, claim, place, test, rule, verdict, evidence, reason, control, data, files, needs.

    The evidence are the decisive numbers.
    """
    rows = [
        {
            **{name: claim[name] for name in ("id", "claim", "place", "test", "rule")},
            "verdict": verdict_of(claim), "evidence": "; ".join(_decisive(claim)),
            "reason": _reason(claim).replace("*", ""), "control": "; ".join(_control(claim)),
            **{name: "; ".join(claim[name]) for name in ("data", "files", "needs")},
        }
        for claim in claims
    ]  # fmt: skip
    return pd.DataFrame(rows)


def claims_page(claims: Sequence[Record], caption: str) -> str:
    """Write the page: a table of all claims, the rules of verdicts, then a section for each claim."""
    blocks = [
        "# The paper's claims", _summary(claims), _overview(claims), ABOUT, _multiplicity(claims),
        "## Rules of verdicts", RULES.strip(), READINGS,
    ]  # fmt: skip
    for claim in claims:
        blocks += _section(claim)
    blocks += ["## Basis", *caption.split("\n")]
    return "\n\n".join(blocks) + "\n"


def verdict_of(claim: Record) -> str:
    """Return the verdict in words: "not reproduced, on a substitute"."""
    return str(Verdict(claim["outcome"], claim["qualifier"]))


def _summary(claims: Sequence[Record]) -> str:
    number = len({claim["id"].rstrip("ab") for claim in claims})
    return f"Claims: {number}. Verdicts, of which claim 3 has two: {_counted(claims, '*{}* {}')}."


def _counted(outcomes: Iterable[Record], form: str = "{1} {0}") -> str:
    counts = Counter(entry["outcome"] for entry in outcomes)
    return ", ".join(form.format(outcome, counts[outcome]) for outcome in Outcome if counts[outcome])


def _judged(claim: Record) -> list[Record]:
    return [number for answer in claim["answers"] for number in answer["numbers"]]


def _multiplicity(claims: Iterable[Record]) -> str:
    """Say how many intervals the page has, and how many of so many exclude 0 by chance."""
    deciding, beside = (
        sum(number["low"] is not None for claim in claims for number in numbers(claim))
        for numbers in (_judged, lambda claim: [*claim["beside"], *claim["controls"]])
    )
    return (
        f"The page has {deciding + beside} intervals, {deciding} of them with a say in a verdict. Where no true difference "
        f"exists, one in {1 / (1 - LEVEL):.0f} excludes 0 by chance. Verdicts are not corrected for their number; table S4 "
        "adjusts its p-values. Intervals over folds are widened for the training data that folds share (Nadeau & Bengio 2003)."
    )


def _overview(claims: Iterable[Record]) -> str:
    rows = []
    for claim in claims:
        data = dict.fromkeys(answer["data"] for answer in claim["answers"] if answer["headline"])
        cells = ["<br>".join(_decisive(claim)), "<br>".join(_control(claim)), "; ".join(data)]
        link = f"[{claim['id']}](#{_anchor(claim)})"
        rows.append([link, claim["title"], f"**{verdict_of(claim)}**", *(cell or "--" for cell in cells)])
    return _table(["#", "Claim", "Verdict", "Decisive number", "Control", "Data"], rows)


def _control(claim: Record) -> list[str]:
    """Say what the controls say of the claim, with the first number of CLaI and of each other model, and which were not run."""
    told = [number for number in claim["controls"] if number["outcome"] in CONTROL_WORDS]
    texts = []
    for outcome in [outcome for outcome in CONTROL_WORDS if any(number["outcome"] == outcome for number in told)][:1]:
        numbers = [number for number in told if number["outcome"] == outcome]
        first = {number["model"]: number for number in reversed(numbers)}
        shown = [number for number in numbers if number is first[number["model"]]]
        listed = "; ".join(f"{number['data']}: {_number(number)}" for number in shown)
        texts.append(f"{CONTROL_WORDS[outcome]} ({len(numbers)} of {len(told)}): {listed}")
    return [*texts, *(f"not run: {name}" for name in claim["not_controlled"])]


def _decisive(claim: Record) -> list[str]:
    """Write the decisive numbers, each with the choices in which their readings differ."""
    answers = [answer for answer in claim["answers"] if answer["headline"]]
    names = varying(Reading(**answer["reading"]) for answer in answers)
    texts = [_number(answer["numbers"][answer["decides"]], answer["model"]) for answer in answers]
    readings = [Reading(**answer["reading"]).text(names) for answer in answers]
    return [f"{reading}: {text}" if names else text for reading, text in zip(readings, texts, strict=True)]


def _number(number: Record, model: str = "") -> str:
    """Write quantity, model and value: `accuracy, CLaI-M minus CLaI-C: +4.08 [+2.00, +6.16] percentage points, n = 3`."""
    name = ", ".join(part for part in (number["quantity"], model) if part)
    n = f", n = {number['n']}" if number["n"] else ""
    return f"{name}: {_value(number)}{n}"


def _value(number: Record) -> str:
    return " ".join(part for part in (number["text"], number["unit"]) if part)


def _anchor(claim: Record) -> str:
    return re.sub(r"[^\w\- ]", "", f"{claim['id']}. {claim['claim']}".lower()).replace(" ", "-")


def _section(claim: Record) -> list[str]:
    """Write the section of a claim as blocks."""
    limits = [f"**What the test leaves out.** {claim['limits']}"] if claim["limits"] else []
    return [
        f"## {claim['id']}. {claim['claim']}",
        f"**Verdict.** {_reason(claim)}",
        f"Place in the paper (lines of its source): {claim['place']}.",
        f"**Test.** {claim['test']}",
        f"**Rule.** {claim['rule']}",
        *limits,
        *_answers(claim),
        *_numbers("Beside it", claim["beside"]),
        *_numbers("Controls", claim["controls"]),
        *_list("Controls not run", [f"{name[0].upper()}{name[1:]}." for name in claim["not_controlled"]]),
        *_list("Readings without evidence", [f"{text}." for text in claim["untested"]]),
        *_list("What it would take", [f"{need[0].upper()}{need[1:]}." for need in claim["needs"]]),
        *_list("Files", [f"`{file}`" for file in claim["files"]]),
    ]


def _reason(claim: Record) -> str:
    """Say the verdict and, where readings were tested, how they come out."""
    start = f"{verdict_of(claim).capitalize()}."
    if claim["outcome"] == Outcome.NOT_TESTABLE:
        return f"{start} The evidence at hand is too little."
    readings = [reading for reading in claim["readings"] if reading["outcome"] != Outcome.NOT_TESTABLE]
    n = _of_more_replicates(claim) if claim["outcome"] == Outcome.INCONCLUSIVE else ""
    if len(readings) == 1:
        return f"{start}{n}"
    if len({reading["outcome"] for reading in readings}) == 1:
        return f"{start} All {len(readings)} readings with evidence agree.{n}"
    of_paper = [reading for reading in readings if reading["of_paper"]]
    told = f" Of the {len(of_paper)} without an option of ours: {_counted(of_paper)}."
    dependence = _dependence(readings, claim["deciding"]) + (told if 0 < len(of_paper) < len(readings) else "")
    return f"{start} Of {len(readings)} readings with evidence: {_counted(readings)}. {dependence}{n}"


def _dependence(readings: Sequence[Record], names: Sequence[str]) -> str:
    """Name the choices that decide, and list their combinations where these are few."""
    combinations: dict[str, dict[str, None]] = {}
    for reading in readings:
        combination = "/".join(reading["choices"][name] for name in names)
        combinations.setdefault(reading["outcome"], {})[combination] = None
    choices = [name.replace("ece", "ECE") for name in names]
    listed = " and ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
    start = f"The {listed} decide{'s' if len(choices) == 1 else ''}"
    if sum(map(len, combinations.values())) > FEW:
        return f"{start}; the table shows how."
    return (
        f"{start}: "
        + "; ".join(f"*{outcome}* with {', '.join(texts)}" for outcome, texts in combinations.items())
        + "."
    )


def _of_more_replicates(claim: Record) -> str:
    """Say how many replicates the inconclusive readings would need."""
    open_readings = [reading["choices"] for reading in claim["readings"] if reading["outcome"] == Outcome.INCONCLUSIVE]
    needed = [a["n_needed"] for a in claim["answers"] if a["n_needed"] and a["reading"] in open_readings]
    if not needed:
        return ""
    amount = f"{max(needed)}" if min(needed) == max(needed) else f"{min(needed)} to {max(needed)}, by reading"
    return f" Intervals no wider than the margin would take n of about {amount}."


def _answers(claim: Record) -> list[str]:
    """Write a row for each reading, dataset and model, with its numbers."""
    answers = claim["answers"]
    names = varying(Reading(**answer["reading"]) for answer in answers)
    rows = [
        {
            **{"ECE" if name == "ece" else name.capitalize(): answer["reading"].get(name, "--") for name in names},
            "Data": _data(answer),
            "Model": answer["model"],
            "Numbers": "<br>".join(f"{number['quantity']}: {_value(number)}" for number in answer["numbers"]),
            **_counts(answer["numbers"]),
            "Outcome": answer["outcome"],
            "n needed": f"about {answer['n_needed']}" if answer["n_needed"] else "",
        }
        for answer in answers
    ]
    same = {name: option for answer in answers[:1] for name, option in answer["reading"].items() if name not in names}
    return _folded("Evidence" + (f" ({Reading(**same).text()})" if same else ""), rows)


def _numbers(heading: str, numbers: Iterable[Record]) -> list[str]:
    rows = [
        {
            "Data": _data(number), "Quantity": number["quantity"], "Value": _value(number), **_counts([number]),
            "Control": CONTROL_WORDS.get(number["outcome"], ""),
        }
        for number in numbers
    ]  # fmt: skip
    return _folded(f"{heading}, without a say in the verdict", rows)


def _data(entry: Record) -> str:
    return f"{entry['data']}, study {entry['study']}" if entry["study"] else str(entry["data"])


def _counts(numbers: Sequence[Record]) -> dict[str, str]:
    """Write how many replicates and test samples intervals count."""
    ns = dict.fromkeys(str(number["n"] or "--") for number in numbers)
    samples = dict.fromkeys(str(number["samples"] or NOT_COUNTED) for number in numbers)
    return {"n": ", ".join(ns), "Test samples": ", ".join(samples)}


def _folded(heading: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Write a heading and a table of the columns that say something; a long table is folded."""
    heads = [head for head in rows[0] if {row[head] for row in rows} - {"", NOT_COUNTED}] if rows else []
    table = _table(heads, [[row[head] or "--" for head in heads] for row in rows])
    folded = [f"<details><summary>{len(rows)} rows</summary>", table, "</details>"]
    return [f"**{heading}:**", *(folded if len(rows) > LONG_TABLE else [table])] if rows else []


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    """Write a heading and a bullet for each line; nothing without lines."""
    return [f"**{heading}:**", "\n".join(f"- {line}" for line in lines)] if lines else []
