"""Write the pages of the site that follow from files: tables, figures, claims, published models.

They go to docs/generated/, which git ignores.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from html import escape
from itertools import zip_longest
from pathlib import Path

from replication.report.evidence import Evidence, run_cell
from replication.report.labels import names_of
from replication.report.plan import PUBLISHED
from replication.report.provenance import told
from replication.report.tables.layout import DASH, Best, Layout
from replication.report.tables.render import render
from replication.runs import outputs as runs
from replication.runs.settings import load_settings

ROOT = Path(__file__).parents[1]
OUTPUTS = ROOT / "paper_figures"
ALONE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n"
"""The head of a page without a list of its sections, whose tables need the room."""


def write_pages(folder: Path) -> None:
    """Write all generated pages into a folder, which is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, heading, own in (("figures", "Figures", True), ("supplement", "Figures of the supplement", False)):
        sections = "\n".join(figure(path) for path in outputs("figure*.csv") if (path.parent == OUTPUTS) == own)
        (folder / f"{name}.md").write_text(f"# {heading}\n\n{sections}", encoding="utf-8")
    (folder / "tables").mkdir()
    for path in outputs("table*.md"):
        (folder / "tables" / path.name).write_text(ALONE + table(path), encoding="utf-8")
    entries = [f"- [{title(path)}](tables/{path.name}): {caption(path)[0]}" for path in outputs("table*.md")]
    (folder / "tables.md").write_text(
        "\n".join(["# Tables", "", *entries, "", *toctree(f"tables/{path.stem}" for path in outputs("table*.md"))]),
        encoding="utf-8",
    )
    pages = pages_by_source()
    for source, page in pages.items():
        if page.is_relative_to(folder):
            page.parent.mkdir(exist_ok=True)
            page.write_text(ALONE * (page.parent.name == "claims") + moved(source, page, pages), encoding="utf-8")
    for name, heading in (("claims", "Claims"), ("models", "Published models")):
        entries = sorted((page.stem for page in pages.values() if page.parent == folder / name), key=order_of)
        (folder / name / "index.md").write_text("\n".join([f"# {heading}", "", *toctree(entries)]), encoding="utf-8")


def toctree(pages: Iterable[str]) -> list[str]:
    """Return the lines of a list of pages."""
    return ["```{toctree}", ":maxdepth: 1", "", *pages, "```", ""]


def order_of(stem: str) -> tuple[bool, int, str]:
    """Return the place of a page: the page of all claims, claims by number, what has none."""
    number = re.match(r"\d+", stem)
    return number is None and stem != "claims", int(number[0]) if number else 0, stem


def pages_by_source() -> dict[Path, Path]:
    """Return the page of each Markdown file outside this folder."""
    generated = ROOT / "docs" / "generated"
    pages = {ROOT / "README.md": ROOT / "docs" / "index.md"}
    pages |= {ROOT / f"{name}.md": generated / f"{name.lower()}.md" for name in ("CHANGELOG", "CONTRIBUTING")}
    verdicts = [OUTPUTS / "claims.md", *OUTPUTS.glob("afternoon*.md"), *(OUTPUTS / "claims").glob("*.md")]
    pages |= {path: generated / "claims" / path.name for path in verdicts}
    for path in (ROOT / "results" / "published").glob("*/models/*/README.md"):
        pages[path] = generated / "models" / f"{path.parts[-4]}-{path.parent.name}.md"
    return pages


