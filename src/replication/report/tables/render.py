"""All tables by name: evidence -> tidy frame -> LaTeX."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.report.captions import caption
from replication.report.tables import complexity, paper, setup, supplement
from replication.report.tables.layout import HEADER, FrameOf, Sources, TexOf

TABLES: dict[str, tuple[FrameOf, TexOf]] = {
    "table1": (paper.table1_frame, paper.table1_tex),
    "table2": (paper.table2_frame, paper.table2_tex),
    "table3": (paper.table3_frame, paper.table3_tex),
    "supplement/tableS1": (supplement.studies_frame, supplement.studies_tex),
    "supplement/tableS2": (supplement.comparisons_frame, supplement.comparisons_tex),
    "supplement/tableS3": (setup.trials_frame, setup.trials_tex),
    "supplement/tableS4": (supplement.further_frame, supplement.further_tex),
    "supplement/tableS5": (supplement.sepsis_frame, supplement.sepsis_tex),
    "supplement/tableS6": (supplement.rules_frame, supplement.rules_tex),
    "supplement/tableS7": (setup.datasets_frame, setup.datasets_tex),
    "supplement/tableS8": (complexity.measured_frame, complexity.measured_tex),
    "own/table_accuracy": (paper.accuracy_frame, paper.accuracy_tex),
}


@dataclass(frozen=True)
class Table:
    """A rendered table: its tidy frame, LaTeX source, full caption and the records of the runs behind it."""

    frame: pd.DataFrame
    tex: str
    caption: str
    runs: list[dict[str, Any]]


def render(name: str, sources: Sources, fixed_caption: str) -> Table:
    """Return one of `TABLES`, with its caption and the records of the runs that its numbers rest on."""
    make_frame, make_tex = TABLES[name]
    frame = make_frame(sources)
    evidence = sources.evidence
    runs = evidence.runs_behind(frame) if "model" in frame else []
    if "seed" in frame:  # a table of single runs
        runs = [record for record in runs if record["seed"] in set(frame["seed"].dropna())]
    text = caption(fixed_caption, evidence, runs)
    return Table(frame, HEADER + make_tex(frame, sources, text), text, runs)
