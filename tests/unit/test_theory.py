"""The numerical checks of the mathematics find what the mathematics says."""

from functools import cache

import pandas as pd
import pytest

from clai.experiments.theory import check_all, check_parzen

SETTINGS = {
    "parzen": {"shares": [0.1, 0.5], "bandwidths": [0.5, 2.0], "distance": 2.0, "size": 2, "samples": 600},
    "bound": {"sizes": [8], "draws": 50},
    "floor": {"sizes": [8], "shares": [0.2], "points": 100, "steps": 100, "learning_rate": 0.1},
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


def test_the_paper_rule_calls_everything_positive_where_windows_are_narrow_and_the_class_is_rare() -> None:
    """The offset 1 - 2p outweighs all similarities; the Bayes rule and its Parzen estimate call few positive."""
    setting = "share=0.1;bandwidth=0.5"
    assert measured(f"{setting};rule=printed", "called_positive") == 1
    assert measured(f"{setting};rule=derivation", "called_positive") == 1
    assert measured(f"{setting};rule=parzen", "called_positive") < 0.1
    assert measured(f"{setting};rule=parzen", "agreement_bayes") > 0.95


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_decomposition_of_f_and_its_offset(share: float) -> None:
    setting = f"share={share:g};bandwidth=0.5"
    assert measured(setting, "identity_error") < 1e-7
    assert measured(setting, "f_far") == pytest.approx(1 - 2 * share, abs=1e-7)


def test_all_checks_in_one_tidy_table() -> None:
    table = check_all(SETTINGS, [0, 1])
    assert list(table) == ["check", "setting", "quantity", "value"]
    assert set(table["check"]) == {"parzen", "bound", "floor"}
    assert not table.duplicated(["check", "setting", "quantity"]).any()
    assert table["value"].notna().all()
    pd.testing.assert_frame_equal(table, check_all(SETTINGS, [0, 1]))
