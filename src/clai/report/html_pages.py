"""Pages of the HTML report: rendered outputs, the runs behind them and the settings, each a file that stands alone.

Tables sort at a click on a column's head. Nothing is loaded from elsewhere, so that a page can lie inside another one.
"""

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from clai.report.labels import model_title
from clai.report.tables.render import METRIC_COLUMNS

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

# Numbers sort as such (of "82.65 (0.35)" the first one), everything else as text; what is empty stays at the end.
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

# Columns of tidy frames that become a cell of the wide one; all others stay columns.
VALUES = ("metric", "mean", "sd", "n", "printed", "printed_sd", "low", "high")

SHORT, LONG = 24, 60
"""Characters up to which a line of a cell is not broken, and from which the cell is given room."""
LARGEST_DATA = 60_000
"""Characters of CSV up to which a page holds it, so that the report stays small."""
VERDICTS = {"reproduced": "yes", "reproduced where tested": "yes", "not reproduced": "no", "not testable here": "open"}

RUN_COLUMNS = [
    "run", "seed", "fold", "device", "hardware", "threads", "wall_seconds", "peak_memory_mb", "pairs", "commit", "dirty",
    "config_hash", "command",
]  # fmt: skip


def page(title: str, body: str, synthetic: bool = False) -> str:
    """A whole HTML file around `body`."""
    mark = '<p class="mark">Miniature synthetic data</p>\n' if synthetic else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>{html.escape(title)}</h1>\n{mark}{body}\n<script>{SCRIPT}</script>\n"
        "</body></html>\n"
    )


def sortable(frame: pd.DataFrame) -> str:
    """A frame as an HTML table; floats with six significant digits, markup in cells shown as text, long texts wide."""
    heads = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame)
    rows = "".join(f"<tr>{''.join(map(_td, row))}</tr>\n" for row in frame.itertuples(index=False))
    return f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>'


def _td(value: Any) -> str:
    text = "" if pd.isna(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
    longest = max(map(len, text.split("\n")))
    kind = VERDICTS.get(text) or ("short" if longest <= SHORT else "long" if longest > LONG else "")
    return f'<td class="{kind}">{html.escape(text)}</td>'


def widened(frame: pd.DataFrame) -> pd.DataFrame:
    """A tidy frame with a column for each metric: `mean (sd)` below it in brackets what the paper prints; others as they are."""
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
        text = f"{text}\n[paper: {row['printed']:g}]".strip()
    return text


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with names for the keys of models and metrics; of the claims, verdict and evidence first."""
    shown = widened(frame).rename(columns={metric.key: metric.title.replace("$-$", "−") for metric in METRIC_COLUMNS})
    if "model" in shown:
        shown["model"] = [model_title(model) if isinstance(model, str) else model for model in shown["model"]]
    first = [name for name in ("id", "claim", "verdict", "evidence") if name in shown] if "claim" in shown else []
    return shown[[*first, *(name for name in shown if name not in first)]]


def output_page(title: str, frame: pd.DataFrame, csv: str, content: Mapping[str, Any], picture: bytes | None) -> str:
    """A table, the claims, or a figure: what it shows, its caption, its data to download and the runs behind it.

    Args:
        frame: what lies in the output's CSV file, whose text is `csv`.
        content: the JSON beside it.
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
        f"<h2>Runs behind it</h2>\n{runs_table(content['runs'])}"
    )
    return page(title, body, synthetic=content["evidence"] == "mini")


def _smaller(picture: bytes) -> bytes:
    """A PNG as WebP, which loses nothing and is half as large."""
    from PIL import Image

    stream = io.BytesIO()
    Image.open(io.BytesIO(picture)).save(stream, "WEBP", lossless=True)
    return stream.getvalue()


def runs_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Run records as a table."""
    if not runs:
        return "<p>None: it was not run, or rests on no model.</p>"
    return sortable(pd.DataFrame(runs).reindex(columns=RUN_COLUMNS).astype({"fold": "Int64", "seed": "Int64"}))


def runs_page(contents: Sequence[Mapping[str, Any]]) -> str:
    """Every run behind some output (the JSON beside each), with its settings, data and versions."""
    runs = {run["run"]: run for content in contents for run in content["runs"]}
    settings = {key: value for content in contents for key, value in content["settings"].items()}
    data = {name: checksum for run in runs.values() for name, checksum in run["data"].items()}
    versions = list({json.dumps(run["versions"]): run["versions"] for run in runs.values()}.values())
    body = (
        f"<p>Runs: {len(runs)}.</p>\n{runs_table([runs[name] for name in sorted(runs)])}\n<h2>Settings by hash</h2>\n"
    )
    body += "\n".join(_folded(key, _text(value)) for key, value in sorted(settings.items()))
    body += f"\n<h2>Data</h2>\n{_folded(f'{len(data)} files with checksums', _text(data))}\n<h2>Versions</h2>\n"
    body += "\n".join(_folded(", ".join(f"{k} {v}" for k, v in list(own.items())[:3]), _text(own)) for own in versions)
    return page("Runs", body, synthetic=any(content["evidence"] == "mini" for content in contents))


def _text(value: Any) -> str:
    return json.dumps(value, indent=1)


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def settings_page(settings: Mapping[str, Any], source: str, synthetic: bool) -> str:
    """All settings of a preset as a table, and the commented file that most of them come from."""
    rows = [{"setting": name, "value": json.dumps(value)} for name, value in _flat(settings)]
    body = f"{sortable(pd.DataFrame(rows))}\n<h2>config.yaml</h2>\n<pre>{html.escape(source)}</pre>"
    return page("Settings", body, synthetic)


def _flat(settings: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in settings.items():
        name = f"{above}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) and value else [(name, value)]
    return found
