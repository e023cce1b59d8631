"""All tables by name: evidence -> tidy frame -> LaTeX."""

from collections.abc import Callable

import pandas as pd

from replication.report.captions import caption
from replication.report.evidence import run_dataset, run_model
from replication.report.latex import HEADER
from replication.report.tables import (
    ablation,
    bandwidth,
    benchmark,
    choices,
    classes,
    comparisons,
    datasets,
    fast_trunk,
    multiclass,
    read_outs,
    readings,
    resources,
    rules,
    sepsis,
    shift,
    stages,
    trunk,
    tuning,
)
from replication.report.tables.parts import Metric, Sources, Table

FrameOf = Callable[[Sources], pd.DataFrame]
TexOf = Callable[[pd.DataFrame, Sources, str], str]

TABLES: dict[str, tuple[FrameOf, TexOf]] = {
    "table1": (multiclass.table1_frame, multiclass.table1_tex),
    "table2": (classes.classes_frame, classes.classes_tex),
    "table3": (sepsis.table3_frame, sepsis.table3_tex),
    "tableS1": (choices.choices_frame, choices.choices_tex),
    "tableS2": (datasets.datasets_frame, datasets.datasets_tex),
    "tableS3": (resources.resources_frame, resources.resources_tex),
    "tableS4": (rules.rules_frame, rules.rules_tex),
    "tableS5": (ablation.decisions_frame, ablation.decisions_tex),
    "tableS6": (sepsis.detection_frame, sepsis.detection_tex),
    "tableS7": (benchmark.benchmark_frame, benchmark.benchmark_tex),
    "tableS8": (multiclass.further_frame, multiclass.further_tex),
    "tableS9": (sepsis.calibration_frame, sepsis.calibration_tex),
    "tableS10": (sepsis.brier_frame, sepsis.brier_tex),
    "tableS11": (ablation.training_frame, ablation.training_tex),
    "tableS12": (fast_trunk.methods_frame, fast_trunk.methods_tex),
    "tableS13": (fast_trunk.trials_frame, fast_trunk.trials_tex),
    "tableS14": (shift.shift_frame, shift.shift_tex),
    "tableS15": (readings.readings_frame, readings.readings_tex),
    "tableS16": (comparisons.comparisons_frame, comparisons.comparisons_tex),
    "tableS17": (tuning.tuning_frame, tuning.tuning_tex),
    "tableS18": (trunk.trunk_frame, trunk.trunk_tex),
    "tableS19": (read_outs.read_outs_frame, read_outs.read_outs_tex),
    "tableS20": (stages.stages_frame, stages.stages_tex),
    "tableS21": (bandwidth.bandwidth_frame, bandwidth.bandwidth_tex),
}

METRIC_COLUMNS: list[Metric] = [
    *fast_trunk.METHOD_METRICS,
    *sepsis.TABLE3_METRICS, *sepsis.DETECTION_METRICS, *sepsis.CALIBRATION_METRICS, *sepsis.BRIER_METRICS,
    *ablation.DECISION_METRICS, *ablation.CALIBRATION_METRICS, *ablation.TRAINING_METRICS,
    shift.VALIDATION, shift.SHIFT, *multiclass.FURTHER_METRICS, *multiclass.TABLE1_METRICS,
]  # fmt: skip
"""The metrics of all tables; of two with the same key the later one has the name that serves everywhere."""


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
    if name in ("tableS1", "tableS20"):
        runs = [record for dataset in evidence.at_hand() for record in evidence.runs(dataset)]
    text = caption(fixed_caption, evidence, runs)
    return Table(frame, HEADER + make_tex(frame, sources, text), text, runs)
