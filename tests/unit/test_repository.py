"""What can be said of the repository without running it: tables, configuration, scripts and documents agree."""

import re
import runpy
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from sklearn.model_selection import StratifiedGroupKFold

from replication.runs.settings import load_settings
from support.repository import REAL, REPOSITORY

DOCUMENTS = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    REPOSITORY / "envs" / "README.md",
]
EXAMPLES = sorted((REPOSITORY / "examples").glob("plot_*.py"))
HARDER = {"plot_table_with_groups": 0.65, "plot_image_folder": 0.75, "plot_signal_windows": 0.8}
"""Least accuracy of these; 0.88 of the others."""


def test_profile_of_the_cluster_names_rules_that_exist_and_all_that_use_a_gpu() -> None:
    files = [REPOSITORY / "Snakefile", *(REPOSITORY / "workflow" / "rules").glob("*.smk")]
    parts = re.split(r"^(?=(?:use )?rule )", "".join(file.read_text() for file in files), flags=re.MULTILINE)
    heads = {hit[2]: (hit[1], part) for part in parts if (hit := re.match(r"(?:use rule (\w+) as|rule) (\w+)", part))}
    rules = {name: part for name, (_, part) in heads.items()}
    for name, (base, _) in heads.items():
        while base:  # what a rule does not say is as in the one that it uses
            base, further = heads[base]
            rules[name] += further
    profile = yaml.safe_load((REPOSITORY / "profiles" / "slurm" / "config.yaml").read_text())
    set_for = {name.removeprefix("afternoon_") for name in (*profile["set-resources"], *profile["set-threads"])}
    assert set_for <= rules.keys()
    asked = {rule for rule, resources in profile["set-resources"].items() if resources.get("gpu") and rule in rules}
    assert asked == {name for name, part in rules.items() if re.search(r"\bgpu=1\b", part)}


def anchors(document: Path) -> set[str]:
    """Return the anchors that a page gets from its headings: lower case, hyphens for spaces, no other punctuation."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [*DOCUMENTS, REPOSITORY / "CHANGELOG.md"], ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_exist(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(((?!https:)[^)#]*)(?:#([^)]*))?\)", document.read_text(encoding="utf-8")):
        page = document.parent / target if target else document
        if target.startswith(("../../actions/", "../../deployments/")):  # what GitHub has beside the files
            continue
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_documents_name_settings_and_files_that_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"(?<![\w/.-])((?:src|workflow|profiles|tests|envs|examples)/[\w./-]+\.\w+)", text):
        assert (REPOSITORY / name).exists(), name
    tops = "|".join(key for key, value in REAL.items() if isinstance(value, dict))
    for setting in re.findall(rf"`((?:{tops})(?:\.[\w-]+)+)`", text):
        if setting.endswith((".csv", ".yaml", ".py", ".md")):
            continue
        node: Any = REAL
        for key in setting.split("."):
            assert key in node, f"{setting} is not a setting"
            node = node[key]


def test_nothing_advises_to_install_a_name_of_a_package_index_that_is_not_ours_or_well_known() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    installed = re.compile(r"pip[ ]install ((?:-[^\s`]+ )*)[\"']?([^\s\\`\"')-][^\s\\`\"')]*)")
    allowed = re.compile(r"\.(\[\w+\])?|git\+\S+|matplotlib|pillow|torch(vision)?(==<version>)?")
    for path in listed.splitlines():
        content = (REPOSITORY / path).read_bytes()
        if b"\0" not in content and not path.endswith(".lock"):
            for options, name in installed.findall(content.decode()):
                assert options.endswith(("-r ", "-e ")) or allowed.fullmatch(name), f"{path} installs {name}"


def test_code_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["accuracies"].mean() > 0.9


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "from mapie" in example.read_text(encoding="utf-8"):
        pytest.importorskip("mapie", reason="only the requirements of the documentation have it")
    monkeypatch.setattr("sys.argv", [str(example)])
    # Of five splits one is enough to see that the comparison of nine classifiers runs.
    split = StratifiedGroupKFold.split
    monkeypatch.setattr(StratifiedGroupKFold, "split", lambda *of, **known: islice(split(*of, **known), 1))
    accuracy = runpy.run_path(str(example))["accuracy"]
    assert accuracy > HARDER.get(example.stem, 0.88)


def test_every_source_has_an_entry_of_the_pages_on_data_of_your_own_that_is_valid() -> None:
    text = "".join((REPOSITORY / "docs" / name).read_text() for name in ("own-data.md", "extending.md"))
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)]
    entries = {key: entry for block in blocks for key, entry in block.get("datasets", {}).items()}
    assert entries.keys() == {"pneumoniamnist", "digits", "nights", "pets", "wards", "windows"}
    del entries["digits"]  # whose source is that of the recipe
    load_settings(REPOSITORY, {"datasets": entries})


def test_of_two_makes_at_once_the_second_waits_and_finds_nothing_left_to_do(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "envs/requirements.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\n'
        '[ "$2" = venv ] && echo made >> made && sleep 1 && mkdir -p .venv/bin && cp python .venv/bin\nexit 0\n'
    )
    python.chmod(0o755)
    command = ["make", f"PYTHON={python}", ".venv/.installed"]
    runs = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert (tmp_path / "made").read_text() == "made\n"
