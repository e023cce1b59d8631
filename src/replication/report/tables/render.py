"""All tables by name: evidence -> tidy frame -> LaTeX."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from replication.report.captions import caption
from replication.report.evidence import run_dataset, run_model
from replication.report.tables import (
    paper,
    supplement_accuracy,
    supplement_cost,
    supplement_data,
    supplement_sepsis,
    supplement_studies,
)
from replication.report.tables.layout import HEADER, FrameOf, Sources, TexOf, results, results_tex
from replication.report.tables.supplement_sepsis import DETECTION_METRICS

TABLES: dict[str, tuple[FrameOf, TexOf]] = {
    "table1": (paper.table1_frame, paper.table1_tex),
    "table2": (paper.table2_frame, paper.table2_tex),
    "table3": (paper.table3_frame, paper.table3_tex),
    "supplement/tableS1": (supplement_data.choices_frame, supplement_data.choices_tex),
    "supplement/tableS2": (supplement_data.datasets_frame, supplement_data.datasets_tex),
    "supplement/tableS3": (supplement_cost.resources_frame, supplement_cost.resources_tex),
    "supplement/tableS4": (supplement_accuracy.rules_frame, supplement_accuracy.rules_tex),
    "supplement/tableS5": (supplement_studies.decisions_frame, supplement_studies.decisions_tex),
    "supplement/tableS6": (
        supplement_sepsis.detection_frame,
        partial(results_tex, metrics=DETECTION_METRICS, label="tab:sepsis"),
    ),
    "supplement/tableS7": (supplement_cost.benchmark_frame, supplement_cost.benchmark_tex),
    "supplement/tableS8": results(supplement_accuracy.FURTHER_METRICS, "tab:further", paper.TABLE1_MODELS),
    "supplement/tableS9": results(supplement_sepsis.CALIBRATION_METRICS, "tab:sepsis_calibration"),
    "supplement/tableS10": results(supplement_sepsis.BRIER_METRICS, "tab:sepsis_brier"),
    "supplement/tableS11": (supplement_studies.training_frame, supplement_studies.training_tex),
    "supplement/tableS12": (supplement_studies.methods_frame, supplement_studies.methods_tex),
    "supplement/tableS13": (supplement_studies.trials_frame, supplement_studies.trials_tex),
    "supplement/tableS14": (supplement_accuracy.shift_frame, supplement_accuracy.shift_tex),
    "supplement/tableS15": (supplement_sepsis.readings_frame, supplement_sepsis.readings_tex),
    "supplement/tableS16": (supplement_accuracy.comparisons_frame, supplement_accuracy.comparisons_tex),
    "supplement/tableS17": (supplement_studies.tuning_frame, supplement_studies.tuning_tex),
    "supplement/tableS18": results(supplement_sepsis.TRUNK_METRICS, "tab:trunk"),
    "supplement/tableS19": (supplement_accuracy.read_outs_frame, supplement_accuracy.read_outs_tex),
    "supplement/tableS20": (supplement_cost.stages_frame, supplement_cost.stages_tex),
    "supplement/tableS21": (supplement_accuracy.bandwidth_frame, supplement_accuracy.bandwidth_tex),
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
    if "with_seeds" in frame:  # means over some of a model's runs
        of_model = frame.dropna(subset="model").groupby(["dataset", "model"])["with_seeds"].first().to_dict()
        runs = [run for run in runs if str(run["seed"]) in of_model[run_dataset(run), run_model(run)].split()]
    if name in ("supplement/tableS1", "supplement/tableS20"):
        runs = [record for dataset in evidence.at_hand() for record in evidence.runs(dataset)]
    text = caption(fixed_caption, evidence, runs)
    return Table(frame, HEADER + make_tex(frame, sources, text), text, runs)
