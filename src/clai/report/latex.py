"""Running LaTeX."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from clai.errors import InputError

PASSES = 3
"""Runs of LaTeX, after which labels and the widths of long tables have settled."""


def typeset(source: Path, parts: Mapping[str, str], files: Sequence[Path], target: Path) -> None:
    """Typeset a document to PDF. The same input gives the same bytes.

    Args:
        source: the document.
        parts: texts of further files that it reads, by name.
        files: further files that it reads, by their names.
        target: the PDF file to write.

    Raises:
        InputError: there is no pdflatex, a package is missing, or LaTeX stops; the message has the end of LaTeX's log.
    """
    program = shutil.which("pdflatex")
    if program is None:
        raise InputError(
            f"{target} needs pdflatex, which is not installed: install TeX Live with its recommended and extra packages "
            "(Debian: texlive-latex-recommended texlive-latex-extra texlive-pictures)"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in (source, *files):
            shutil.copyfile(file, folder / file.name)
        for part, text in parts.items():
            (folder / part).write_text(text)
        command = [program, "-interaction=nonstopmode", "-halt-on-error", source.name]
        for _ in range(PASSES):
            process = subprocess.run(
                command, cwd=folder, env=os.environ | {"SOURCE_DATE_EPOCH": "0"}, capture_output=True, text=True,
                errors="replace", check=False,
            )  # fmt: skip
            if process.returncode:
                raise InputError(f"{source}: LaTeX stopped:\n{process.stdout[-2000:]}")
        shutil.copyfile(folder / source.with_suffix(".pdf").name, target)
