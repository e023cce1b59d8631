"""Latent signals of intensive-care stays: embeddings and Gaussian-process latents over the hours (figure 4, claim 11)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def spread(z: Floats) -> Floats:
    """Distance between the outermost of L signals (hours, L) at each hour; its sum over hours is the area between them."""
    return z.max(1) - z.min(1)


def roughness(signal: Floats) -> float:
    """Mean absolute second difference of a signal (hours,) over its standard deviation; 0 for a straight line.

    NaN for fewer than three hours or a constant signal.
    """
    deviation = signal.std()
    if len(signal) < 3 or deviation == 0:
        return float("nan")
    return float(np.abs(np.diff(signal, 2)).mean() / deviation)


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
        roughness: mean over all stays and signals; n_stays: stays with both.
    """
    frame = pd.DataFrame({"recording": recording, "y": y, "spread": spread(z)})
    means = frame.pivot_table(index="recording", columns="y", values="spread").reindex(columns=[0, 1]).dropna()
    difference = means[1] - means[0]
    starts = np.flatnonzero(np.r_[True, recording[1:] != recording[:-1]])
    rough = [roughness(signal) for stay in np.split(z, starts[1:]) for signal in stay.T]
    return {
        "area_event": float(means[1].mean()),
        "area_no_event": float(means[0].mean()),
        "area_effect": float(difference.mean() / difference.std(ddof=1)) if len(difference) > 1 else float("nan"),
        "roughness": float(np.nanmean(rough)) if np.isfinite(rough).any() else float("nan"),
        "n_stays": float(len(difference)),
    }
