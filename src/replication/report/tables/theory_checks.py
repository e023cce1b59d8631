"""The block of numerical checks in docs/theory.md."""

from collections.abc import Sequence

import pandas as pd

from replication.benchmark.analysis import values
from replication.report.evidence import Evidence

CHECKS = "theory"
SECTIONS: Sequence[tuple[str, str, str, str, dict[str, object]]] = (
    ("1", "cosine kernel, loss that free embeddings reach minus the floor", "floor", "gap", {"kernel": "cosine"}),
    ("1", "Gaussian kernel, the same", "floor", "gap", {"kernel": "gaussian"}),
    ("2", "error of the decomposition of f", "parzen", "identity_error", {}),
    ("2", "f far from all data, minus (1 - 2p)", "parzen", "offset_error", {}),
    ("3", "share of samples that contradict the band", "parzen", "band_error", {}),
    (
        "3", "agreement of the printed rule with the Parzen-Bayes rule, p = 1/2", "parzen", "agreement_kde",
        {"rule": "printed", "share": 0.5},
    ),
    (
        "3", "the same, over all class shares", "parzen", "agreement_kde",
        {"rule": "printed"},
    ),
    ("3", "error of f of ideal similarities", "ideal", "f_error", {}),
    ("4", "error of the losses of a constant S", "collapse", "loss_error", {}),
    ("4", "error of the alignments of a constant S", "collapse", "alignment_error", {}),
    ("4", "centred alignment of S = 1 with `product`", "collapse", "centred_alignment", {"target": "product"}),
    ("4", "centred alignment of S = -1 with `masked`", "collapse", "centred_alignment", {"target": "masked"}),
    ("4", "largest partial derivative where all embeddings coincide", "collapse", "gradient", {}),
    ("4", "fall of the loss over step² p (1 - p), cosine kernel", "collapse", "descent", {"kernel": "cosine"}),
    ("4", "fall of the loss over step² p (1 - p), Gaussian kernel", "collapse", "descent", {"kernel": "gaussian"}),
)  # fmt: skip
"""Section of the document, what is checked, name of the check, quantity, and the settings that it is taken from."""


def theory_checks(evidence: Evidence) -> str:
    """Return a Markdown table: each check of docs/theory.md with the range of its values over settings and seeds."""
    frame = _with_differences(values(evidence.frame(CHECKS, "theory.csv")))
    lines = ["| section | check | settings and seeds | least | largest |", "| --- | --- | ---: | ---: | ---: |"]
    for section, text, check, quantity, chosen in SECTIONS:
        rows = frame[(frame["check"] == check) & (frame["quantity"] == quantity)]
        for name, value in chosen.items():
            rows = rows[rows[name] == value] if len(rows) else rows
        found = rows["value"]
        shown = f"{found.min():.2g} | {found.max():.2g}" if len(found) else "not computed yet | not computed yet"
        lines.append(f"| {section} | {text} | {len(found)} | {shown} |")
    return "\n".join(lines)


def _with_differences(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the checks with two quantities more: `gap`, attained - floor, and `offset_error`, f_far - (1 - 2p)."""
    floors = frame[frame["quantity"] == "floor"].set_index("setting")["value"]
    gaps = frame[frame["quantity"] == "attained"]
    gaps = gaps.assign(quantity="gap", value=gaps["value"] - gaps["setting"].map(floors))
    far = frame[frame["quantity"] == "f_far"]
    far = far.assign(quantity="offset_error", value=far["value"] - (1 - 2 * far["share"]))
    return pd.concat([frame, gaps, far])
