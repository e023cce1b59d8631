"""The command `python -m replication`: settings, provenance, times, published runs and band powers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from clailearn.errors import InputError, legible


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m replication", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--configfile", type=Path, nargs="+", default=[], help="your own settings, as for Snakemake")
    provenance = commands.add_parser("provenance", help="the runs behind each number of a table or a figure")
    provenance.add_argument("output", type=Path, help="such as paper_figures/table3.tex")
    rows = "the rows to show, such as dataset=cifar10 model=clai-m"
    provenance.add_argument("--row", nargs="+", default=[], metavar="COLUMN=VALUE", help=rows)
    settings = commands.add_parser(
        "settings", parents=[own], help="the settings of a run, from all files of the configuration"
    )
    settings.add_argument("dataset", help="a dataset or a study, such as cifar10")
    settings.add_argument("model", help="a model of the dataset, or a cell of the study, such as clai-m")
    plan = commands.add_parser(
        "plan", parents=[own], help="the runs that are left, and their time by published records"
    )
    for command, uses in ((settings, ["real", "mini", "afternoon"]), (plan, ["real", "afternoon"])):
        command.add_argument("--use", choices=uses, default="real", help="use of the pipeline (default: %(default)s)")
    publish = commands.add_parser(
        "publish", parents=[own], help="add finished runs to the published evidence, or replace some of it"
    )
    publish.add_argument("what", nargs="*", help="datasets and studies, such as cifar10")
    replaced = "datasets and studies to publish in place of what is there"
    publish.add_argument("--replace", nargs="+", default=[], help=replaced)
    publish.add_argument(
        "--source", type=Path, default=Path("results/real"), help="folder of the runs (default: %(default)s)"
    )
    bands = commands.add_parser(
        "band-powers", parents=[own], help="the table of band powers of Sleep-EDF's recordings (sleepedf-bands)"
    )
    folder = "folder with pairs of PSG.edf and Hypnogram.edf, such as data/sleepedf"
    bands.add_argument("recordings", type=Path, help=folder)
    bands.add_argument("table", type=Path, help="the table to write, .csv or .csv.gz")
    options = parser.parse_args(arguments)
    if options.command == "publish" and not (options.what or options.replace):
        publish.error("found no name, expected datasets or studies, or --replace with some")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.stdout.write("\n".join(map(legible, _answer(options).split("\n"))))
    except (InputError, OSError) as error:  # OSError: a folder that may not be written, a full disk
        parser.exit(1, f"error: {error}\n")
    return 0


def _answer(options: argparse.Namespace) -> str:
    if options.command == "provenance":
        from replication.report.provenance import describe

        return describe(options.output, dict(pair.partition("=")[::2] for pair in options.row))
    from replication.runs.settings import effective_settings, load_settings, merge, read_yaml

    own = merge(*(read_yaml(file) for file in options.configfile))
    settings = load_settings(Path(), own, getattr(options, "use", "real"))
    if options.command == "settings":
        shown = effective_settings(settings, options.dataset, options.model)
        return str(yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True))
    if options.command == "band-powers":
        from replication.datasets.band_powers import write_table

        return write_table(options.recordings, options.table, settings["datasets"]["sleepedf"])
    from replication.report.plan import PUBLISHED, plan_text
    from replication.report.publish import publish

    if options.command == "plan":
        return plan_text(Path(), settings)
    changed = publish(options.what, options.source, Path(PUBLISHED), settings, options.replace)
    return "".join(f"{PUBLISHED}/{file}\n" for file in changed)


if __name__ == "__main__":
    sys.exit(main())
