"""A workflow run as an RO-Crate: code, evidence and outputs in one zip file with a machine-readable account of their making.

Profile: Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5). Each run of the evidence is an action of the workflow: its
objects are its settings and the checksums of its data, its result is the evidence. The rendering of each output is an action
with the evidence as object.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from replication.runs.record import RUNS, read_records

PROFILES = ("https://w3id.org/ro/wfrun/process/0.5", "https://w3id.org/ro/wfrun/workflow/0.5")
COMPLETED = "http://schema.org/CompletedActionStatus"


def build(
    root: Path,
    description: str,
    code: Sequence[str],
    evidence: Mapping[str, Sequence[str]],
    outputs: Mapping[str, Sequence[str]],
    rendered_from: Mapping[str, Sequence[str]],
) -> ROCrate:
    """Return the crate of an evidence folder and of the outputs rendered from it.

    Args:
        root: the repository. All paths are relative to it, and stay the same in the crate.
        description: text about the crate as a whole.
        code: files of the workflow, the Snakefile first.
        evidence: by dataset or study, its evidence files; each run of a `runs.jsonl` among them becomes an action.
        outputs: by name, the files of each rendered output; the JSON among them has its caption.
        rendered_from: by name of an output, the evidence files that it was made from. Files that `evidence` lacks stay out.
    """
    crate = ROCrate()
    crate.name = "Replication of Learning Kernels by Alignment for Multiclass Bayes Classification"
    crate.description = description
    crate.license = "https://spdx.org/licenses/MIT"
    main = {"source": root / code[0], "dest_path": code[0], "properties": {"name": "clai"}}
    workflow = crate.add_workflow(**main, main=True, lang="snakemake", lang_version=metadata.version("snakemake"))
    _conform(crate)
    for path in code[1:]:
        crate.add_file(root / path, dest_path=path)
    actions: list[Entity] = []
    packed: dict[str, Entity] = {}
    for paths in evidence.values():
        packed |= {path: crate.add_file(root / path, dest_path=path) for path in paths}
        results = [packed[path] for path in paths]
        for folder in [(root / path).parent for path in paths if Path(path).name == RUNS]:
            actions += [_run(crate, workflow, record, results) for record in read_records(folder)]
    for name, paths in outputs.items():
        content = json.loads((root / next(path for path in paths if path.endswith(".json"))).read_text())
        files = [crate.add_file(root / p, dest_path=p, properties={"description": content["caption"]}) for p in paths]
        used = [packed[path] for path in rendered_from[name] if path in packed]
        properties = {"name": f"Rendering of {name}", "actionStatus": COMPLETED}
        actions.append(crate.add_action(workflow, f"#render-{name}", used, files, properties))
    crate.root_dataset["mentions"] = actions
    return crate


def _conform(crate: ROCrate) -> None:
    """State the profiles that the crate conforms to."""
    for profile in PROFILES:
        properties = {"@type": "CreativeWork", "name": profile.split("/ro/")[1]}
        crate.root_dataset.append_to("conformsTo", crate.add(ContextEntity(crate, profile, properties=properties)))


def _run(crate: ROCrate, workflow: Entity, record: Mapping[str, Any], results: Sequence[Entity]) -> Entity:
    """Add the action of one run."""
    run = record["run"]
    data = [
        crate.add(ContextEntity(crate, f"#{checksum}", properties={
            "@type": "CreativeWork", "name": name, "identifier": checksum,
        }))
        for name, checksum in record["data"].items()
    ]  # fmt: skip
    values = [
        crate.add(ContextEntity(crate, f"#{run}/{key}", properties={
            "@type": "PropertyValue", "name": key,
            "value": value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True),
        }))
        for key, value in record.items() if key not in ("run", "data", "command") and value is not None
    ]  # fmt: skip
    properties = {"name": run, "description": record["command"], "actionStatus": COMPLETED}
    return crate.add_action(workflow, f"#{run}", [*data, *values], list(results), properties)
