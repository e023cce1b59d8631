"""Fill the generated parts and the cells of README.md and of pages in docs; run from the repository root."""

from pathlib import Path

from replication.report.claims.page import in_short, lines
from replication.report.evidence import Evidence
from replication.report.figures.render import save, witnesses
from replication.report.tables.paper import headline
from replication.report.texts import fill, replace_block
from replication.runs.outputs import descriptions
from replication.runs.registry import read_json
from replication.runs.settings import load_settings

settings = load_settings(Path())
evidence = Evidence.found(Path("results/published"), descriptions(settings["datasets"], settings))
claims = read_json("paper_figures/claims.json")["claims"]
numbers = headline(evidence)
blocks = {
    "README.md": {"numbers": f"{numbers}\n\n{in_short(claims)}", "verdicts": lines(claims, "paper_figures/claims")},
    "docs/findings.md": {"short": in_short(claims)},
    "docs/choices.md": {},
}
for name, parts in blocks.items():
    text = Path(name).read_text(encoding="utf-8")
    for part, block in parts.items():
        text = replace_block(text, part, block)
    Path(name).write_text(fill(text, Path("paper_figures")), encoding="utf-8")
save(witnesses(evidence, "pathmnist"), Path("paper_figures/witnesses.png"))
