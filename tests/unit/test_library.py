"""A script rests on the modules that it imports, directly or not, and on no others."""

from pathlib import Path

import pytest

from clai.runs.library import code_files, library_files

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / "workflow" / "scripts"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A repository of a few modules and a script."""
    modules = {
        "__init__": "from clai import everything",
        "everything": "",
        "kernels": "import torch\nfrom clai.errors import InputError",
        "errors": "",
        "learning": "def learn():\n    import clai.kernels",
        "datasets/__init__": '"""Sources."""',
        "datasets/medmnist": "",
        "baselines/__init__": "from clai.baselines import forest",
        "baselines/forest": "",
        "runs/models": "",
        "experiments/training": "from clai.runs.models import MODELS\nfrom clai import learning",
        "report/labels": "from clai.runs.models import MODELS",
    }
    for name, text in modules.items():
        path = tmp_path / "src" / "clai" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def files(repository: Path, code: str, *modules: str) -> list[str]:
    script = repository / f"script{len(list(repository.glob('*.py')))}.py"
    script.write_text(code)
    return [file.removeprefix("src/clai/") for file in library_files(repository, script, *modules)]


def test_imports_are_followed_wherever_they_stand(library: Path) -> None:
    assert files(library, "from clai.learning import learn") == ["errors.py", "kernels.py", "learning.py"]


def test_empty_packages_do_not_count(library: Path) -> None:
    assert files(library, "from clai.datasets import medmnist") == ["datasets/medmnist.py"]
    assert files(library, "import clai.baselines") == ["baselines/__init__.py", "baselines/forest.py"]


def test_modules_imported_by_name_are_added(library: Path) -> None:
    assert files(library, "import clai.errors", "clai.datasets.medmnist") == ["datasets/medmnist.py", "errors.py"]


def test_registry_counts_for_renderings_and_not_for_fits(library: Path) -> None:
    assert "runs/models.py" not in files(library, "import clai.experiments.training")
    assert "runs/models.py" in files(library, "from clai.report import labels")


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_every_script_rests_on_some_files_that_exist(script: Path) -> None:
    found = library_files(REPOSITORY, script)
    assert found
    assert all((REPOSITORY / file).is_file() for file in found)


def test_training_rests_on_kernels_and_rendering_on_no_method() -> None:
    training, rendering = (
        library_files(REPOSITORY, SCRIPTS / f"{name}.py") for name in ("train_model", "render_table")
    )
    assert {"src/clai/kernels.py", "src/clai/learning.py"} <= set(training)
    assert not {"src/clai/kernels.py", "src/clai/learning.py"} & set(rendering)
    assert not any(file.startswith("src/clai/report/") for file in training)


def test_code_of_the_workflow_is_complete() -> None:
    code = code_files(REPOSITORY)
    assert code[0] == "Snakefile"
    assert {
        "workflow/config/schema.yaml",
        "workflow/rules/common.smk",
        "src/clai/kernels.py",
        "envs/requirements.lock",
    } <= set(code)
    assert all((REPOSITORY / file).is_file() for file in code)
