"""The claims with their verdicts as a Markdown page and as a table."""

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from replication.metrics.bootstrap import LEVEL
from replication.report.claims.claim import Claim
from replication.report.claims.finding import Finding, Part, Unit
from replication.report.claims.judgement import Judgement
from replication.report.claims.reading import Reading, varying
from replication.report.claims.verdict import RULES, Outcome, all_of
from replication.report.statistics import Interval

WIDTH = 120
LONG_TABLE = 16
"""Rows beyond which a table of evidence is folded."""
CONTROL_WORDS = {
    Outcome.NOT_REPRODUCED: "speaks against it", Outcome.INCONCLUSIVE: "inconclusive", Outcome.REPRODUCED: "agrees",
}  # fmt: skip
"""What a number of a control says of the claim."""
FEW = 6
"""Combinations of choices that a sentence may list."""
SAMPLES, NOT_COUNTED = "Test samples", "not counted"
ABOUT = (
    "Each verdict follows from the evidence by the rules below; none is typed. A mean stands before its 95 % interval over "
    "n seeds, folds or repetitions, differences with their sign. Where a table has a column of test samples, the interval "
    f"counts the choice of so many images, or sleepers, as well; *{NOT_COUNTED}* stands for seeds alone. Figure S8 draws all "
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


def claims_frame(judgements: Iterable[Judgement]) -> pd.DataFrame:
    """Return a row for each claim: id, claim, place, test, rule, verdict, evidence, reason, control, data, files, needs.

    The evidence are the decisive numbers.
    """
    rows = [
        {
            "id": claim.number, "claim": claim.claim, "place": claim.place, "test": claim.test, "rule": claim.rule,
            "verdict": str(finding.verdict), "evidence": "; ".join(_decisive(finding)), "reason": _plain(_reason(finding)),
            "control": "; ".join(_control(finding)),
            "data": "; ".join(finding.data), "files": "; ".join(finding.files), "needs": "; ".join(_needs(finding)),
        }
        for claim, finding in judgements
    ]  # fmt: skip
    return pd.DataFrame(rows)


def claims_page(judgements: Sequence[Judgement], caption: str) -> str:
    """Write the page: a table of all claims, the rules of verdicts, then a section for each claim."""
    blocks = ["# The paper's claims", _wrapped(_summary(judgements)), _overview(judgements), _wrapped(ABOUT)]
    blocks.append(_wrapped(_multiplicity(judgements)))
    blocks += ["## Rules of verdicts", _wrapped_text(RULES.strip()), _wrapped(READINGS)]
    for judgement in judgements:
        blocks += _section(judgement)
    blocks += ["## Basis", *(_wrapped(paragraph) for paragraph in caption.split("\n"))]
    return "\n\n".join(blocks) + "\n"


def _summary(judgements: Sequence[Judgement]) -> str:
    counts = Counter(finding.verdict.outcome for _, finding in judgements)
    words = [f"*{outcome}* {counts[outcome]}" for outcome in Outcome if counts[outcome]]
    claims = len({claim.number.rstrip("ab") for claim, _ in judgements})
    return f"Claims: {claims}. Verdicts, of which claim 3 has two: {', '.join(words)}."


def _multiplicity(judgements: Iterable[Judgement]) -> str:
    """Say how many intervals the page has, and how many of so many exclude 0 by chance."""
    findings = [finding for _, finding in judgements]
    shown, deciding = (
        sum(isinstance(part.value, Interval) and part.value.known for part in parts)
        for parts in ([p for f in findings for p in (*f.parts, *f.controls)], [p for f in findings for p in f.judged])
    )
    return (
        f"The page has {shown} intervals, {deciding} of them with a say in a verdict. Where no true difference exists, one "
        f"in {1 / (1 - LEVEL):.0f} excludes 0 by chance. Verdicts are not corrected for their number; table S16 adjusts its "
        "p-values. Intervals over folds are widened for the training data that folds share (Nadeau & Bengio 2003)."
    )


def _overview(judgements: Iterable[Judgement]) -> str:
    rows = [
        [f"[{claim.number}](#{_anchor(claim)})", claim.short, f"**{finding.verdict}**",
         "<br>".join(_decisive(finding)) or "--", "<br>".join(_control(finding)) or "--",
         "; ".join(_data_in_brief(finding)) or "--"]
        for claim, finding in judgements
    ]  # fmt: skip
    return _table(["#", "Claim", "Verdict", "Decisive number", "Control", "Data"], rows)


def _control(finding: Finding) -> list[str]:
    """Say what the controls say of the claim, with the first number of CLaI and of each other model, and which were not run."""
    told = [part for part in finding.controls if part.outcome in CONTROL_WORDS]
    texts = []
    for outcome in (Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE, Outcome.REPRODUCED):
        parts = [part for part in told if part.outcome == outcome]
        if parts:
            first = {part.model: part for part in reversed(parts)}
            shown = [part for part in parts if part is first[part.model]]
            numbers = "; ".join(
                f"{part.data.split(', study ')[0]}: {_number(replace(part, model=''))}" for part in shown
            )
            texts.append(f"{CONTROL_WORDS[outcome]} ({len(parts)} of {len(told)}): {numbers}")
            break
    return [*texts, *(f"not run: {name}" for name in finding.not_controlled)]


def _data_in_brief(finding: Finding) -> list[str]:
    """Name the data of the parts that decide, without the keys of studies."""
    return list(dict.fromkeys(part.data.split(", study ")[0] for part in finding.decisive))


def _decisive(finding: Finding) -> list[str]:
    """Write the decisive numbers, each with the choices in which their readings differ."""
    parts = finding.decisive
    names = varying(part.reading for part in parts)
    return [f"{part.reading.text(names)}: {_number(part)}" if names else _number(part) for part in parts]


def _number(part: Part) -> str:
    """Write quantity, model and value: `accuracy, CLaI-M minus CLaI-C: +4.08 [+2.00, +6.16] percentage points, n = 3`."""
    number, n = _mean_and_n(part)
    model = f", {part.model}" if part.model else ""
    unit = f" {part.unit.name}" if part.unit.name else ""
    return f"{part.quantity}{model}: {number}{unit}" + (f", n = {n}" if n != "--" else "")


def _anchor(claim: Claim) -> str:
    return re.sub(r"[^\w\- ]", "", f"{claim.number}. {claim.claim}".lower()).replace(" ", "-")


def _section(judgement: Judgement) -> list[str]:
    """Write the section of a claim as blocks."""
    claim, finding = judgement
    blocks = [
        f"## {claim.number}. {claim.claim}",
        _wrapped(f"**Verdict.** {_reason(finding)}"),
        _wrapped(f"Place in the paper (lines of its source): {claim.place}."),
        _wrapped(f"**Test.** {claim.test}"),
        _wrapped(f"**Rule.** {claim.rule}"),
    ]
    blocks += [_wrapped(f"**What the test leaves out.** {claim.limits}")] if claim.limits else []
    blocks += _evidence(finding)
    blocks += _list("**Controls not run:**", [f"{name[0].upper()}{name[1:]}." for name in finding.not_controlled])
    blocks += _list("**Readings without evidence:**", [f"{text}." for text in finding.untested])
    blocks += _list("**What it would take:**", [f"{need[0].upper()}{need[1:]}." for need in _needs(finding)])
    blocks += _list("**Files:**", [f"`{file}`" for file in finding.files])
    return blocks


def _reason(finding: Finding) -> str:
    """Say the verdict and, where readings were tested, how they come out."""
    verdict = finding.verdict
    start = f"{str(verdict).capitalize()}."
    if verdict.outcome == Outcome.NOT_TESTABLE:
        return f"{start} The evidence at hand is too little."
    outcomes = {reading: outcome for reading, outcome in finding.outcomes.items() if outcome != Outcome.NOT_TESTABLE}
    n = _of_more_replicates(finding) if verdict.outcome == Outcome.INCONCLUSIVE else ""
    if len(outcomes) == 1:
        return f"{start}{n}"
    counts: Counter[Outcome] = Counter(outcomes.values())
    if len(counts) == 1:
        return f"{start} All {len(outcomes)} readings with evidence agree.{n}"
    dependence = _dependence(outcomes, finding.deciding)
    return (
        f"{start} Of {len(outcomes)} readings with evidence: {_counted(counts)}. {dependence}{_of_paper(outcomes)}{n}"
    )


def _counted(counts: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])


