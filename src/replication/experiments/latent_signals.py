"""Latent signals of intensive-care stays: embeddings and Gaussian-process latents over the hours (figure 4, claim 11)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replication.datasets.prepared import Prepared
from replication.metrics.segments import segments
from replication.models.embedding import load_embedded
from replication.runs.identity import RunId

Floats = NDArray[np.floating[Any]]
SIGNAL_COLUMNS = ["model", "hour", "signal", "value", "sd", "event"]
HOURS_BEFORE, EVENT_HOURS = 12, 4
"""Hours before the event, and of it, that the stay of figure 4 has at least."""


class LatentSignals(NamedTuple):
    """Signals at hours, (rows, L): embeddings, or the mean of a process with its standard deviation."""

    mean: Floats
    sd: Floats | None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the embeddings of a run (`.safetensors`), or the latent process of one (`.npz`)."""
        if Path(path).suffix == ".npz":
            latent = np.load(path, allow_pickle=False)
            return cls(latent["mean"][:, None], latent["sd"][:, None])
        return cls(load_embedded(path)["test"].z[0].double().numpy(), None)


def trace_signals(
    data: Prepared, embedded: Sequence[str], latent: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Trace one stay in every model, and describe the signals of all stays in every run.

    The stay is one of fold 0; its signals are those of the first seed. Both are empty where no model has signals.

    Args:
        embedded: paths of runs' embeddings.
        latent: paths of runs' latent processes.

    Returns:
        The stay (`SIGNAL_COLUMNS`), and the columns quantity and value of each run by path.
    """
    paths = [*embedded, *latent]
    first_seed = min((RunId.parse(path).seed for path in paths), default=None)
    shown, statistics = [], {}
    for path in paths:
        run = RunId.parse(path)
        signals = LatentSignals.load(path)
        rows = np.asarray(data["folds_all"]) == run.fold
        recording, hours, y = (np.asarray(data[f"{name}_all"])[rows] for name in ("groups", "hours", "y"))
        quantities = latent_statistics(signals.mean, recording, y)
        if signals.sd is not None:  # a process has one signal, and so no area between signals
            quantities = {key: quantities[key] for key in ("roughness", "n_stays")}
        statistics[path] = pd.DataFrame({"quantity": list(quantities), "value": list(quantities.values())})
        if run.fold == 0 and run.seed == first_seed:
            stay = recording == choose_stay(recording, y)
            sd = None if signals.sd is None else signals.sd[stay]
            frame = stay_signals(LatentSignals(signals.mean[stay], sd), hours[stay], y[stay])
            shown.append(frame.assign(model=run.model))
    stay_of_models = pd.concat(shown)[SIGNAL_COLUMNS] if shown else pd.DataFrame(columns=SIGNAL_COLUMNS)
    return stay_of_models, statistics


def spread(z: Floats) -> Floats:
    """Return the distance of the outermost of L signals (hours, L) at each hour; its sum is the area between them."""
    return z.max(1) - z.min(1)


def roughness(signals: Floats) -> Floats:
    """Return the mean absolute second difference of each signal (hours, L) over its standard deviation, (L,).

    A straight line has 0. Fewer than three hours, or a constant signal, give NaN.
    """
    deviation = signals.std(axis=0)
    if len(signals) < 3:
        return np.full(signals.shape[1], np.nan)
    bend = np.abs(np.diff(signals, 2, axis=0)).mean(axis=0)
    return np.divide(bend, deviation, out=np.full(len(bend), np.nan), where=deviation > 0)


def choose_stay(
    recording: NDArray[np.int64],
    y: NDArray[np.int64],
    hours_before: int = HOURS_BEFORE,
    event_hours: int = EVENT_HOURS,
) -> int:
    """Choose the stay that figure 4 shows, by rule and not by eye.

    A recording qualifies with at least `hours_before` hours before its first positive hour and `event_hours` positive hours.
    The choice is the recording of median length among these, and the lowest id among equals. If none qualifies, it is the
    recording with most hours before its event.

    Args:
        recording: recording of each hour, (rows,).
        y: label of each hour, (rows,).

    Raises:
        ValueError: no recording has a positive hour.
    """
    table = pd.DataFrame({"recording": recording, "y": y})
    stays = table.groupby("recording", sort=True)["y"].agg(
        hours="size", event="sum", before=lambda s: int(np.argmax(s.to_numpy())) if s.any() else -1
    )
    stays = stays[stays["event"] > 0]
    if stays.empty:
        raise ValueError("no recording has a positive hour to show")
    enough = stays[(stays["before"] >= hours_before) & (stays["event"] >= event_hours)]
    if enough.empty:
        return int(stays["before"].idxmax())
    ordered = enough.sort_values("hours", kind="stable")
    return int(ordered.index[(len(ordered) - 1) // 2])


def stay_signals(signals: LatentSignals, hours: Floats, event: NDArray[np.int64]) -> pd.DataFrame:
    """Return the signals of one stay in long form: columns hour, signal, value, sd, event.

    Args:
        signals: of the stay's hours, (hours, L).
        hours: of the stay, (hours,).
        event: label of each hour, (hours,).
    """
    length, count = signals.mean.shape
    return pd.DataFrame(
        {
            "hour": np.repeat(hours, count),
            "signal": np.tile(np.arange(count), length),
            "value": signals.mean.ravel(),
            "sd": np.nan if signals.sd is None else signals.sd.ravel(),
            "event": np.repeat(event, count),
        }
    )


def latent_statistics(z: Floats, recording: NDArray[np.int64], y: NDArray[np.int64]) -> dict[str, float]:
    """Return the quantities of claim 11 for signals (rows, L), over stays with hours both in and out of an event.

    Returns:
        area_event, area_no_event: mean over stays of the mean spread in and out of the event.
        area_effect: mean over stays of the difference (event minus no event) over its standard deviation (Cohen's d of paired
            differences).
        area_effect_control: the same over stays without an event, with their last hours in place of the event, as many as the
            median event has. It is a control because events are at the ends of stays.
        roughness: mean over all stays and signals.
        n_stays: number of stays with both.
    """
    starts, lengths = segments(recording)
    events = np.add.reduceat(y, starts)
    usual = int(np.median(events[events > 0])) if events.any() else 0
    left = np.repeat(starts + lengths, lengths) - np.arange(len(y))  # hours to the end of the stay, this one included
    eventless = np.repeat(events == 0, lengths)
    width = spread(z)
    area = _differences(width, recording, y)
    control = _differences(width[eventless], recording[eventless], (left[eventless] <= usual).astype(np.int64))
    rough = np.concatenate([roughness(stay) for stay in np.split(z.astype(np.float64), starts[1:])])
    return {
        "area_event": float(area[1].mean()),
        "area_no_event": float(area[0].mean()),
        "area_effect": _effect(area),
        "area_effect_control": _effect(control),
        "roughness": float(np.nanmean(rough)) if np.isfinite(rough).any() else float("nan"),
        "n_stays": float(len(area)),
    }


def _differences(values: Floats, recording: NDArray[np.int64], inside: NDArray[np.int64]) -> pd.DataFrame:
    """Return the mean of the values outside (0) and inside (1) for each recording that has both."""
    frame = pd.DataFrame({"recording": recording, "inside": inside, "value": values})
    means = frame.pivot_table(index="recording", columns="inside", values="value")
    return means.reindex(columns=[0, 1]).dropna()


def _effect(means: pd.DataFrame) -> float:
    difference = means[1] - means[0]
    return float(difference.mean() / difference.std(ddof=1)) if len(difference) > 1 else float("nan")
