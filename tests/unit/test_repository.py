"""What can be said of the repository without running it: tables, configuration, scripts and documents agree."""

import copy
import csv
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from clai.datasets.fetch import read_sources
from clai.report.evidence import Evidence
from clai.report.printed_values import read_printed_values
from clai.report.tables.readme import readme_results, replace_results

REPOSITORY = Path(__file__).parents[2]
WORKFLOW = REPOSITORY / "workflow"
CONFIG: dict[str, Any] = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
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
        assert row.checksum or "no checksum" in row.access or row.access.startswith("credentialed")
        if row.checksum:
            algorithm, value = row.checksum.split(":")
            assert re.fullmatch(r"[0-9a-f]+", value)
            assert len(value) == {"md5": 32, "sha1": 40, "sha256": 64}[algorithm]


def test_sources_name_no_dataset_that_is_not_configured() -> None:
    with (WORKFLOW / "config" / "data_sources.csv").open() as stream:
        assert {row["dataset"] for row in csv.DictReader(stream)} == set(OWN_SOURCES)


def test_every_setting_of_the_configuration_has_a_comment() -> None:
    """On its line, on that of the mapping that holds it, or where another dataset has the same setting."""
    explained: set[str] = set()
    bare: dict[int, str] = {}
    above: list[tuple[int, bool]] = []
    for number, line in enumerate((REPOSITORY / "config.yaml").read_text().splitlines(), 1):
        if found := re.match(r"( *)([\w-]+):(?: (?!#)(.*?))?(?: +(#).*)?$", line):
            indent, key, value, comment = len(found[1]), found[2], found[3], found[4] is not None
            above = [entry for entry in above if entry[0] < indent]
            if comment:
                explained.add(key)
            elif value and not any(commented for _, commented in above):
                bare[number] = key
            above.append((indent, comment))
    assert {number: key for number, key in bare.items() if key not in explained} == {}


def test_datasets_and_studies_may_change_the_settings_that_they_read_and_no_others() -> None:
    schema = yaml.safe_load((WORKFLOW / "config" / "schema.yaml").read_text())
    properties = schema["properties"]

    def accepts(part: str, name: str, key: str) -> bool:
        whole = copy.deepcopy(CONFIG)
        whole[part][name]["overrides"][key] = CONFIG.get(key, {})
        return bool(jsonschema.Draft202012Validator(schema).is_valid(whole))

    shared = [key for key in properties if str(properties[key].get("$ref", "")).startswith("#/$defs/shared/")]
    assert "hourly" in shared
    assert [key for key in shared if not accepts("datasets", "mimic-iv", key)] == []
    refused = ["seeds", "model_seeds", "tsne", "stages", "figure4"]
    assert [key for key in ["seeds", *shared] if not accepts("studies", "ablation", key)] == refused


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


def test_results_in_the_readme_are_those_published() -> None:
    expected = {key: {name: entry[name] for name in ("title", "needs")} for key, entry in CONFIG["datasets"].items()}
    evidence = Evidence.found(REPOSITORY / "results" / "published", expected)
    block = readme_results(evidence, read_printed_values(WORKFLOW / "config" / "printed_values.csv"))
    readme = (REPOSITORY / "README.md").read_text()
    assert readme == replace_results(readme, block), "run `make readme`"


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
        if setting.endswith((".csv", ".yaml", ".py")):
            continue
        node: Any = CONFIG
        for key in setting.split("."):
            assert key in node, f"{setting} is not in config.yaml"
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
            "clai.report.tables.render, clai.report.claims.page, clai.report.figures.render, clai.report.publication",
            "torch, sklearn, scipy.stats",
        ),
        ("clai.datasets, clai.datasets.fetch, clai.datasets.prepared", "torch, sklearn, pandas"),
        ("clai.experiments.training", "sklearn, torchmetrics, torchvision, torch._dynamo, matplotlib"),
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
