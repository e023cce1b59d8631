"""Pages of the HTML report: rendered outputs, their runs and the settings, each a file that stands alone.

A click on the head of a column sorts its table. A page loads nothing from elsewhere, so that it can lie inside another one.
"""

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replication.report.claims.verdict import Outcome, Qualifier, Verdict
from replication.report.labels import model_title
from replication.report.sidecars import settings_by_hash
from replication.report.tables.render import METRIC_COLUMNS

STYLE = """
body {font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem; color: #1b1b1b; background: #fff}
h1 {font-size: 1.25rem} h2 {font-size: 1.05rem; margin-top: 2rem} p {max-width: 75ch}
img {max-width: 100%; height: auto} .mark {background: #fde68a; padding: .3rem .6rem; font-weight: 600}
.wide {overflow-x: auto} table {border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums}
th, td {border-bottom: 1px solid #d4d4d4; padding: .3rem .6rem; text-align: left; vertical-align: top; max-width: 38ch}
th {position: sticky; top: 0; background: #f1f5f9; cursor: pointer; white-space: nowrap}
th[aria-sort=ascending]::after {content: " \\25B2"} th[aria-sort=descending]::after {content: " \\25BC"}
td.short {white-space: pre} td.long {min-width: 34ch; max-width: 60ch} td {overflow-wrap: break-word}
.yes {color: #166534; font-weight: 600} .no {color: #b91c1c; font-weight: 600} .open {color: #6b7280; font-weight: 600}
tr:hover td {background: #f8fafc} pre {font-size: 12px; white-space: pre-wrap} summary {cursor: pointer}
"""

# Cells that begin with a number sort by it ("82.65 (0.35)" by 82.65), others as text. Empty cells stay at the end.
SCRIPT = """
const key = (row, i) => row.cells[i].innerText.trim();
const number = (text) => /^[-+]?[\\d.,]/.test(text) ? parseFloat(text.replaceAll(",", "")) : NaN;
document.querySelectorAll("table").forEach((table) => table.querySelectorAll("thead th").forEach((head, i, all) => {
  head.tabIndex = 0;
  const sort = () => {
    const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    all.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const order = (x, y) => {
      const [a, b] = [key(x, i), key(y, i)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const [m, n] = [number(a), number(b)];
      return way * (isNaN(m) || isNaN(n) ? a.localeCompare(b) : m - n);
    };
    body.append(...[...body.rows].sort(order));
  };
  head.onclick = sort;
  head.onkeydown = (event) => { if (event.key === "Enter") sort(); };
}));
"""

# These columns of a tidy frame become one cell of the wide frame; all others stay columns.
VALUES = ("metric", "mean", "sd", "n", "printed", "printed_sd", "low", "high")

SHORT, LONG = 24, 60
"""Characters: a cell of shorter lines is not broken, a cell with a longer line gets more room."""
LARGEST_DATA = 60_000
"""Characters of the largest CSV that a page holds, so that the report stays small."""
_STYLES_OF_OUTCOMES = {
    Outcome.REPRODUCED: "yes",
    Outcome.EXCEEDED: "yes",
    Outcome.NOT_REPRODUCED: "no",
    Outcome.INCONCLUSIVE: "open",
    Outcome.DEPENDS: "open",
    Outcome.NOT_TESTABLE: "open",
}
STYLES: dict[str, str] = {
    str(Verdict(outcome, qualifier)): style for outcome, style in _STYLES_OF_OUTCOMES.items() for qualifier in Qualifier
}
"""CSS classes of the cells of verdicts."""

RUN_COLUMNS = [
    "run", "seed", "fold", "device", "hardware", "threads", "wall_seconds", "peak_memory_mb", "pairs", "commit", "dirty",
    "config_hash", "command",
]  # fmt: skip


def page(title: str, body: str, synthetic: bool = False) -> str:
    """Return a whole HTML file around `body`; `synthetic` marks miniature data."""
    mark = '<p class="mark">Miniature synthetic data</p>\n' if synthetic else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>{html.escape(title)}</h1>\n{mark}{body}\n<script>{SCRIPT}</script>\n"
        "</body></html>\n"
    )


def sortable(frame: pd.DataFrame) -> str:
    """Return a frame as an HTML table that sorts: floats with six significant digits, markup in cells shown as text."""
    heads = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame)
    rows = "".join(f"<tr>{''.join(map(_td, row))}</tr>\n" for row in frame.itertuples(index=False))
    return f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>'


