"""The registry of models is complete: rules, scripts, kernels and settings that it names exist."""

from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

from replication.runs.models import CELLS, CLAI, EMBEDDING_BASELINES, MODELS, fitted_by
from replication.runs.settings import load_settings, select

REPOSITORY = Path(__file__).parents[2]


def test_models_of_the_paper_come_first() -> None:
    assert list(MODELS)[:2] == CLAI == ["clai-m", "clai-c"]


def test_every_model_is_fitted_by_one_rule_on_datasets_and_by_one_function_in_studies() -> None:
    rules = {model.rule for model in MODELS.values()}
    assert sorted(name for rule in rules for name in fitted_by(rule)) == sorted(MODELS)
    assert set(CELLS) == rules
    for function in CELLS.values():
        assert callable(resolve_name(function))


def test_every_setting_that_a_model_reads_has_a_default() -> None:
    settings = load_settings(REPOSITORY)
    for model in MODELS.values():
        assert select(settings, model.reads)


def test_models_look_different() -> None:
    colours = [model.colour for model in MODELS.values()]
    assert len(set(colours)) == len(colours)
    assert len({model.title for model in MODELS.values()}) == len(MODELS)


def test_baselines_on_embeddings_name_the_function_that_fits_them() -> None:
    for name in EMBEDDING_BASELINES:
        module, function = str(MODELS[name].fit).split(":")
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        assert f"def {function}(" in Path(spec.origin).read_text()
