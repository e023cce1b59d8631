"""Write outputs, evidence and data with their checksums as a Workflow Run RO-Crate; run from the repository root.

The library rocrate is in the requirements of the documentation. Usage: write_crate.py FOLDER
With roc-validator 0.13.0 a crate passed all 57 required checks of the profile workflow-run-crate 0.5 (2026-11-28).
"""

import csv
import hashlib
import sys
from pathlib import Path
from typing import Any

import yaml
from rocrate.model import ContextEntity
from rocrate.rocrate import ROCrate

from replication.report.provenance import told
from replication.runs.run import RUNS, git, records_of

PROFILES = (
    "https://w3id.org/ro/wfrun/process/0.5", "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)  # fmt: skip
SETTINGS = ("config.yaml", *map(str, sorted(Path("workflow/config").glob("*.yaml"))))
LICENCE = "https://spdx.org/licenses/MIT"


def tracked(name: str) -> Any:
    """Add a tracked file with its checksum."""
    return crate.add_file(name, name, properties={"sha256": hashlib.sha256(Path(name).read_bytes()).hexdigest()})


def ended(path: Path) -> str:
    """Return when a path was last committed."""
    return str(git("log", "-1", "--format=%cI", "--", str(path)))


def action(how: str, name: str, end: str, used: list[Any], made: list[Any]) -> Any:
    """Add what the workflow did, with the files that it used and made."""
    done = {
        "@type": "CreateAction", "name": name, "description": how, "endTime": end,
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }  # fmt: skip
    entity = crate.add(ContextEntity(crate, f"#{name}", done))
    entity["instrument"], entity["object"], entity["result"] = workflow, used, made
    return entity


about = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8"))
crate = ROCrate(version="1.1")
crate.name, crate.description = about["title"], about["abstract"]
crate.license = crate.add(ContextEntity(crate, LICENCE, {"@type": "CreativeWork", "name": "MIT License"}))
crate.root_dataset["conformsTo"] = [
    crate.add(ContextEntity(crate, profile, {"@type": "CreativeWork", "name": name, "version": version}))
    for profile in PROFILES
    for *_, name, version in [profile.split("/")]
]
workflow = crate.add_workflow("Snakefile", "Snakefile", main=True, lang="snakemake")
workflow["name"], workflow["license"], workflow["version"] = about["title"], crate.license, about["version"]
crate.add_file("README.md", "README.md", properties={"about": crate.root_dataset, "encodingFormat": "text/markdown"})
workflow["hasPart"] = [crate.add_file(str(path), str(path)) for path in sorted(Path("workflow").rglob("*.smk"))]
used = [tracked(name) for name in SETTINGS]
with open("workflow/config/data_sources.csv", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["url"] and row["access"].startswith("open"):
            known = {"name": row["file"], "identifier": row["checksum"], "license": row["licence"]}
            used.append(crate.add_file(row["url"], fetch_remote=False, validate_url=False, properties=known))
paths = git("ls-files", "paper_figures").splitlines()
outputs = [path for path in paths if not path.endswith(".md") and "/afternoon" not in path]
published = [Path(path).parent for path in git("ls-files", "results/published/*/evidence/runs.jsonl").splitlines()]
records = [tracked(str(folder / RUNS)) for folder in published]
actions = [
    action(f"{len(runs)} runs: {told(runs)}", folder.parent.name, ended(folder), used, [record])
    for folder, record in zip(published, records, strict=True)
    for runs in [records_of(folder)]
]
made = [tracked(name) for name in outputs]
rendered = ended(Path("paper_figures"))
actions.append(action("snakemake outputs, from the evidence", "outputs", rendered, [*used, *records], made))
crate.root_dataset["mentions"] = actions
crate.write(sys.argv[1])
print(f"{sys.argv[1]}: {len(outputs)} files of outputs, {len(records)} of records, {len(used)} of settings and data")