def _td(value: Any) -> str:
    text = "" if pd.isna(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
    longest = max(map(len, text.split("\n")))
    kind = STYLES.get(text) or ("short" if longest <= SHORT else "long" if longest > LONG else "")
    return f'<td class="{kind}">{html.escape(text)}</td>'


def widened(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a tidy frame with a column for each metric: `mean (sd)`, and below it the printed value in brackets.

    A frame without the columns `metric` and `mean` is returned unchanged.
    """
    if not {"metric", "mean"} <= set(frame):
        return frame
    keys = [name for name in frame if name not in VALUES]
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        cells = rows.setdefault(tuple(row[key] for key in keys), {})
        cells[str(row["metric"])] = _cell(row)
    return pd.DataFrame([{**dict(zip(keys, values, strict=True)), **cells} for values, cells in rows.items()])


def _cell(row: Mapping[Any, Any]) -> str:
    text = "" if row["mean"] is None else f"{row['mean']:.4g}"
    if row.get("sd") is not None:
        text += f" ({row['sd']:.2g})"
    if row.get("printed") is not None:
        text = f"{text}\n[printed: {row['printed']:g}]".strip()
    return text


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the titles of models and metrics; the frame of claims has verdict and evidence first."""
    shown = widened(frame).rename(columns={metric.key: metric.title.replace("$-$", "−") for metric in METRIC_COLUMNS})
    if "model" in shown:
        shown["model"] = [model_title(model) if isinstance(model, str) else model for model in shown["model"]]
    first = [name for name in ("id", "claim", "verdict", "evidence") if name in shown] if "claim" in shown else []
    return shown[[*first, *(name for name in shown if name not in first)]]


def output_page(
    title: str,
    frame: pd.DataFrame,
    csv: str,
    content: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    picture: bytes | None,
) -> str:
    """Return the page of a table, a figure or the claims, with caption, data to download and runs.

    Args:
        title: heading of the page.
        frame: the content of the output's CSV file.
        csv: the text of that file.
        content: the JSON beside it.
        records: of the runs that the JSON names.
        picture: the figure as PNG; None for a table.
    """
    shown = sortable(readable(frame))
    if picture is not None:
        shown = f'<img alt="{html.escape(title)}" src="data:image/webp;base64,{base64.b64encode(_smaller(picture)).decode()}">'
    name = f"{title.lower().replace(' ', '')}.csv"
    data = f"Data: {name} beside the picture"
    if len(csv) <= LARGEST_DATA:
        link = base64.b64encode(csv.encode()).decode()
        data = f'<a download="{html.escape(name)}" href="data:text/csv;base64,{link}">Data as CSV</a>'
    body = (
        f"{shown}\n<p>{html.escape(content['caption']).replace(chr(10), '<br>')}</p>\n<p>{data} ({len(frame):,} rows)</p>\n"
        f"<h2>Runs behind it</h2>\n{runs_table(records)}"
    )
    return page(title, body, synthetic=content["evidence"] == "mini")


def _smaller(picture: bytes) -> bytes:
    """Return a PNG as lossless WebP, which is half as large."""
    from PIL import Image

    stream = io.BytesIO()
    Image.open(io.BytesIO(picture)).save(stream, "WEBP", lossless=True)
    return stream.getvalue()


def runs_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return run records as an HTML table."""
    if not records:
        return "<p>None: it was not run, or rests on no model.</p>"
    return sortable(pd.DataFrame(records).reindex(columns=RUN_COLUMNS).astype({"fold": "Int64", "seed": "Int64"}))


def runs_page(records: Mapping[str, Mapping[str, Any]], synthetic: bool) -> str:
    """Return the page of every run of some output, with settings, data and versions.

    Args:
        records: of the runs, by identity.
        synthetic: whether they were made on miniature data.
    """
    settings = settings_by_hash(records.values())
    data = {file: checksum for record in records.values() for file, checksum in record["data"].items()}
    versions = {json.dumps(record["versions"]): record["versions"] for record in records.values()}.values()
    body = f"<p>Runs: {len(records)}.</p>\n{runs_table([records[run] for run in sorted(records)])}\n<h2>Settings by hash</h2>\n"
    body += "\n".join(_folded(key, _text(value)) for key, value in settings.items())
    body += f"\n<h2>Data</h2>\n{_folded(f'{len(data)} files with checksums', _text(data))}\n<h2>Versions</h2>\n"
    body += "\n".join(_folded(_first_of(packages), _text(packages)) for packages in versions)
    return page("Runs", body, synthetic)


def _text(value: Any) -> str:
    return json.dumps(value, indent=1)


def _first_of(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in list(packages.items())[:3])


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def settings_page(settings: Mapping[str, Any], source: str, synthetic: bool) -> str:
    """Return the page of all settings of an evidence, with the commented file that most of them come from."""
    rows = [{"setting": name, "value": json.dumps(value)} for name, value in _flat(settings)]
    body = f"{sortable(pd.DataFrame(rows))}\n<h2>config.yaml</h2>\n<pre>{html.escape(source)}</pre>"
    return page("Settings", body, synthetic)


def _flat(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Return nested settings as pairs of dotted name and value."""
    pairs: list[tuple[str, Any]] = []
    for key, value in settings.items():
        name = f"{above}{key}"
        pairs += _flat(value, f"{name}.") if isinstance(value, Mapping) and value else [(name, value)]
    return pairs
