"""The commands that documents and records print."""

import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

PROGRAMS = ("snakemake", "make", "clai", "pytest", "python", "pip")
"""Programs whose commands are tried; inline, a program's name alone is no command of it, except for make."""
OTHERS = (".", "$EDITOR", "bash", "cd", "conda", "cp", "git", "ls", "ruff", "sacct", "snakefmt", "squeue", "tail")
"""Programs of blocks of commands that are not tried: they belong to the system, or to the linters."""

Command = tuple[str, ...]


def commands_in(page: str) -> list[Command]:
    """The commands of a Markdown page, as words: lines indented by four spaces, and inline code that begins with a program.

    >>> commands_in("Run `make test\\nlint`, not `snakemake`:\\n\\n    cd clai && clai predict a b # prints them\\n")
    [('cd', 'clai'), ('clai', 'predict', 'a', 'b'), ('make', 'test', 'lint')]
    """
    text = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.DOTALL | re.MULTILINE)
    found = [part for line in re.findall(r"^ {4}(\S.*)$", text, flags=re.MULTILINE) for part in parts_of(line)]
    for code in re.findall(r"`([^`]+)`", text):
        for words in parts_of(" ".join(code.replace(r"\|", "|").split())):
            if words[0] in PROGRAMS and (len(words) > 1 or words == ("make",)):
                found.append(words)
    return list(dict.fromkeys(found))


def parts_of(line: str) -> list[Command]:
    """The commands of a shell line, without comments; none for what no shell would read."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "|", ";"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [tuple(part) for part in parts if part]


def recorded_commands(published: Path) -> list[Command]:
    """The commands in the records of runs below `results/published`, those of evaluations included."""
    commands: list[str] = []
    for file in sorted(published.glob("*/evidence/runs.jsonl")):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            commands += [part["command"] for part in (record, record.get("evaluation", {})) if "command" in part]
    return [tuple(shlex.split(command)) for command in dict.fromkeys(commands)]


def together(commands: Iterable[Command]) -> list[Command]:
    """Commands of Snakemake joined into one for each choice of options, which follow the targets.

    >>> together([("snakemake", "a"), ("snakemake", "b", "--config", "c=1"), ("snakemake", "d")])
    [('snakemake', 'a', 'd'), ('snakemake', 'b', '--config', 'c=1')]
    """
    targets: dict[Command, list[str]] = {}
    for program, *words in commands:
        first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
        targets.setdefault((program, *words[first:]), []).extend(words[:first])
    return [(program, *names, *options) for (program, *options), names in targets.items()]
