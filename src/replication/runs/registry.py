"""What the repository declares once, read from workflow/config/ here alone: models, outputs, words of claims.

An output is a function of evidence folders `results/<evidence>/<name>/evidence/`. A name is a dataset, a study, `benchmark` or
`theory`.
"""

import csv
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import yaml

from clailearn.errors import InputError

REPOSITORY = Path(__file__).parents[3]
CONFIG = REPOSITORY / "workflow" / "config"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses a key that stands twice, and numbers that YAML reads in base 8 or 60."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        places = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=True) for key in places]
        for key, place in zip(keys, places, strict=True):
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=place.start_mark)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        if re.match(r"[-+]?0\d|.*:", node.value):
            problem = f"YAML reads {node.value} as {number}: put a name in quotes, and write a number without 0 before it or :"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


MOST_SETTINGS, DEEPEST = 100_000, 50
"""Entries of a YAML file, where each use of an alias counts, and levels of blocks within one another."""


def check_place(checkout: str) -> None:
    """Refuse places in which no job could run: of the working directory, of the checkout, and of Python."""
    if Path.cwd() != Path(checkout).resolve():
        raise InputError(
            f"found the working directory {Path.cwd()}, expected {checkout}, as all paths are relative to it. Call snakemake "
            "there, without --directory; another workflow can call it there, but not have it as a module."
        )
    # Snakemake takes braces in the paths of rules for wildcards, and hands the path of Python to a shell without quotes.
    for path, known in ((checkout, r"[^{}]"), (sys.executable, r"[\w./+@%,:=~-]")):
        if odd := re.sub(known, "", path):
            raise InputError(
                f"found {odd[0]!r} in the path {path}, expected none, as Snakemake cannot call Python there. Move the repository "
                "to a folder without it, such as ~/clailearn, and make the environment anew."
            )


def _refuse_endless(content: Any) -> None:
    level = [content]
    for _ in range(DEEPEST):
        blocks = (
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        )
        level = list(islice(chain.from_iterable(blocks), MOST_SETTINGS + 1))
        if len(level) > MOST_SETTINGS:
            raise ValueError(f"found more than {MOST_SETTINGS:,} entries, counting each use of an alias")
    if level:
        raise ValueError(f"found blocks within blocks, more than {DEEPEST} deep")


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Return the settings in a YAML file; raise InputError for one that is missing, damaged, endless, or has a key twice."""
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
        _refuse_endless(content)
    except Exception as error:  # An invalid date, or bytes of another encoding, raise errors that are not YAML's.
        raise InputError(f"{path}: {error}; expected settings as YAML in UTF-8. Correct the file or its path") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: found {type(content).__name__}, expected a mapping of settings; correct the file")
    return content


def read_json(path: str | Path, lines: bool = False) -> Any:
    """Return what a file of the workflow's own holds, or each of its lines; raise InputError if it is not there or was cut."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(f"[{','.join(text.splitlines())}]" if lines else text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}), expected JSON as the workflow writes it. Delete the file, and the same command "
            "makes it anew; git restore brings a tracked one back."
        ) from None


# Models

Kind = Literal["samples", "rows", "embeddings"]


@dataclass(frozen=True)
class Entry:
    """A model in the registry, whose head explains the fields."""

    title: str
    colour: str
    fit: str
    of: Kind = "samples"
    dash: str = "-."
    kernel: str | None = None
    embeddings: str | None = None
    reads: Sequence[str] = ()
    latent: bool = False
    recordings_only: bool = False


MODELS = {name: Entry(**entry) for name, entry in read_yaml(CONFIG / "models.yaml").items()}
"""The registry, in the order of table rows."""


def fitted_on(kind: Kind) -> list[str]:
    """Return the models that are fitted on this, in table order."""
    return [name for name, model in MODELS.items() if model.of == kind]


NETWORK_SETTINGS = ("device", "encoder", "target", "training")
"""What all networks read, beside their `reads`; of it other models read `training.samples`."""
SPLIT_SETTINGS = ("normalise_test_separately", "validation_share_recordings")
"""What decides the samples of any run: how images are normalised, and which patients validate."""
CLAI = ["clai-m", "clai-c"]
"""The paper's models of Collaborative Learning, to which its printed values and claims apply."""
MIXTURES = {"clai-c": "student-t-mixture", "clai-m": "student-t-mixture-m"}
"""By the model whose embeddings it is fitted on, the paper's mixture, which compares with that model alone."""


# What the controls of claims rest on

SEEDS = (0, 1, 2)
"""Seeds of the runs that controls rest on, as far as a model has them: controls need a direction, not a small interval."""
UNTRAINED = "untrained"
INPUTS = "inputs"
UNTRAINED_MODEL = "clai-m"
"""The model whose network an untrained one is."""
EMBEDDINGS = {UNTRAINED: "Untrained", INPUTS: "Inputs of the encoder"}
"""Titles of embeddings without training; `inputs` are the samples as the encoder receives them."""
COMPARED: list[str] = ["cross-entropy", UNTRAINED, INPUTS]
"""Whose classes are compared beside those of CLaI's embeddings."""
SIGNALS: list[str] = [*CLAI, "cross-entropy"]
"""Whose signals are described as the kernel sees them."""

# Outputs

BENCHMARK = "benchmark"
BENCHMARK_TITLE = "Random images and embeddings"
THEORY = "theory"

_DECLARED = read_yaml(CONFIG / "outputs.yaml")
OUTPUTS: dict[str, dict[str, Any]] = {name: shown for name, shown in _DECLARED.items() if name != "own"}
"""All outputs, each with the names and files of the evidence that it shows; those beyond the paper are in `supplement/`.

Tables in `supplement/` are declared: with a frame and blocks (`replication.report.tables.layout.Block`).
"""
OWN: dict[str, dict[str, Any]] = _DECLARED["own"]
"""The outputs of a dataset of the user's own, each with its files, and whether it is of samples or recordings."""
REPOSITORY_DATASETS: dict[str, dict[str, Any]] = read_yaml(CONFIG / "datasets.yaml")["datasets"]
"""The datasets in the repository's files; others are the user's own."""
TABLES, FIGURES = (
    {name: shown for name, shown in OUTPUTS.items() if Path(name).name.startswith(kind)} for kind in ("table", "figure")
)
CLAIMS_FIGURE = "supplement/figureS4"
"""The figure that is drawn from the judged claims."""
PREFIX = "tuning-"
"""Before the key of a tuning, its name among the studies. The key is that of its dataset, unless it names one."""
WHOLE_COHORTS = ("mimic-iv", "challenge2019")
"""The cohorts of sepsis with all their patients: the paper's, and its substitute."""
CLAIMS = "claims"
CLAIM_TEXTS: dict[str, Any] = read_yaml(CONFIG / "claims.yaml")
"""The words of claims, by number below `claims`; each has a page of its own."""
CLAIM_TEXTS["page"]["rules"] = (REPOSITORY / "workflow" / "report" / "claims_rules.md").read_text(encoding="utf-8")
TITLES: list[dict[str, str]] = list(csv.DictReader((CONFIG / "titles.csv").read_text(encoding="utf-8").splitlines()))
"""What tables call metrics and other values of columns; `percent` marks the metrics that they show in per cent."""

PUBLISHED_MODELS = (*CLAI, "cross-entropy")
"""The models of which the first run on each dataset of table 1 and each whole cohort is published whole."""
PICTURED_MODEL = "clai-m"
"""The one whose stages figure 1 shows, and whose votes figure S1: the paper names none, and proposes the Mahalanobis form."""
MODEL_FILES = ("model.json", "model.safetensors", "README.md")
"""Files of a published model."""
