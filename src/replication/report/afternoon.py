"""Verdicts of this machine's own smaller evidence beside the published ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from replication.report.claims.hypothesis import Outcome
from replication.report.claims.page import Record, number_of
from replication.report.evidence import run_name
from replication.report.labels import MINI_NOTE
from replication.report.plan import hours
from replication.report.texts import table
from replication.runs.registry import BENCHMARK, THEORY

SAME, WIDER, DIFFERS, UNTESTED = "same", "same, wider", "differs", "not tested here"
INTRODUCTION = (
    "A smaller evidence, computed from raw data by this code, on images with a smaller network, and judged by the rules of the "
    f"published verdicts. *{WIDER[0].upper()}{WIDER[1:]}*: open here, and every interval that leaves it open covers the "
    "published mean. Decisive numbers may be of other kernels or data than the published ones. "
    "Times (claims 13 and 14) ask for a machine that does nothing else."
)
_identity = itemgetter("role", "part", "target", "name", "model", "quantity")
"""What an estimate of a claim is known by."""


def agreement(here: Record, published: Record) -> str:
    """Say whether a claim's verdict here is the published one.

    `SAME`: so are those of parts and of readings, where the verdict speaks of them. `UNTESTED`: data are missing, rather than an
    arm that did not learn. `WIDER`: what was found here leaves it open, every interval that leaves it open covers the published
    mean, and no number that is decided here and there is decided otherwise.
    """
    tests = [estimate for estimate in here["estimates"] if estimate["role"] == "test"]
    if here["outcome"] == published["outcome"]:
        divided = here["outcome"] in (Outcome.IN_PART, Outcome.DEPENDS)
        same = all(here[kind] == published[kind] for kind in ("parts", "readings"))
        return SAME if same or not divided else DIFFERS
    if here["outcome"] == Outcome.NOT_TESTABLE and Outcome.NO_SAY not in [e["outcome"] for e in tests]:
        return UNTESTED
    others = {_identity(estimate): estimate for estimate in published["estimates"]}
    left_open = [estimate for estimate in tests if estimate["outcome"] == Outcome.INCONCLUSIVE]
    covered = all(_identity(e) in others and e["low"] <= others[_identity(e)]["mean"] <= e["high"] for e in left_open)
    pairs = [{e["outcome"], others[_identity(e)]["outcome"]} for e in tests if _identity(e) in others]
    contradicted = {Outcome.REPRODUCED, Outcome.NOT_REPRODUCED} in pairs
    wider = here["outcome"] == Outcome.INCONCLUSIVE and left_open and covered and not contradicted
    return WIDER if wider else DIFFERS


def compared_verdicts(here: Sequence[Record], published: Sequence[Record]) -> pd.DataFrame:
    """Return a row a verdict: claim, title, both outcomes with their decisive numbers, and their agreement."""
    rows = [
        {
            "claim": own["id"], "title": own["title"], "published": other["outcome"], "published_number": number_of(other),
            "here": own["outcome"], "here_number": number_of(own), "agreement": agreement(own, other),
        }
        for own, other in zip(here, published, strict=True)
        if other["outcome"]
    ]  # fmt: skip
    return pd.DataFrame(rows)


def page(verdicts: pd.DataFrame, runs: Sequence[Mapping[str, Any]], synthetic: bool) -> str:
    """Write the comparison as Markdown: a table, and lines of counts, cost, seeds, machine and commit."""
    counts = Counter(verdicts["agreement"])
    counted = ", ".join(f"{counts[kind]} *{kind}*" for kind in (SAME, WIDER, DIFFERS, UNTESTED) if counts[kind])
    untested = ", ".join(verdicts.loc[verdicts["agreement"] == UNTESTED, "claim"])
    trained = [run for run in runs if run_name(run) not in (BENCHMARK, THEORY)]  # The others have a seed of their own.
    seeds, machines, commits = (
        ", ".join(sorted({str(run[key]) for run in trained})) for key in ("seed", "hardware", "commit")
    )
    first = min((run["seed"] for run in trained), default=0)
    heads = ["Claim", "", "Published", "Decisive number", "Here", "Decisive number", "Agreement"]
    blocks = [
        f"# Verdicts beside the published ones, seeds from {first}", INTRODUCTION, table(heads, verdicts.to_numpy()),
        f"Of {len(verdicts)} verdicts: {counted}." + (f" Not tested here: {untested}." if untested else ""),
        f"{len(runs)} runs, {sum(map(hours, runs)):.1f} core-hours. Seeds: {seeds}. Hardware: {machines}. Commit: {commits}.",
        *([MINI_NOTE] if synthetic else []),
    ]  # fmt: skip
    return "\n\n".join(blocks) + "\n"
