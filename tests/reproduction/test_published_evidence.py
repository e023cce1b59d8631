"""What is tracked in paper_figures/ follows from results/published/, and every number there has its provenance."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from replication.report.claims.judge import judge
from replication.report.claims.page import claim_page, claims_frame, claims_page, lines
from replication.report.documents import readme_results, replace_block
from replication.report.evidence import Evidence
from replication.report.figures.render import render as draw
from replication.report.printed_values import read_values
from replication.report.sidecars import csv_text
from replication.report.tables.layout import Sources
from replication.report.tables.render import render
from replication.runs.outputs import CLAIMS, FIGURES, TABLES, descriptions, evidence_behind
from replication.runs.record import digest
from support.repository import PRINTED, REAL, REPOSITORY

PUBLISHED = Path("results/published")
LARGEST_MB = 72
"""Of predictions, samples and models together: git keeps every version of them for ever, and packs hardly any smaller."""
EVALUATED_APART = ("clai-m", "clai-c", "cross-entropy")  # by another job than trained them, of studies excepted

pytestmark = pytest.mark.skipif(
    not list((REPOSITORY / PUBLISHED).glob("*/evidence/dataset.json")), reason="nothing is published yet"
)


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def evidence(name: str = CLAIMS) -> Evidence:
    return Evidence.found(PUBLISHED, descriptions(evidence_behind(name, REAL), REAL))


def assert_tracked(name: str, frame: pd.DataFrame) -> None:
    tracked = pd.read_csv(f"paper_figures/{name}.csv")
    again = pd.read_csv(io.StringIO(csv_text(frame)))
    pd.testing.assert_frame_equal(again, tracked, rtol=1e-5)


@pytest.mark.parametrize("name", TABLES)
def test_tracked_tables_follow_from_the_published_evidence(name: str) -> None:
    reported = read_values(Path("workflow/config/reported_values.csv"))
    sources = Sources(evidence(name), PRINTED, reported, read_values(Path("workflow/config/choices.csv")), REAL)
    table = render(name, sources, Path(f"workflow/report/{name}.rst").read_text())
    assert_tracked(name, table.frame)
    assert Path(f"paper_figures/{name}.tex").read_text() == table.tex


@pytest.mark.parametrize("name", FIGURES)
def test_tracked_figure_data_follow_from_the_published_evidence(name: str) -> None:
    claims = json.loads(Path("paper_figures/claims.json").read_text())["claims"]
    assert_tracked(name, draw(name, evidence(name), "", PRINTED, claims)[1])


def test_tracked_verdicts_follow_from_the_published_evidence() -> None:
    claims = judge(evidence(), PRINTED)
    assert json.loads(Path("paper_figures/claims.json").read_text())["claims"] == claims
    assert_tracked("claims", claims_frame(claims))
    assert Path("paper_figures/claims.md").read_text() == claims_page(claims)
    for claim in claims:
        assert Path(f"paper_figures/claims/{claim['id']}.md").read_text() == claim_page(claim)


def test_every_published_number_has_a_run_with_commit_seed_data_and_hardware() -> None:
    published = evidence()
    for dataset in [*published.at_hand(), "theory"]:
        records = {record["run"]: record for record in published.runs(dataset)}
        assert records
        for run, record in records.items():
            assert len(record["commit"]) == 40, run
            for part in (record, record.get("evaluation", record)):
                assert part["dirty"] is False, run
            assert digest(record["settings"]) == record["config_hash"], run
            assert record["hardware"], run
            assert all(":" in checksum for checksum in record["data"].values()), run
        metrics = published.frame(dataset, "metrics.csv")
        for row in metrics[["model", "seed", "fold"]].drop_duplicates().to_dict("records"):
            run = f"{dataset}/{row['model']}/seed{int(row['seed'])}"
            run += "" if pd.isna(row["fold"]) else f"/fold{int(row['fold'])}"
            assert records[run]["seed"] == row["seed"], run
            if row["model"] in EVALUATED_APART and dataset in REAL["datasets"]:
                assert len(records[run]["evaluation"]["commit"]) == 40, run
            assert records[run]["data"], run


def test_predictions_samples_and_models_stay_small_enough_for_git() -> None:
    patterns = ("*/evidence/predictions_*.parquet", "*/evidence/samples.parquet", "*/models/*/*")
    sizes = {file: file.stat().st_size / 1e6 for pattern in patterns for file in PUBLISHED.glob(pattern)}
    largest = ", ".join(f"{file} {sizes[file]:.1f} MB" for file in sorted(sizes, key=lambda file: -sizes[file])[:5])
    message = f"round predictions more coarsely, or publish fewer references; the largest: {largest}"
    assert 0 < sum(sizes.values()) < LARGEST_MB, message


def test_published_data_is_real() -> None:
    assert not evidence().miniature


def test_readme_shows_the_published_results() -> None:
    readme = Path("README.md").read_text()
    verdicts = lines(json.loads(Path("paper_figures/claims.json").read_text())["claims"], "paper_figures/claims")
    assert readme == replace_block(readme, "verdicts", verdicts), "run workflow/scripts/update_readme.py"
    assert readme == replace_block(readme, "results", readme_results(evidence(), PRINTED)), "likewise"


def test_models_alone_have_the_mean_metrics_of_their_runs() -> None:
    published = evidence()
    compared = [key for key in published.at_hand() if not published.frame(key, "comparisons.csv").empty]
    assert compared
    for dataset in compared:
        comparisons, metrics = published.frame(dataset, "comparisons.csv"), published.metrics(dataset)
        alone = comparisons[comparisons["other"].isna()]
        assert set(alone["model"]) == set(comparisons["model"]), dataset
        means = metrics.groupby(["model", "metric"])["value"].mean()
        for row in alone.to_dict("records"):
            assert row["value"] == pytest.approx(means[row["model"], row["metric"]], abs=5e-4), (dataset, row)
