"""The site of the documentation: `make docs` builds it with Sphinx."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]

from pages import moved, pages_by_source, write_pages  # noqa: E402

import clailearn  # noqa: E402

write_pages(Path(__file__).parent / "generated")

project = "CLaI"
author = "The authors of the replication"
release = version = clailearn.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
templates_path = ["_templates"]
autodoc_typehints = "description"
# Sphinx-Gallery keeps the output of an example until its code changes.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "min_reported_time": 60,
}
html_theme = "pydata_sphinx_theme"
html_title = "CLaI"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
# Wide tables need the room of the list of pages.
html_sidebars = {name: [] for name in ("generated/tables/*", "options", "verdicts")}
html_show_sourcelink = False
napoleon_use_ivar = True


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links of a page lead to pages of the site; the first page is the README."""
    page = Path(app.srcdir) / f"{name}.md"
    pages = pages_by_source()
    if name == "index":
        readme = moved(Path(app.srcdir).parent / "README.md", page, pages)
        source[0] = readme.replace("\n## ", f"\n{source[0]}\n## ", 1)
    elif page not in pages.values() and page.exists():  # Pages of the gallery are no Markdown.
        source[0] = moved(page, page, pages)
    if name == "own-data":  # The search puts an entry of the index before words of texts.
        source[0] = source[0].replace("\n\n", "\n\n```{index} ! own data\n```\n\n", 1)


def setup(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("source-read", read)
