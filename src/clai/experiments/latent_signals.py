"""Latent signals of intensive-care stays: embeddings and Gaussian-process latents over the hours (figure 4, claim 11)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clai.segments import segments

Floats = NDArray[np.floating[Any]]


def spread(z: Floats) -> Floats:
    """Distance between the outermost of L signals (hours, L) at each hour; its sum over hours is the area between them."""
    return z.max(1) - z.min(1)


def roughness(signals: Floats) -> Floats:
    """Mean absolute second difference of each signal (hours, L) over its standard deviation, (L,); 0 for a straight line.

    NaN for fewer than three hours or a constant signal.
    """
    deviation = signals.std(axis=0)
    if len(signals) < 3:
        return np.full(signals.shape[1], np.nan)
    bend = np.abs(np.diff(signals, 2, axis=0)).mean(axis=0)
    return np.divide(bend, deviation, out=np.full(len(bend), np.nan), where=deviation > 0)


def choose_stay(recording: NDArray[np.int64], y: NDArray[np.int64], settings: Mapping[str, Any]) -> int:
    """The stay that figure 4 shows: by rule, not by eye.

    Of the recordings with at least `minimum_hours_before` hours before their first positive hour and `minimum_event_hours`
    positive ones, the one whose length is the median (the lower id of equals). If none qualifies, the one with most hours before
    the event among those that have one.

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
    enough = stays[
        (stays["before"] >= settings["minimum_hours_before"]) & (stays["event"] >= settings["minimum_event_hours"])
    ]
    if enough.empty:
        return int(stays["before"].idxmax())
    ordered = enough.sort_values("hours", kind="stable")
    return int(ordered.index[(len(ordered) - 1) // 2])


def stay_signals(z: Floats, sd: Floats | None, hours: Floats, event: NDArray[np.int64]) -> pd.DataFrame:
    """Signals of one stay in long form: hour, signal, value, sd, event.

    Args:
        z: (hours, L). sd: their deviations, of the same shape, or None.
    """
    length, signals = z.shape
    return pd.DataFrame(
        {
            "hour": np.repeat(hours, signals),
            "signal": np.tile(np.arange(signals), length),
            "value": z.ravel(),
            "sd": np.nan if sd is None else sd.ravel(),
            "event": np.repeat(event, signals),
        }
    )


def latent_statistics(z: Floats, recording: NDArray[np.int64], y: NDArray[np.int64]) -> dict[str, float]:
    """What claim 11 says of the signals (rows, L), over all stays that have hours both in and out of an event.

    Returns:
        area_event and area_no_event: mean over stays of the mean spread in and out of the event; area_effect: mean over
        stays of the difference (event minus no event) over its standard deviation (Cohen's d of paired differences);
        area_effect_control: the same over stays without an event, their last hours, as many as the median event has, in its
        place, since events are the ends of stays; roughness: mean over all stays and signals; n_stays: stays with both.
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
    """Mean of the values outside (0) and inside (1) for each recording that has both."""
    frame = pd.DataFrame({"recording": recording, "inside": inside, "value": values})
    means = frame.pivot_table(index="recording", columns="inside", values="value")
    return means.reindex(columns=[0, 1]).dropna()


def _effect(means: pd.DataFrame) -> float:
    difference = means[1] - means[0]
    return float(difference.mean() / difference.std(ddof=1)) if len(difference) > 1 else float("nan")