def moved(source: Path, page: Path, pages: Mapping[Path, Path]) -> str:
    """Return a Markdown file without its YAML header and badges, its links as they are from a page.

    A link to a folder, or to what GitHub has beside the files, becomes its text.
    """
    text = re.sub(r"\A---\n.*?\n---\n", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^\[!\[.*\n", "", text, flags=re.MULTILINE)

    def link(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if target.is_dir() or not target.is_relative_to(ROOT.resolve()):
            return match[1]
        if not target.exists():
            return match[0]
        if target.suffix == ".md" and target.stem.startswith("table"):
            shown = os.path.relpath(ROOT / "docs" / "generated" / "tables" / target.name, page.parent)
            return f"[{match[1]}]({shown})"
        return f"[{match[1]}]({os.path.relpath(pages.get(target, target), page.parent)}{match[3] or ''})"

    return re.sub(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)", link, text)


def outputs(pattern: str) -> list[Path]:
    """Return the paper's own outputs, then those of the supplement, by number."""
    found = [*OUTPUTS.glob(pattern), *(OUTPUTS / "supplement").glob(pattern)]
    return sorted(found, key=lambda path: (path.parent != OUTPUTS, int(re.sub(r"\D", "", path.stem))))


def title(path: Path) -> str:
    """Return the title of an output, such as Table S3."""
    kind, number = re.fullmatch(r"([a-z]+)(S?\d+)", path.stem, flags=re.ASCII).groups()  # type: ignore[union-attr]
    return f"{kind.capitalize()} {number}"


def caption(path: Path) -> list[str]:
    """Return the lines of the caption of an output: what it shows, notes, and what it rests on."""
    return str(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["caption"]).split("\n")


def figure(path: Path) -> str:
    """Return the section of a figure, with its caption."""
    image = os.path.relpath(path.with_suffix(".png"), ROOT / "docs" / "generated")
    shown = caption(path)
    return "\n\n".join([f"## {title(path)}", shown[0], f"![{shown[0]}]({image})", *shown[1:], ""])


def table(path: Path) -> str:
    """Return the page of a table, whose numbers name the runs behind them and lead to a list of these runs."""
    name = path.relative_to(OUTPUTS).with_suffix("").as_posix()
    settings = load_settings(ROOT)
    descriptions = runs.descriptions(runs.evidence_behind(name, settings), settings)
    evidence = Evidence.found(ROOT / PUBLISHED, descriptions)
    rendered = render(name, runs.declared(name), evidence, "")
    sources = {behind for layout in rendered.layouts for group in layout.groups for behind in group.behind}
    records = {
        behind: [run for run in evidence.runs(behind[0]) if names_of(run_cell(run)) & {*behind[1:]}]
        for behind in sorted(sources)
        if behind[1:]
    }
    parts = [
        html_table(layout, {behind: told(own) for behind, own in records.items() if own}) for layout in rendered.layouts
    ]
    shown = caption(path)
    lines = [f"# {title(path)}", shown[0], *parts, *shown[1:]]
    rows = [
        f'| <span id="{anchor(of)}"></span>{of[0]} | {", ".join(of[1:])} | {told(own)} |'
        for of, own in records.items()
        if own
    ]
    if rows:
        lines += ["## Runs", "\n".join(["| data or study | model or cell | runs |", "| --- | --- | --- |", *rows])]
    return "\n\n".join(lines) + "\n"


def html_table(layout: Layout, known: Mapping[tuple[str, ...], str]) -> str:
    """Return a layout as HTML, where each number says by what runs it was measured, as far as they are known."""
    rows = [f"<tr>{''.join(f'<th>{escape(head)}</th>' for head in layout.heads)}</tr>"]
    for group in layout.groups:
        heading = ": ".join(filter(None, [f"<b>{escape(group.title)}</b>", escape(group.reason)]))
        rows += [f'<tr><td colspan="{len(layout.heads)}">{heading}</td></tr>'] if group.title else []
        for cells, behind in zip_longest(group.rows, group.behind):
            linked = [f"<b>{escape(cell)}</b>" if isinstance(cell, Best) else escape(cell) for cell in cells]
            if behind in known:
                link = f'<a href="#{anchor(behind)}" title="{escape(known[behind])}">{{}}</a>'
                linked[layout.names :] = [
                    link.format(cell) if cell != DASH else cell for cell in linked[layout.names :]
                ]
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in linked) + "</tr>")
    body = "\n".join(rows)
    return f'<div class="pst-scrollable-table-container"><table class="table numbers">\n{body}\n</table></div>'


def anchor(behind: tuple[str, ...]) -> str:
    """Return the place of the runs of a row on the page."""
    return f"runs-{'-'.join(behind)}"
