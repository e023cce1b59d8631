"""The latent space: projections; the stay shown and its signals; the area between signals, roughness."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from clailearn.kernels import Cosine
from replication.datasets.prepared import Prepared
from replication.experiments import latent
from replication.experiments.predictions import save_predictions
from replication.metrics.intervals import Fitted, Predictions
from replication.models.embedding import Embedded, save_embedded
from replication.models.run import Run
from replication.runs.run import RunId


def statistics(*given: Any) -> Any:
    return latent.seen_statistics(*given).set_index("quantity")["value"]


def test_likeness_is_the_correlation_of_votes_with_the_first_process_of_the_same_fold(tmp_path: Path) -> None:
    votes, process = np.array([-0.5, 0.1, 0.2, 0.7]), {0: [1.0, 2.0, 1.5, 4.0], 1: [4.0, 1.0, 2.0, 0.0]}
    paths = {"predictions": [], "latent": []}
    for fold, mean in process.items():
        for run, kind in (("clai-m/seed0", "predictions"), ("gp/seed0", "latent"), ("gp/seed1", "latent")):
            folder = tmp_path / "cohort" / run / f"fold{fold}"
            folder.mkdir(parents=True)
            paths[kind].append(str(folder / ("predictions.parquet" if kind == "predictions" else "latent.npz")))
        for path, values in zip(paths["latent"][-2:], (mean, mean[::-1]), strict=True):
            np.savez(path, mean=values, sd=values)
        given = Predictions(votes, votes, votes, Fitted(slope=1.0, intercept=0.0, vote=True))
        save_predictions(Path(paths["predictions"][-1]), {RunId("cohort", "clai-m", 0, fold): given})
    found = latent.likenesses(**paths)
    expected = [np.corrcoef(votes, mean)[0, 1] for mean in process.values()]
    assert [frame["value"].item() for frame in found.values()] == pytest.approx(expected, abs=1e-4)


def test_straight_line_is_smooth_and_alternation_is_rough() -> None:
    signals = np.stack([np.linspace(0, 1, 20), [0.0, 1.0] * 10, np.ones(20)], axis=1)
    found = latent.roughness(signals)
    assert found[:2] == pytest.approx([0, 4], abs=1e-12)
    assert np.isnan(found[2])
    assert np.isnan(latent.roughness(signals[:2])).all()


def test_stay_shown_is_the_median_of_those_that_qualify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent, "EVENT_HOURS", 2)
    stays = {1: [0, 0, 0, 1, 1], 2: [0, 1, 1, 1], 3: [0] * 9, 4: [0, 0, 0, 0, 1, 1, 1], 5: [0, 0, 0, 1, 1, 1]}
    recording = np.repeat(list(stays), [len(y) for y in stays.values()])
    y = np.concatenate(list(stays.values()))
    assert latent.choose_stay(recording, y) == 4, "none has twelve hours before its event"
    monkeypatch.setattr(latent, "HOURS_BEFORE", 3)
    assert latent.choose_stay(recording, y) == 5
    monkeypatch.setattr(latent, "EVENT_HOURS", 3)
    assert latent.choose_stay(recording, y) == 5, "the shorter one of two"


def test_the_signals_shown_are_those_of_the_stay_hour_by_hour(tmp_path: Path) -> None:
    rows = {"folds": [0] * 5, "groups": [7, 7, 7, 9, 9], "hours": [4, 5, 6, 0, 1], "y": [0, 0, 1, 0, 0]}
    data = Prepared({"kind": "recordings"}, {f"{name}_all": np.array(values) for name, values in rows.items()})
    path = tmp_path / "cohort" / "clai-m" / "seed0" / "fold0" / "embeddings.safetensors"
    path.parent.mkdir(parents=True)
    z, y = torch.arange(10.0).view(1, 5, 2), torch.tensor(rows["y"])
    save_embedded(path, {split: Embedded(z.clone(), y) for split in ("train", "val", "test")})
    shown, _ = latent.trace_signals(data, [str(path)], [])
    table = shown.pivot_table(index="hour", columns="signal", values="value")
    assert table.index.tolist() == [4, 5, 6]
    np.testing.assert_array_equal(table, z[0, :3])
    assert shown.groupby("hour")["event"].max().tolist() == [0, 0, 1]


def test_projections_show_what_the_kernel_sees() -> None:
    generator = torch.Generator().manual_seed(0)
    z, y = torch.randn(2, 30, 3, generator=generator), torch.arange(30) % 2
    longer = z * (1 + torch.rand(2, 30, 1, generator=generator))
    data = Prepared({"kind": "features"}, {"x_test": np.random.default_rng(0).normal(size=(30, 4))})
    run = Run(data, {}, RunId("rows", "clai-c", 0), torch.device("cpu"))
    first, second = (latent.stages(run, Cosine(), Embedded(part, y))[["x", "y"]] for part in (z, longer))
    np.testing.assert_allclose(first, second, atol=1e-5)
    run.data.arrays["x_test"] = run.data["x_test"][:, :1]
    line = latent.stages(run, Cosine(), Embedded(z, y)).query("stage == 0")
    assert line["x"].nunique() == 30
    assert (line["y"] == 0).all(), "a single feature lies on a line"


def test_areas_are_aligned_at_the_onset_and_hours_of_few_stays_are_left_out() -> None:
    stays, lengths = 30, 12
    recording, hours = np.repeat(np.arange(stays), lengths), np.tile(np.arange(lengths), stays)
    onset = np.where(np.arange(stays) < 5, 2, 6)[recording]
    event = (hours >= onset).astype(np.int64)
    event[recording == 0] = 0
    z = np.where(event, 1.0, 3.0)[:, None] * np.array([-0.5, 0.5])
    event[recording == 1] = 1  # from the first hour on
    measured = latent.areas_around_onset(z, recording, hours, event).assign(model="clai-m", seed=1)
    other = measured.assign(seed=2, area=0.0)
    areas = latent.mean_areas(pd.concat([measured, other])).set_index("since_onset")
    assert list(areas.index) == list(range(-6, 6)), "25 stays have these hours, four later ones"
    width = z[:, 1] - z[:, 0]
    assert areas.loc[-1, "area"] == pytest.approx(3 / width.mean())
    assert areas.loc[0, "area"] == pytest.approx(1 / width.mean())
    assert (areas.loc[0, "stays"], areas.loc[-6, "stays"]) == (28, 25)


def test_limits_of_a_mean_area_are_of_the_t_interval_over_stays() -> None:
    area = np.random.default_rng(0).normal(size=25)
    found = latent.mean_areas(pd.DataFrame({"since_onset": 0, "area": area, "model": "clai-m", "seed": 0})).iloc[0]
    interval = stats.ttest_1samp(area, 0).confidence_interval(0.95)
    assert [found["low"], found["high"]] == pytest.approx([interval.low, interval.high])


def test_control_sees_what_the_ends_of_all_stays_do_whether_there_is_an_event_or_not() -> None:
    generator = np.random.default_rng(0)
    recording, late = np.repeat(np.arange(40), 10), np.tile([0] * 6 + [1] * 4, 40)
    z = generator.normal(size=(400, 3)) * np.where(late, 0.1, 1.0)[:, None]
    event = np.where(recording < 10, late, 0)
    assert statistics(z, recording, event)["area_effect_control_seen"] < -1
    assert abs(statistics(generator.normal(size=(400, 3)), recording, event)["area_effect_control_seen"]) < 0.5


def test_the_control_has_as_many_hours_as_the_usual_event() -> None:
    recording, event = np.repeat([0, 1, 2], 4), np.array([0, 0, 1, 1] + [0] * 8)
    width = np.array([1, 1, 2, 2, 1, 1, 2, 4, 1, 1, 3, 5.0])  # the last two hours: +2 and +3
    found = statistics(np.stack([0 * width, width], axis=1), recording, event)
    assert found["area_effect_control_seen"] == pytest.approx(2.5 / np.std([2, 3], ddof=1))


@pytest.mark.parametrize(("conditions", "expected"), [(1, 3.0), (3, 9.0)])
def test_degrees_of_freedom_are_those_of_each_class_under_its_own_condition(conditions: int, expected: float) -> None:
    """Of three conditions the others have normal embeddings, and that of class k those of 3^(k + 1) degrees of freedom."""
    generator = np.random.default_rng(0)
    y = np.arange(3).repeat(800)
    of_class = np.full(len(y), 3.0) if conditions == 1 else 3.0 ** (y + 1)
    normal = generator.normal(size=(conditions, len(y), 4))
    own = normal[0] / np.sqrt(generator.chisquare(of_class) / of_class)[:, None]
    z = normal.copy()
    for k in range(conditions):
        z[k, (y == k) | (conditions == 1)] = own[(y == k) | (conditions == 1)]
    found = latent.degrees_of_freedom(Embedded(torch.tensor(z), torch.tensor(y)), 3, 700, 0)
    assert found == pytest.approx(expected, rel=0.25)
    assert latent.degrees_of_freedom(Embedded(torch.tensor(normal), torch.tensor(y)), 3, 700, 0) > 20
