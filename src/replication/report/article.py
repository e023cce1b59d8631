"""The replication article: numbers of rendered outputs as LaTeX macros, the claims as a table, figures with captions.

The text is workflow/report/article.tex. It names its numbers by macros and types none in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replication.report.claims.verdict import Outcome, Verdict
from replication.report.labels import MINI_NOTE
from replication.report.latex import below, escape
from replication.report.tables.multiclass import FURTHER_METRICS, TABLE1_METRICS
from replication.report.tables.parts import Metric, number
from replication.report.tables.sepsis import TABLE3_METRICS

METRICS: dict[str, Sequence[Metric]] = {"table1": TABLE1_METRICS, "tableS8": FURTHER_METRICS, "table3": TABLE3_METRICS}
NOT_RUN = "not run: needs "
MACROS = {
    Outcome.REPRODUCED: "Reproduced",
    Outcome.EXCEEDED: "Exceeded",
    Outcome.NOT_REPRODUCED: "NotReproduced",
    Outcome.INCONCLUSIVE: "Inconclusive",
    Outcome.DEPENDS: "Depends",
    Outcome.NOT_TESTABLE: "NotTestable",
}
"""Names of the verdicts in LaTeX macros."""
TALL = ("figureS8", "figureS9")
"""Figures that fill a page; others have the height of two a page."""


def results_macros(frames: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the macros of tables 1, S8 and 3, by name. A cell without a number has no macro.

    `<table>:<dataset>:<model>:<metric>` is `mean (sd)`. The same name with `:printed` is the printed value, with `:n` the number
    of seeds or folds. `<table>:<dataset>:data` is the name of the data.

    Args:
        frames: the CSV of each table, by its name.
    """
    macros = {}
    for table in frames:
        metrics = METRICS[table]
        digits = {metric.key: metric.digits for metric in metrics}
        for row in frames[table].to_dict("records"):
            name = f"{table}:{row['dataset']}:{row['model']}:{row['metric']}"
            places = digits[row["metric"]]
            if pd.notna(row.get("printed")):
                macros[f"{name}:printed"] = number(row["printed"], float("nan"), places)
            if pd.notna(row["mean"]):
                macros[name] = number(row["mean"], row["sd"], places)
                macros[f"{name}:n"] = str(row["n"])
                macros[f"{table}:{row['dataset']}:data"] = str(row["data"])
    return macros


def claims_macros(claims: pd.DataFrame) -> dict[str, str]:
    """Return macros: `claims:All` and `claims:<outcome>` are numbers of verdicts, `claim:<id>` is the verdict on a claim."""
    counts = Counter(Verdict.parse(text).outcome for text in claims["verdict"])
    macros = {"claims:All": str(len(claims))}
    macros |= {f"claims:{name}": str(counts[outcome]) for outcome, name in MACROS.items()}
    return macros | {f"claim:{row['id']}": str(row["verdict"]) for row in claims.to_dict("records")}