def _of_paper(outcomes: Mapping[Reading, Outcome]) -> str:
    """Say how the readings come out that have no option of ours; nothing where all or none are such."""
    counts = Counter(outcome for reading, outcome in outcomes.items() if reading.of_paper)
    if counts.total() in (0, len(outcomes)):
        return ""
    return f" Of the {counts.total()} without an option of ours: {_counted(counts)}."


def _dependence(outcomes: Mapping[Reading, Outcome], names: Sequence[str]) -> str:
    """Name the choices that decide, and list their combinations where these are few."""
    combinations: dict[Outcome, dict[str, None]] = {}
    for reading, outcome in outcomes.items():
        combinations.setdefault(outcome, {})["/".join(reading.choices[name] for name in names)] = None
    choices = [name.replace("ece", "ECE") for name in names]
    listed = " and ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
    start = f"The {listed} decide{'s' if len(choices) == 1 else ''}"
    if sum(len(texts) for texts in combinations.values()) > FEW:
        return f"{start}; the table shows how."
    return (
        f"{start}: "
        + "; ".join(f"*{outcome}* with {', '.join(texts)}" for outcome, texts in combinations.items())
        + "."
    )


def _plain(text: str) -> str:
    return text.replace("*", "")


def _needs(finding: Finding) -> list[str]:
    return list(dict.fromkeys(finding.missing))


