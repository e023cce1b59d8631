"""Table S18: trunks of the encoder in intensive care, on development patients."""

from typing import Any

import pandas as pd

from replication.report.labels import model_title
from replication.report.tables.parts import RESULT_COLUMNS, Metric, Sources, models_of, result_rows, results_tex

METRICS = [Metric("auroc", "AUROC"), Metric("auprc", "AUPRC"), Metric("ece", "ECE")]


def trunk_frame(sources: Sources) -> pd.DataFrame:
    """Return the figures of each kernel and trunk over seeds, as fractions."""
    evidence = sources.evidence
    rows: list[dict[str, Any]] = []
    for study in evidence.at_hand():
        rows += result_rows(evidence, study, models_of(evidence, study), METRICS)
    return pd.DataFrame(rows, columns=[name for name in RESULT_COLUMNS if name != "printed"])


def trunk_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S18."""
    return results_tex(frame, sources.evidence, METRICS, model_title, text, "tab:trunk")
