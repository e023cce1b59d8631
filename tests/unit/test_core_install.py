"""The method works where the core dependencies alone are installed."""

import importlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

SCRIPT = """
import sys
import warnings
from importlib.machinery import PathFinder

absent = set(sys.argv[1:])


class CorePath(PathFinder):
    '''Find no package that a core install would not have.'''

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = CorePath
warnings.simplefilter("ignore")
try:
    import pandas
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("pandas can be imported: the hook does not work")

from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import check_estimator

from clai import CLaIClassifier

X, y = make_moons(200, noise=0.2, random_state=0)
for kernel in ("gaussian", "cosine"):
    model = CLaIClassifier(kernel=kernel, random_state=0).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.9
try:
    CLaIClassifier(learning_rate=1e30, random_state=0).fit(X, y)
except ValueError as error:
    assert "training diverged" in str(error), error
else:
    raise SystemExit("training at this learning rate did not diverge")
check_estimator(CLaIClassifier(epochs=10), on_skip=None)

from replication.report.cli import main

try:
    main(["provenance", "README.md"])
except SystemExit as end:
    assert end.code == 1
else:
    raise SystemExit("the command clai did not refuse")
"""


def requirements(distributions: list[str]) -> set[str]:
    """Normalised names of the distributions and of all that they require in turn, extras left out."""
    names: set[str] = set()
    waiting = [re.split(r"[^\w.-]", requirement)[0] for requirement in distributions]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another platform
            continue
        if name not in names:
            names.add(name)
            waiting += [re.split(r"[^\w.-]", line)[0] for line in required if "extra ==" not in line]
    return names


def test_core_dependencies_are_those_of_the_method() -> None:
    assert {re.split(r"[^\w.-]", line)[0] for line in PROJECT["dependencies"]} == {
        "torch", "numpy", "scipy", "scikit-learn",
    }  # fmt: skip


def test_the_estimator_fits_predicts_and_keeps_its_contract_without_the_extras() -> None:
    core = requirements(PROJECT["dependencies"])
    absent = {
        package
        for package, distributions in metadata.packages_distributions().items()
        if package != "clai" and not core & {name.lower().replace("_", "-") for name in distributions}
    }
    assert absent >= {"pandas", "gpytorch", "linear_operator", "safetensors", "yaml"}
    result = subprocess.run([sys.executable, "-c", SCRIPT, *absent], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "pandas is not installed; the command clai needs the extra `replication`" in result.stderr


def test_the_entry_point_of_the_command_exists() -> None:
    module, function = PROJECT["scripts"]["clai"].split(":")
    assert callable(getattr(importlib.import_module(module), function))
