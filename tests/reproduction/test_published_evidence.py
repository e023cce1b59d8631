"""What is tracked in paper_figures/ follows from results/published/, and every number there has its provenance."""

import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest

from replication.report.cards import card
from replication.report.claims.judge import judge
from replication.report.claims.page import claim_page, claims_frame, claims_page, in_short, lines
from replication.report.evidence import Evidence
from replication.report.figures.render import render as draw
from replication.report.figures.render import save, witnesses
from replication.report.tables.paper import headline
from replication.report.tables.render import render
from replication.report.texts import csv_text, replace_block, sidecar
from replication.runs.outputs import declared
from replication.runs.registry import CLAIMS, FIGURES, TABLES
from replication.runs.run import RUNS, digest, records_of
from replication.runs.settings import cell_settings, model_settings
from support.published import EXPECTED, VERDICTS, caption, evidence_for
from support.repository import PUBLISHED, REAL, REPOSITORY, flat

TRACKED = REPOSITORY / "paper_figures"
NAMES = REAL["datasets"] | REAL["studies"]
LARGEST_MB = 84
"""Of predictions, samples and models together: git keeps every version of them for ever, and packs hardly any smaller."""
EVALUATED_APART = ("clai-m", "clai-c", "cross-entropy")  # by another job than trained them, of studies excepted


def assert_tracked(name: str, made: Mapping[str, str | bytes]) -> None:
    """Compare an output's files, by suffix, with the tracked ones to the byte."""
    for suffix, content in made.items():
        same = (TRACKED / f"{name}{suffix}").read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert same, f"paper_figures/{name}{suffix} is another one; render it again"


@pytest.mark.parametrize("name", TABLES)
def test_tracked_tables_follow_from_the_published_evidence(name: str) -> None:
    evidence = evidence_for(name)
    table = render(name, declared(name), evidence, caption(name))
    further = sidecar(table.caption, evidence, table.runs)
    assert_tracked(name, {".tex": table.tex, ".md": table.md, ".csv": csv_text(table.frame), ".json": further})


@pytest.mark.parametrize("name", FIGURES)
def test_tracked_figures_follow_from_the_published_evidence(name: str, tmp_path: Path) -> None:
    evidence = evidence_for(name)
    figure, frame, text, runs = draw(name, evidence, caption(name), VERDICTS)
    made: dict[str, str | bytes] = {".csv": csv_text(frame), ".json": sidecar(text, evidence, runs)}
    for suffix in (".pdf", ".png"):
        save(figure, tmp_path / f"figure{suffix}")
        made[suffix] = (tmp_path / f"figure{suffix}").read_bytes()
    assert_tracked(name, made)


def test_tracked_verdicts_follow_from_the_published_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)  # pages name the files of evidence as the workflow does
    claims = judge(evidence_for(CLAIMS, PUBLISHED.relative_to(REPOSITORY)))
    assert claims == VERDICTS
    assert_tracked("claims", {".csv": csv_text(claims_frame(claims)), ".md": claims_page(claims)})
    for claim in claims:
        assert_tracked(f"claims/{claim['id']}", {".md": claim_page(claim)})


def test_every_published_number_has_a_run_with_commit_seed_data_and_hardware() -> None:
    published = evidence_for(CLAIMS)
    assert not published.miniature
    for dataset in [*published.at_hand(), "theory"]:
        records = {record["run"]: record for record in records_of(published.path(dataset, RUNS).parent)}
        assert records
        for run, record in records.items():
            assert len(record["commit"]) == 40, run
            for part in (record, record.get("evaluation", record)):
                assert part["dirty"] is False, run
            assert digest(record["settings"]) == record["config_hash"], run
            assert record["hardware"], run
            assert all(":" in checksum for checksum in record["data"].values()), run
        metrics = published.frame(dataset, "metrics.csv")
        for row in metrics[["cell", "seed", "fold"]].drop_duplicates().to_dict("records"):
            run = f"{dataset}/{row['cell']}/seed{int(row['seed'])}"
            run += "" if pd.isna(row["fold"]) else f"/fold{int(row['fold'])}"
            assert records[run]["seed"] == row["seed"], run
            if row["cell"] in EVALUATED_APART and dataset in REAL["datasets"]:
                assert len(records[run]["evaluation"]["commit"]) == 40, run
            assert records[run]["data"], run


@pytest.mark.parametrize(
    "name", [path.parts[-2] for path in sorted(PUBLISHED.glob("*/evidence")) if path.parts[-2] in NAMES]
)
def test_published_runs_have_the_settings_that_are_declared(name: str) -> None:
    """So that today's command repeats them. Older records lack keys that came later; precision is the machine's."""
    of_cell = cache(partial(cell_settings if name in REAL["studies"] else model_settings, REAL, name))
    for record in records_of(PUBLISHED / name / "evidence"):
        now = flat(of_cell(record["run"].split("/")[1]))
        ran = {
            key: value
            for key, value in flat(record["settings"]).items()
            if key.startswith(("training.", "kernel.", "target."))
        }
        differ = {key: value for key, value in ran.items() if key in now and value != now[key]}
        assert set(differ) <= {"training.precision"}, record["run"]


def test_predictions_samples_and_models_stay_small_enough_for_git() -> None:
    patterns = ("*/evidence/predictions_*.parquet", "*/evidence/samples.parquet", "*/models/*/*")
    sizes = {file: file.stat().st_size / 1e6 for pattern in patterns for file in PUBLISHED.glob(pattern)}
    largest = ", ".join(f"{file} {sizes[file]:.1f} MB" for file in sorted(sizes, key=lambda file: -sizes[file])[:5])
    message = f"round predictions more coarsely, or publish fewer references; the largest: {largest}"
    assert 0 < sum(sizes.values()) < LARGEST_MB, message


def test_cards_follow_from_the_records_of_published_models() -> None:
    for path in PUBLISHED.glob("*/models/*/model.json"):
        limits = REAL["datasets"][path.parts[-4]].get("limits", [])
        assert path.with_name("README.md").read_text() == card(json.loads(path.read_text()), limits), path


def test_readme_shows_the_published_results(tmp_path: Path) -> None:
    readme, evidence = (REPOSITORY / "README.md").read_text(), Evidence.found(PUBLISHED, EXPECTED)
    blocks = {
        "verdicts": lines(VERDICTS, "paper_figures/claims"),
        "numbers": f"{headline(evidence)}\n\n{in_short(VERDICTS)}",
    }
    for name, block in blocks.items():
        assert readme == replace_block(readme, name, block), "run workflow/scripts/fill_pages.py"
    findings = (REPOSITORY / "docs" / "findings.md").read_text()
    assert findings == replace_block(findings, "short", in_short(VERDICTS)), "likewise"
    save(witnesses(evidence, "pathmnist"), tmp_path / "witnesses.png")
    assert (tmp_path / "witnesses.png").read_bytes() == (TRACKED / "witnesses.png").read_bytes(), "likewise"