def _evidence(finding: Finding) -> list[str]:
    """Write the numbers with a say by reading, and the others below them; one unit a table."""
    blocks = []
    for unit, parts in _by_unit(finding.judged).items():
        blocks += _by_reading(f"**Evidence{_in(unit)}:**", parts)
    without_say = [part for part in finding.parts if part.outcome is None]
    for heading, beside in (("Beside it", without_say), ("Controls", finding.controls)):
        for unit, parts in _by_unit(beside).items():
            told = any(part.outcome for part in parts)
            sampled = any(part.samples for part in parts)
            rows = [
                [part.data, part.quantity, *_mean_and_n(part), *_test_samples([part], sampled)]
                + ([CONTROL_WORDS.get(part.outcome, "--") if part.outcome else "--"] if told else [])
                for part in parts
            ]
            heads = ["Data", "Quantity", "Value", "n", *([SAMPLES] if sampled else []), *(["Control"] if told else [])]
            blocks += _folded(f"**{heading}, without a say in the verdict{_in(unit)}:**", heads, rows)
    return blocks


def _by_unit(parts: Iterable[Part]) -> dict[Unit, list[Part]]:
    units: dict[Unit, list[Part]] = {}
    for part in parts:
        units.setdefault(part.unit, []).append(part)
    return units


def _in(unit: Unit) -> str:
    return f", in {unit.name}" if unit.name else ""


def _of_more_replicates(finding: Finding) -> str:
    """Say how many replicates the inconclusive readings would need."""
    groups = _groups([part for part in finding.judged if finding.outcomes[part.reading] == Outcome.INCONCLUSIVE])
    needed = [n for n in map(_n_needed, groups.values()) if n]
    if not needed:
        return ""
    least, most = min(needed), max(needed)
    amount = f"{most}" if least == most else f"{least} to {most}, by reading"
    return f" Intervals no wider than the margin would take n of about {amount}."


def _groups(parts: Sequence[Part]) -> dict[tuple[Reading, str, str], list[Part]]:
    """Return the parts by reading, data and model."""
    groups: dict[tuple[Reading, str, str], list[Part]] = {}
    for part in parts:
        groups.setdefault((part.reading, part.data, part.model), []).append(part)
    return groups


def _n_needed(group: Sequence[Part]) -> int | None:
    """Return the largest number of replicates that an inconclusive part needs; None where the group is not inconclusive."""
    if all_of(part.outcome for part in group if part.outcome is not None) != Outcome.INCONCLUSIVE:
        return None
    return max((part.n_needed for part in group if part.n_needed), default=None)


