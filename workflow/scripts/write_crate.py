"""Write outputs, evidence and data with their checksums as a Workflow Run RO-Crate; run from the repository root.

The library rocrate is in the requirements of the documentation. Usage: write_crate.py FOLDER
With roc-validator 0.13.0 a crate passed all 57 required checks of the profile workflow-run-crate 0.5 (2026-11-28).
"""

import csv
import sys
from pathlib import Path

import yaml
from rocrate.model import ContextEntity
from rocrate.rocrate import ROCrate

from replication.runs.run import git

PROFILES = (
    "https://w3id.org/ro/wfrun/process/0.5", "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)  # fmt: skip
SETTINGS = ("config.yaml", *map(str, sorted(Path("workflow/config").glob("*.yaml"))))
LICENCE = "https://spdx.org/licenses/MIT"

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
used = [crate.add_file(name, name) for name in SETTINGS]
with open("workflow/config/data_sources.csv", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["url"] and row["access"].startswith("open"):
            told = {"name": row["file"], "identifier": row["checksum"], "license": row["licence"]}
            used.append(crate.add_file(row["url"], fetch_remote=False, validate_url=False, properties=told))
tracked = git("ls-files", "paper_figures").splitlines()
outputs = [path for path in tracked if not path.endswith(".md") and "/afternoon" not in path]
evidence = git("ls-files", "results/published/*/evidence/runs.jsonl").splitlines()
result = [crate.add_file(name, name) for name in (*outputs, *evidence)]
command = "snakemake --cores 8 all --config evidence=real"
done = {
    "@type": "CreateAction", "name": "The published evidence and outputs",
    "description": f"{command}, in parts; each record of a run has its commit",
    "endTime": git("log", "-1", "--format=%cI", "--", "paper_figures"),
    "actionStatus": "http://schema.org/CompletedActionStatus",
}  # fmt: skip
action = crate.add(ContextEntity(crate, "#published", done))
action["instrument"], action["object"], action["result"] = workflow, used, result
crate.root_dataset["mentions"] = action
crate.write(sys.argv[1])
print(f"{sys.argv[1]}: {len(outputs)} files of outputs, {len(evidence)} of records, {len(used)} of settings and data")
