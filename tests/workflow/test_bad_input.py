"""Bad input is refused with a message that names it and says what to do, and leaves nothing half-written."""

from pathlib import Path

import yaml

from replication.datasets.miniature.make import make
from support.copies import Tree


def test_setting_that_does_not_exist(shared_tree: Tree) -> None:
    run = shared_tree.snakemake("--dry-run", "all", "--config", "datasets={cifar10: {image_sise: 32}}")
    assert run.returncode != 0
    assert "image_sise" in run.stdout


def test_damaged_file_is_named_and_leaves_nothing(tree: Tree, tmp_path: Path) -> None:
    make("sleepedf", tmp_path, 1)
    recording = sorted(tmp_path.glob("*-PSG.edf"))[2]
    recording.write_bytes(recording.read_bytes()[:-50_000])
    own = {"run": ["sleepedf"], "data_dir": "downloads", "datasets": {"sleepedf": {"path": str(tmp_path)}}}
    (tree.path / "local.yaml").write_text(yaml.safe_dump(own))
    target = "results/real/sleepedf/prepared/dataset.json"
    run = tree.snakemake(target, "--configfile", "local.yaml", "--config", "evidence=real")
    assert run.returncode != 0, run.stdout
    assert f"{recording}: cannot be read as EDF" in run.stdout
    assert "Traceback" not in run.stdout.split("error:")[-1]
    left = {path.name for path in (tree.path / "results" / "real" / "sleepedf").rglob("*")}
    assert left <= {"raw.json", "download_resources.json"}
    assert not list((tree.path / "downloads").rglob("*.*"))
