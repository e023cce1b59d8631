"""Table S2: datasets as used, beside what the paper states of them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from replication.report.latex import escape, floating, paragraphs, row
from replication.report.printed_values import printed_value
from replication.report.tables.parts import Sources

QUANTITIES = [
    "Data", "Samples", "Recordings", "Classes", "Split", "Split train", "Split val", "Split test", "Split all",
    "Cohort", "Exclusions", "Lacking", "Files", "Licence, access",
]  # fmt: skip

# Quantities, and the names of what the paper states of them.
STATED = [
    ("Samples", "images"), ("Recordings", "recordings"), ("Classes", "classes"), ("Split train", "training images"),
    ("Split test", "test images"),
]  # fmt: skip

PER_PART = 4
"""Datasets side by side in one part of the table."""
LINE, FIRST, GAP = 16.6, 1.8, 0.29
"""Width in cm of the line, of the first column, and of the space around a column."""


def datasets_frame(sources: Sources) -> pd.DataFrame:
    """Return datasets as used: columns dataset, quantity, ours, printed (the figure that the paper states, or empty)."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for dataset in evidence.expected:

        def stated(quantity: str, dataset: str = dataset) -> str:
            value = printed_value(sources.printed_values, "text", dataset, quantity)[0]
            return "" if pd.isna(value) else f"{value:,.0f}"

        if not evidence.has(dataset):
            rows.append({"dataset": dataset, "quantity": "Data", "ours": evidence.not_run(dataset), "printed": ""})
            rows += [
                {"dataset": dataset, "quantity": quantity, "ours": "not run", "printed": f"{stated(key)} {key}"}
                for quantity, key in STATED
                if stated(key)
            ]
            continue
        for quantity, ours, printed in _described(evidence.description(dataset), stated):
            rows.append({"dataset": dataset, "quantity": quantity, "ours": ours, "printed": printed})
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "printed"])


def _described(content: Mapping[str, Any], stated: Callable[[str], str]) -> list[tuple[str, str, str]]:
    """Return quantity, our text and the paper's text of a dataset's description."""
    # The splits of recordings are the whole ("all") and its test folds, those of other kinds are disjoint.
    whole = {name: split for name, split in content["splits"].items() if name == "all"} or content["splits"]
    unit = {"images": "images", "signals": "epochs", "features": "rows", "recordings": "hours"}[content["kind"]]
    sizes = {name: int(split["n"]) for name, split in whole.items()}
    people = {
        name: sum(int(split.get(name, 0)) for split in whole.values())
        for name in ("recordings", "subjects", "groups")
        if any(name in split for split in whole.values())
    }
    usable = [step["n"] for step in content.get("flow", []) if step["step"] == "usable"]
    people = {"recordings": usable[0]} | people if usable else people
    recordings = stated("recordings")
    train = stated("share for training")
    rows = [
        ("Data", f"{content['title']}, version {content['version']}", ""),
        ("Samples", f"{sum(sizes.values()):,} {unit}", stated(unit)),
        (
            "Recordings",
            ", ".join(f"{n:,} {name}" for name, n in people.items()),
            recordings and f"{recordings} recordings",
        ),
        ("Classes", str(len(content["classes"])), stated("classes")),
        ("Split", str(content["split_rule"]), train and f"{train} % for training"),
    ]
    for name, split in whole.items():
        share = _shares(content["classes"], split["counts"])
        printed = stated({"train": "training images", "test": "test images"}.get(name, name))
        rows.append((f"Split {name}", f"{split['n']:,}: {share}", printed))
    excluded = "; ".join(f"{item['reason']}: {item['count']:,}" for item in content["exclusions"])
    steps = [f"{step['n']:,} {step['unit']}: {step['step']}" for step in content.get("flow", [])]
    rows += [
        ("Cohort", "; ".join(steps), ""),
        ("Exclusions", excluded or "none", ""),
        ("Lacking", ", ".join(content.get("lacking", [])), ""),
        ("Files", _files(content["files"]), ""),
        ("Licence, access", f"{content['licence']}; {content['access']}", ""),
    ]
    return [row for row in rows if row[1] or row[2]]


def _shares(classes: Sequence[str], counts: Sequence[int]) -> str:
    total = sum(counts)
    shares = [f"{100 * count / total:.1f} %" for count in counts] if total else []
    if shares and len(set(shares)) == 1:
        return f"{shares[0]} each"
    return ", ".join(f"{name} {share}" for name, share in zip(classes, shares, strict=False))


def _files(files: Sequence[Mapping[str, Any]], shown: int = 2) -> str:
    """Return each file with the beginning of its checksum; of many, their number, size and one checksum over all of theirs."""
    if len(files) <= shown:
        return "; ".join(f"{item['file']} ({str(item['checksum'])[:19]})" for item in files)
    lines = "".join(f"{item['file']} {item['checksum']}\n" for item in files)
    total = sum(int(item["size"]) for item in files) / 1e6
    return f"{len(files):,} files, {total:,.1f} MB (sha256 of their list: {hashlib.sha256(lines.encode()).hexdigest()[:12]})"


def datasets_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S2 in parts of a few datasets each, so that their columns stay wide enough to read."""
    evidence = sources.evidence
    datasets = list(evidence.expected)
    n_parts = -(-len(datasets) // PER_PART)
    size = -(-len(datasets) // n_parts)
    parts = []
    for start in range(0, len(datasets), size):
        shown = datasets[start : start + size]
        width = (LINE - FIRST - GAP * (len(shown) + 1)) / len(shown)
        body = "\\toprule\n" + row("", *(escape(evidence.expected[key]["title"]) for key in shown)) + "\\midrule\n"
        part = frame[frame["dataset"].isin(shown)]
        for quantity in sorted(part["quantity"].unique(), key=QUANTITIES.index):
            body += paragraphs(quantity, *(_cell(part, dataset, quantity) for dataset in shown))
        columns = f"p{{{FIRST}cm}}" + f"p{{{width:.2f}cm}}" * len(shown)
        continued = "(continued)" if start else ""
        parts.append(floating(body + "\\bottomrule\n", columns, text, "tab:datasets", evidence.miniature, continued))
    return "\n".join(parts)


def _cell(frame: pd.DataFrame, dataset: str, quantity: str) -> str:
    for entry in frame[(frame["dataset"] == dataset) & (frame["quantity"] == quantity)].to_dict("records"):
        return f"{entry['ours']} (paper: {entry['printed']})" if entry["printed"] else str(entry["ours"])
    return ""
