"""What a Slurm cluster offers and allows, for the profile `profiles/slurm`."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Partition:
    """A partition of the cluster.

    Attributes:
        gpus: whether a node of it has a GPU.
        minutes: the longest that a job may run; None without a limit.
    """

    name: str
    default: bool
    gpus: bool
    minutes: int | None


def gpus_in(partition: str | None) -> int:
    """Return 1 if a node of the partition (None: the default one) has a GPU; 0 if none has, or there is no Slurm."""
    return int(any(one.gpus for one in _named(partition)))


def minutes_in(partition: str | None) -> int | None:
    """Return the time limit of the partition (None: the default one) in minutes; None without a limit or without Slurm."""
    return min((one.minutes for one in _named(partition) if one.minutes is not None), default=None)


def runtime(minutes: int, limit: int | None) -> str:
    """Return the expression for a rule's `runtime`: each attempt asks for more minutes, none for more than the limit.

    Slurm would keep a job that asks for more in the queue for ever. If already the first attempt would, say so on stderr.
    """
    if limit is None:
        return f"{minutes} * attempt"
    if minutes > limit:
        _warn(minutes, limit)
    return f"min({minutes} * attempt, {limit})"


def mend_states(folder: str) -> None:
    """Let this process and its children find the programs in a folder first: those that mend what Slurm's own say."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    own = str(Path(folder).resolve())
    if own not in path:
        os.environ["PATH"] = os.pathsep.join([own, *path])


@cache
def _warn(minutes: int, limit: int) -> None:
    print(
        f"profiles/slurm: a partition ends jobs after {limit} minutes, and some rules ask for {minutes}: their jobs get "
        f"{limit}. A training that Slurm ends continues from its checkpoint in the next attempt, or when you give the same "
        'command again; other jobs start anew. Name a partition with a longer limit in the block "Your cluster" of '
        "profiles/slurm/config.yaml; `sinfo --format='%P %l'` lists the limits.",
        file=sys.stderr,
    )


def _named(name: str | None) -> list[Partition]:
    return [one for one in _partitions() if (one.default if name is None else one.name == name)]


def _partitions() -> list[Partition]:
    """Return the partitions that `sinfo` lists, a partition with unlike nodes more than once."""
    try:
        said = subprocess.run(
            ["sinfo", "--noheader", "--format=%P %l %G"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return []
    lines = [line.split(maxsplit=2) for line in said.splitlines()]
    return [
        Partition(name.rstrip("*"), name.endswith("*"), "gpu" in gres, _minutes(limit))
        for name, limit, gres in (line for line in lines if len(line) == 3)
    ]


def _minutes(limit: str) -> int | None:
    """Return a limit, [days-]hours:minutes:seconds or minutes:seconds as `sinfo` writes it, in whole minutes."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if found is None:  # infinite, n/a
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return days * 1440 + hours * 60 + minutes
