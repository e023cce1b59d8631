"""What can be said of the repository without running it: tables, configuration, scripts and documents agree."""

import csv
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from replication.datasets.sources import read_sources
from replication.report.documents import replace_block
from replication.report.evidence import Evidence
from replication.report.printed_values import read_printed_values
from replication.report.tables.readme import readme_results
from replication.runs.models import MODELS
from replication.runs.outputs import BENCHMARK, descriptions
from replication.runs.settings import DEFAULTS, load_settings

REPOSITORY = Path(__file__).parents[2]
WORKFLOW = REPOSITORY / "workflow"
CONFIG: dict[str, Any] = load_settings(REPOSITORY)
OWN_SOURCES = [name for name, entry in CONFIG["datasets"].items() if "raw_of" not in entry]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "envs" / "README.md"]


@pytest.mark.parametrize("dataset", OWN_SOURCES)
def test_sources_of_every_dataset_are_verifiable(dataset: str) -> None:
    rows = read_sources(WORKFLOW / "config" / "data_sources.csv", dataset)
    assert rows
    assert len({row.file for row in rows}) == len(rows)
    for row in rows:
        assert row.version
        assert row.licence
        assert row.access
        assert all(url.startswith("https://") for url in row.urls)
        assert row.checksum or row.content or "no checksum" in row.access or row.access.startswith("credentialed")
        if row.checksum:
            algorithm, value = row.checksum.split(":")
            assert re.fullmatch(r"[0-9a-f]+", value)
            assert len(value) == {"md5": 32, "sha1": 40, "sha256": 64}[algorithm]


def test_sources_name_no_dataset_that_is_not_configured() -> None:
    with (WORKFLOW / "config" / "data_sources.csv").open() as stream:
        assert {row["dataset"] for row in csv.DictReader(stream)} == set(OWN_SOURCES)


@pytest.mark.parametrize("file", DEFAULTS)
def test_comments_of_the_configuration_stand_above_their_keys(file: str) -> None:
    """Every setting has one above it, above a mapping that holds it, or where the same key stands first."""
    explained: set[str] = set()
    bare: dict[int, str] = {}
    blocks: list[tuple[int, bool]] = []
    lines = (REPOSITORY / file).read_text().splitlines()
    for number, (above, line) in enumerate(zip(["", *lines], lines, strict=False), 1):
        assert len(line) < 100, f"line {number} is too long"
        if not line.lstrip().startswith("#"):
            assert " #" not in line, f"line {number}: the comment is beside its key, not above it"
            assert not re.search(r"<<|[:,\[] ?[&*]\w", line), f"line {number}: an anchor, an alias or a merge key"
        if match := re.match(r"( *)([\w-]+):( |$)", line):
            indent, key = len(match[1]), match[2]
            blocks = [block for block in blocks if block[0] < indent]
            if above.lstrip().startswith("#"):
                explained.add(key)
            elif not line.endswith(":") and not any(known for _, known in blocks) and key not in explained:
                bare[number] = key
            blocks.append((indent, key in explained))
    names = {*MODELS, *CONFIG["variants"], "title", "needs"}
    assert {number: key for number, key in bare.items() if key not in names} == {}


def test_configuration_of_a_replicator_is_short() -> None:
    assert len((REPOSITORY / "config.yaml").read_text().splitlines()) < 160


def test_every_script_belongs_to_a_rule_and_every_rule_has_its_script() -> None:
    named = {
        name
        for file in [REPOSITORY / "Snakefile", *(WORKFLOW / "rules").glob("*.smk")]
        for name in re.findall(r'"\.\./scripts/(\w+)\.py"', file.read_text())
    }
    named |= set(re.findall(r"workflow/scripts/(\w+)\.py", (REPOSITORY / "Makefile").read_text()))
    assert named == {path.stem for path in (WORKFLOW / "scripts").glob("*.py")}


@pytest.mark.parametrize("file", sorted((WORKFLOW / "rules").glob("*.smk")), ids=lambda path: path.name)
def test_every_rule_has_a_message_a_log_and_a_script(file: Path) -> None:
    for rule in re.split(r"^ *rule\b.*:\n", file.read_text(), flags=re.MULTILINE)[1:]:
        for directive in ("message:", "log:", "script:"):
            assert directive in rule


def test_profile_of_the_cluster_and_the_makefile_name_rules_that_exist() -> None:
    rules = {
        name
        for file in [REPOSITORY / "Snakefile", *(WORKFLOW / "rules").glob("*.smk")]
        for name in re.findall(r"^(?:use rule \w+ as|rule) (\w+)", file.read_text(), flags=re.MULTILINE)
    }
    profile = yaml.safe_load((REPOSITORY / "profiles" / "slurm" / "config.yaml").read_text())
    assert {*profile["set-resources"], *profile["set-threads"]} <= rules
    makefile = (REPOSITORY / "Makefile").read_text()
    assert set(re.findall(r"--forcerun (\w+)", makefile)) <= rules
    assert all(f"{BENCHMARK}/evidence" in path for path in re.findall(r"results/\S+", makefile) if "evidence" in path)


def test_results_in_the_readme_are_those_published() -> None:
    expected = descriptions(CONFIG["datasets"], CONFIG)
    evidence = Evidence.found(REPOSITORY / "results" / "published", expected)
    block = readme_results(evidence, read_printed_values(WORKFLOW / "config" / "printed_values.csv"))
    readme = (REPOSITORY / "README.md").read_text()
    assert readme == replace_block(readme, "results", block), "run `make readme`"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_documents_link_to_files_that_exist(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_documents_name_settings_and_files_that_exist(document: Path) -> None:
    text = document.read_text()
    for name in re.findall(r"`((?:src|workflow|profiles|tests|envs)/[\w./-]+\.\w+)`", text):
        assert (REPOSITORY / name).exists(), name
    tops = "|".join(key for key, value in CONFIG.items() if isinstance(value, dict))
    for setting in re.findall(rf"`((?:{tops})(?:\.[\w-]+)+)`", text):
        if setting.endswith((".csv", ".yaml", ".py", ".md")):
            continue
        node: Any = CONFIG
        for key in setting.split("."):
            assert key in node, f"{setting} is not a setting"
            node = node[key]


def test_code_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("modules", "spared"),
    [
        (
            "replication.report.tables.render, replication.report.claims.page, replication.report.figures.render, "
            "replication.report.publication",
            "torch, sklearn, scipy.stats",
        ),
        (
            "replication.datasets.prepare, replication.datasets.fetch, replication.datasets.prepared",
            "torch, sklearn, pandas",
        ),
        ("replication.models.training", "sklearn, torchmetrics, torchvision, torch._dynamo, matplotlib"),
    ],
)
def test_jobs_do_not_wait_for_libraries_that_they_do_not_use(modules: str, spared: str) -> None:
    code = f"import sys, {modules}; print(*(name for name in {spared.split(', ')} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_versions_and_names_agree() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