def _by_reading(heading: str, parts: Sequence[Part]) -> list[str]:
    """Write a row for each reading, dataset and model, with a column for each quantity."""
    names = varying(part.reading for part in parts)
    same = {name: option for name, option in parts[0].reading.choices.items() if name not in names}
    quantities = list(dict.fromkeys(part.quantity for part in parts))
    models = any(part.model for part in parts)
    by_place = len(quantities) <= FEW
    common = _shared(quantities)
    sampled = any(part.samples for part in parts)
    rows, wanted = [], False
    for (reading, data, model), group in _groups(parts).items():
        texts = {part.quantity: _mean_and_n(part)[0] for part in group}
        outcome = all_of(part.outcome for part in group if part.outcome is not None)
        wanted = wanted or outcome == Outcome.INCONCLUSIVE
        n = _n_needed(group)
        row = [reading.choices.get(name, "--") for name in names] + [data] + ([model] if models else [])
        row += [texts.get(quantity, "--") for quantity in quantities] if by_place else ["<br>".join(
            f"{quantity.removeprefix(common)}: {text}" for quantity, text in texts.items())]  # fmt: skip
        ns = ", ".join(dict.fromkeys(_mean_and_n(part)[1] for part in group))
        rows.append([*row, ns, *_test_samples(group, sampled), str(outcome), f"about {n}" if n else ""])
    heads = [name.replace("ece", "ECE").capitalize() if name != "ece" else "ECE" for name in names]
    heads += ["Data"] + (["Model"] if models else [])
    heads += [_sentence(quantity) for quantity in quantities] if by_place else [f"{_sentence(common)}..."]
    heads += ["n", *([SAMPLES] if sampled else []), "Outcome", "n needed"]
    if not wanted:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    texts_of_same = Reading(**same).text()
    heading = f"{heading[:-3]} ({texts_of_same}):**" if texts_of_same else heading
    return _folded(heading, heads, rows)


def _shared(texts: Sequence[str]) -> str:
    """Return the words with which all texts begin, and a space."""
    words = zip(*(text.split() for text in texts), strict=False)
    return "".join(f"{word} " for word, *_ in itertools.takewhile(lambda same: len(set(same)) == 1, words))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _mean_and_n(part: Part) -> tuple[str, str]:
    """Return the number with its interval, and the number of replicates; `--` for a number without replicates."""
    if not isinstance(part.value, Interval):
        return part.unit.text(part.value), "--"
    return part.unit.text(part.value).split(", n = ")[0], str(part.value.n)


def _test_samples(parts: Iterable[Part], sampled: bool) -> list[str]:
    """Write the cell that says how many test samples the intervals of a row count, where a table has it."""
    texts = dict.fromkeys(str(part.samples) if part.samples else NOT_COUNTED for part in parts)
    return [", ".join(texts)] if sampled else []


def _folded(heading: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a heading and a table; a long table is folded."""
    table = _table(heads, rows)
    if len(rows) <= LONG_TABLE:
        return [_wrapped(heading), table]
    return [_wrapped(heading), f"<details><summary>{len(rows)} rows</summary>", table, "</details>"]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    """Write a heading and a bullet for each line; nothing without lines."""
    return [heading, "\n".join(_wrapped(line, "- ") for line in lines)] if lines else []


def _wrapped_text(text: str) -> str:
    """Break the lines of Markdown paragraphs and bullets anew; tables stay."""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith("|"):
            blocks.append(block)
        elif block.startswith("- "):
            bullets = re.split(r"\n(?=- )", block)
            blocks.append("\n".join(_wrapped(" ".join(bullet[2:].split()), "- ") for bullet in bullets))
        else:
            blocks.append(_wrapped(" ".join(block.split())))
    return "\n\n".join(blocks)


def _wrapped(text: str, bullet: str = "") -> str:
    """Break lines, but neither within a number nor before a sign that Markdown would take for a bullet."""
    bound = re.sub(r"\[[^\]]*\]| [-+] |\b[np] = ", lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        bound,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")