def runs_macros(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return macros of run records: their number, hours in total, hardware and commits."""
    return {
        "runs:count": str(len(records)),
        "runs:hours": f"{sum(record['wall_seconds'] for record in records) / 3600:.1f}",
        "runs:hardware": "; ".join(sorted({str(record["hardware"]) for record in records})) or "none",
        "runs:commits": ", ".join(sorted({str(record["commit"])[:10] for record in records})) or "none",
    }


def macros_tex(macros: Mapping[str, str]) -> str:
    r"""Return LaTeX that defines the macros: \val{name} is a value, \ifval{name}{yes}{no} asks whether there is one."""
    lines = [
        "% Generated: edit nothing here.",
        r"\newcommand{\val}[1]{\ifcsname val:#1\endcsname\csname val:#1\endcsname\else\PackageError{val}{no number #1}{}\fi}",
        r"\newcommand{\ifval}[3]{\ifcsname val:#1\endcsname#2\else#3\fi}",
    ]
    lines += [
        rf"\expandafter\newcommand\csname val:{name}\endcsname{{{escape(text)}}}"
        for name, text in sorted(macros.items())
    ]
    return "\n".join(lines) + "\n"


def claims_tex(claims: pd.DataFrame) -> str:
    """Return the claims with verdict and evidence as LaTeX, a table that may run over pages."""
    head = r"\# & Claim & Verdict & Evidence \\"
    rows = [
        rf"{row['id']} & {escape(row['claim'])} & {escape(row['verdict'])} & {_text(row['evidence'])} \\ \addlinespace"
        for row in claims.to_dict("records")
    ]
    columns = r"r>{\raggedright}p{4.2cm}>{\raggedright}p{2cm}>{\raggedright\arraybackslash}p{9cm}"
    body = "\n".join(rows)
    return (
        f"{{\\footnotesize\n\\begin{{longtable}}{{{columns}}}\n\\toprule\n{head}\n\\midrule\n\\endhead\n{body}\n"
        "\\bottomrule\n\\end{longtable}}\n"
    )


def _text(value: Any) -> str:
    return escape(value) if isinstance(value, str) else "--"


def figure_tex(name: str, caption: str) -> str:
    """Return the LaTeX of a figure, from the file <name>.pdf, with its caption and, below it, the caption's notes."""
    sentences, *notes = caption.split("\n")
    height = 0.8 if name in TALL else 0.4
    return (
        "\\begin{figure}[tp]\n\\centering\n"
        f"\\includegraphics[width=\\linewidth,height={height}\\textheight,keepaspectratio]{{{name}.pdf}}\n"
        f"\\caption{{{escape(sentences)}}}\n\\label{{fig:{name}}}\n{below(notes)}\\end{{figure}}\n"
    )


def not_run_macros(frames: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the macro `notrun`: what the datasets of tables 1 and 3 without evidence need. No macro if all have evidence."""
    data = pd.concat([frame["data"] for frame in frames.values()]).unique()
    needs = [str(text).removeprefix(NOT_RUN) for text in data if str(text).startswith(NOT_RUN)]
    return {"notrun": "; ".join(needs)} if needs else {}


def supplement_tex(contents: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the LaTeX of the supplementary tables and figures, each under its own number. Outputs without data are left out.

    Args:
        contents: the JSON beside each output, by the output's name.
    """
    parts = []
    for name, content in contents.items():
        kind, _, index = name.partition("S")
        if index and content["data"]:
            tex = f"\\input{{{name}.tex}}\n" if kind == "table" else figure_tex(name, content["caption"])
            parts.append(f"\\setcounter{{{kind}}}{{{int(index) - 1}}}\n{tex}\\FloatBarrier\n")
    return "".join(parts)


def article_parts(
    contents: Mapping[str, Mapping[str, Any]],
    frames: Mapping[str, pd.DataFrame],
    claims: pd.DataFrame,
    records: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    """Return the LaTeX files that the article reads, by name; `numbers.tex` has its macros.

    Args:
        contents: the JSON beside each output, by the output's name.
        frames: the CSV of tables 1, S8 and 3, by name.
        claims: the CSV of the claims.
        records: of all runs behind the outputs.
    """
    macros = results_macros(frames) | claims_macros(claims) | runs_macros(records) | not_run_macros(frames)
    macros |= {f"shown:{name}": "shown" for name, content in contents.items() if content["data"]}
    if contents["claims"]["evidence"] == "mini":
        macros["mark"] = MINI_NOTE
    figures = {
        name: figure_tex(name, content["caption"]) if content["data"] else "" for name, content in contents.items()
    }
    return {
        "numbers.tex": macros_tex(macros),
        "claims.tex": claims_tex(claims),
        "main_figures.tex": "".join(figures[name] for name in ("figure1", "figure2", "figure3")),
        "sepsis_figures.tex": figures["figure4"],
        "supplement.tex": supplement_tex(contents),
    }
