"""A workflow run as an RO-Crate: code, evidence and outputs in one zip with a machine-readable account of how each came about.

Profile: Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5). Each run of the evidence is an action of the workflow, with
the checksums of its data and its settings as objects and the evidence as result. The rendering of an output is one, too, with
the evidence as object.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

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
    """The crate of an evidence folder and what is rendered from it.

    Args:
        root: the repository. All paths are relative to it, and stay the same in the crate.
        code: files of the workflow, the Snakefile first.
        evidence: by dataset or study, its evidence files; a `runs.json` among them makes actions.
        outputs: by name, the files of each rendered output; the JSON among them has its caption.
        rendered_from: by name of an output, the evidence files that it was made from; those that `evidence` leaves out stay out.
    """
    crate = ROCrate()
    crate.name, crate.description = (
        "Replication of Learning Kernels by Alignment for Multiclass Bayes Classification",
        description,
    )
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
        for path in [path for path in paths if Path(path).name == "runs.json"]:
            actions += [_run(crate, workflow, run, results) for run in json.loads((root / path).read_text())]
    for name, paths in outputs.items():
        content = json.loads((root / next(path for path in paths if path.endswith(".json"))).read_text())
        files = [crate.add_file(root / p, dest_path=p, properties={"description": content["caption"]}) for p in paths]
        used = [packed[path] for path in rendered_from[name] if path in packed]
        properties = {"name": f"Rendering of {name}", "actionStatus": COMPLETED}
        actions.append(crate.add_action(workflow, f"#render-{name}", used, files, properties))
    crate.root_dataset["mentions"] = actions
    return crate


def _conform(crate: ROCrate) -> None:
    for profile in PROFILES:
        properties = {"@type": "CreativeWork", "name": profile.split("/ro/")[1]}
        crate.root_dataset.append_to("conformsTo", crate.add(ContextEntity(crate, profile, properties=properties)))


def _run(crate: ROCrate, workflow: Entity, run: Mapping[str, Any], results: Sequence[Entity]) -> Entity:
    """The action of one run record."""
    data = [
        crate.add(ContextEntity(crate, f"#{checksum}", properties={
            "@type": "CreativeWork", "name": name, "identifier": checksum,
        }))
        for name, checksum in run["data"].items()
    ]  # fmt: skip
    facts = {key: run[key] for key in run if key not in ("run", "data", "settings", "versions", "command")}
    facts |= {"settings": run.get("settings"), "versions": run["versions"]}
    values = [
        crate.add(ContextEntity(crate, f"#{run['run']}/{key}", properties={
            "@type": "PropertyValue", "name": key,
            "value": value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True),
        }))
        for key, value in facts.items() if value is not None
    ]  # fmt: skip
    properties = {"name": run["run"], "description": run["command"], "actionStatus": COMPLETED}
    return crate.add_action(workflow, f"#{run['run']}", [*data, *values], list(results), properties)
