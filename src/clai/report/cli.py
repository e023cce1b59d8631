"""The command `clai`: where the numbers of a rendered output come from."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from clai.errors import InputError
from clai.report.provenance import describe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `clai` and return its exit status."""
    parser = argparse.ArgumentParser(prog="clai", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    provenance = commands.add_parser("provenance", help="the runs behind each number of a table, a figure or README.md")
    provenance.add_argument("output", type=Path, help="such as paper_figures/table3.tex, or README.md")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(describe(options.output))
    except InputError as error:
        parser.exit(1, f"error: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
