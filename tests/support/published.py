"""The published evidence, and copies of it for tests that change something."""

import json
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pandas as pd

from replication.report.evidence import Evidence
from replication.runs.outputs import declared, descriptions, evidence_behind
from replication.runs.registry import CLAIMS
from replication.runs.run import DESCRIPTION, RUNS, read_records, write_records
from support.repository import PUBLISHED, REAL, REPOSITORY

EXPECTED = descriptions([*REAL["datasets"], *evidence_behind(CLAIMS, REAL)], REAL)
"""All datasets, and what else claims rest on."""
VERDICTS = json.loads((REPOSITORY / "paper_figures" / "claims.json").read_text())["claims"]
"""The tracked ones."""


def copy_evidence(root: Path, *names: str) -> Path:
    """Copy the published evidence of datasets and studies, without predictions, below `root`; return `root`."""
    for name in names:
        source = PUBLISHED / name / "evidence"
        shutil.copytree(source, root / name / "evidence", ignore=shutil.ignore_patterns("*.parquet"))
    return root


def change(root: Path, name: str, file: str, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Replace a table of copied evidence by what `edit` makes of it."""
    path = root / name / "evidence" / file
    edit(pd.read_csv(path)).to_csv(path, index=False)


def without_models(root: Path, models: Collection[str]) -> None:
    """Take all rows and records of some models out of copied evidence, as if they had never been trained."""
    for records in root.glob(f"*/evidence/{RUNS}"):
        for file in records.parent.glob("*.csv*"):
            frame = pd.read_csv(file)
            if column := next((name for name in ("cell", "model") if name in frame), None):
                frame[~frame[column].isin(models)].to_csv(file, index=False)
            elif "clai-m" in models:  # what shows CLaI-M alone names no model
                file.unlink()
        kept = [record for record in read_records(records) if record["run"].split("/")[1] not in models]
        write_records(records, kept)


def describe(root: Path, name: str, **changes: Any) -> None:
    """Change entries of the description of copied evidence."""
    path = root / name / "evidence" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def caption(output: str) -> str:
    """Return the text that goes with a table or a figure."""
    return (REPOSITORY / "workflow" / "report" / f"{output}.rst").read_text()


def evidence_for(output: str, root: Path = PUBLISHED) -> Evidence:
    """Return the evidence below `root` that a table, a figure or the page of claims shows; of a user's own, of one dataset."""
    behind = ["pathmnist"] if output.startswith("own/") else evidence_behind(output, REAL)
    shown = {*declared(output)["files"], DESCRIPTION}
    files = [str(path) for path in root.glob("*/evidence/*") if path.name in shown]
    return Evidence.of_files(root, descriptions(behind, REAL), files)
