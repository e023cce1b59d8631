"""The numerical checks of the mathematics find what the mathematics says."""

from functools import cache

import pandas as pd
import pytest

from replication.experiments.theory import check_all, check_collapse, check_ideal, check_parzen

SETTINGS = {
    "parzen": {"shares": [0.1, 0.5], "bandwidths": [0.5, 2.0], "distance": 2.0, "size": 2, "samples": 600},
    "bound": {"sizes": [8], "draws": 50},
    "floor": {"sizes": [8], "shares": [0.2], "points": 100, "steps": 100, "learning_rate": 0.1},
    "ideal": {"shares": [0.1, 0.5], "points": 100},
    "collapse": {"shares": [0.1, 0.5], "points": 100, "step": 1e-3},
}


@cache
def parzen() -> pd.DataFrame:
    rows = pd.DataFrame(check_parzen(**SETTINGS["parzen"], seed=0), columns=["check", "setting", "quantity", "value"])
    return rows.set_index(["setting", "quantity"])["value"]


def measured(setting: str, quantity: str) -> float:
    return float(parzen()[f"{setting};seed=0", quantity])


@pytest.mark.parametrize("share", ["0.1", "0.5"])
@pytest.mark.parametrize("bandwidth", ["0.5", "2"])
def test_parzen_rule_is_scikit_learns_kernel_bayes_classifier(share: str, bandwidth: str) -> None:
    assert measured(f"share={share};bandwidth={bandwidth};rule=parzen", "agreement_kde") == 1


@pytest.mark.parametrize("rule", ["printed", "centred", "balanced", "derivation"])
def test_with_equal_shares_all_rules_are_the_kernel_bayes_classifier(rule: str) -> None:
    for bandwidth in ("0.5", "2"):
        assert measured(f"share=0.5;bandwidth={bandwidth};rule={rule}", "agreement_kde") == 1


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_decomposition_of_f_and_its_offset(share: float) -> None:
    setting = f"share={share:g};bandwidth=0.5"
    assert measured(setting, "identity_error") < 1e-7
    assert measured(setting, "f_far") == pytest.approx(1 - 2 * share, abs=1e-7)


@pytest.mark.parametrize("share", ["0.1", "0.5"])
@pytest.mark.parametrize("bandwidth", ["0.5", "2"])
def test_printed_and_parzen_rule_differ_in_the_band_and_nowhere_else(share: str, bandwidth: str) -> None:
    assert measured(f"share={share};bandwidth={bandwidth}", "band_error") == 0


def test_f_of_ideal_similarities() -> None:
    """Under `zero` a negative has f = -p, close to the threshold where the class is rare."""
    assert max(value for *_, value in check_ideal(**SETTINGS["ideal"])) < 1e-12


@pytest.mark.parametrize("target", ["product", "masked"])
def test_an_encoder_that_tells_nothing_apart_has_the_loss_and_alignment_of_the_formulae(target: str) -> None:
    found = {(setting, quantity): value for _, setting, quantity, value in check_collapse(**SETTINGS["collapse"])}
    assert max(value for (_, quantity), value in found.items() if quantity.endswith("_error")) < 1e-12
    # Under `masked` the weights alone make the centred matrices alike.
    assert found[f"target={target};share=0.1", "centred_alignment"] == pytest.approx(float(target == "masked"))


@pytest.mark.parametrize(("kernel", "fall"), [("cosine", 4), ("gaussian", 16)])
def test_coinciding_embeddings_are_unstable_in_proportion_to_the_class_shares(kernel: str, fall: float) -> None:
    found = {(setting, quantity): value for _, setting, quantity, value in check_collapse(**SETTINGS["collapse"])}
    for share in ("0.1", "0.5"):
        assert found[f"kernel={kernel};share={share}", "gradient"] < 1e-12
        assert found[f"kernel={kernel};share={share}", "descent"] == pytest.approx(fall, rel=1e-4)


def test_all_checks_in_one_tidy_table() -> None:
    table = check_all(SETTINGS, [0, 1])
    assert list(table) == ["check", "setting", "quantity", "value"]
    assert set(table["check"]) == set(SETTINGS)
    assert not table.duplicated(["check", "setting", "quantity"]).any()
    assert table["value"].notna().all()
    pd.testing.assert_frame_equal(table, check_all(SETTINGS, [0, 1]))
