"""The files of the library that a script rests on, so that an edit to one of them reruns what it changes and nothing else."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("clai", "replication")
REGISTRY = "replication.runs.models"
"""The registry of models. It counts where the report imports it. Elsewhere it does not: a rule's params hold what a fit takes
from its entry, so that a further model or another colour refits nothing."""


def library_files(repository: Path, script: Path, *modules: str) -> list[str]:
    """Return the files of src that a script imports, and all that they import, sorted and relative to the repository.

    Packages' `__init__` files count only if they hold code.

    Args:
        repository: folder that holds src.
        script: the script.
        modules: further modules that it imports by name at run time, such as `replication.datasets.medmnist`.

    Raises:
        FileNotFoundError: there is no such script.
    """
    source = repository / "src"
    report = source / "replication" / "report"
    files: set[Path] = set()
    waiting = [name for name in (*_imports(script), *modules) if name != REGISTRY]
    while waiting:
        path = _file(source, waiting.pop())
        if path is not None and path not in files:
            files.add(path)
            waiting += [name for name in _imports(path) if name != REGISTRY or report in path.parents]
    return sorted(str(path.relative_to(repository)) for path in files)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return the dotted names of this repository that a file imports."""
    return tuple(_names(ast.parse(path.read_text(), str(path))))


def _names(statement: ast.AST) -> Iterator[str]:
    """Yield the names that a statement imports, and those within it. Expressions, most of a file, import nothing."""
    if isinstance(statement, ast.ImportFrom):
        if (statement.module or "").split(".")[0] in PACKAGES:
            yield str(statement.module)
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
    elif isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if alias.name.split(".")[0] in PACKAGES)
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for below in getattr(statement, block, ()):
            yield from _names(below)


@cache
def _file(source: Path, name: str) -> Path | None:
    """Return the file of a module; None for the root package, which only names its parts, and for what is no module."""
    if name in PACKAGES:
        return None
    module = source.joinpath(*name.split(".")).with_suffix(".py")
    if module.exists():
        return module
    package = module.with_suffix("") / "__init__.py"
    return package if package.exists() and _holds_code(package) else None


def _holds_code(path: Path) -> bool:
    """Return whether a file has a statement besides its docstring."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(path.read_text()).body)
