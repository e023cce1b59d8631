"""Test images beside the references with the strongest votes about them: the data of figure S1."""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clai.published_model import PublishedModel
from replication.datasets.prepared import Prepared
from replication.runs.columns import COLUMNS

IMAGES = 2
"""Test images that are classified rightly, and as many that are not."""
REFERENCES = 5
"""References for the predicted class, and as many against it."""


def vote_pictures(model: PublishedModel, data: Prepared, seed: int) -> pd.DataFrame:
    """Return test images, drawn with the seed, and the references with the strongest votes about them, as `votes.csv.gz`.

    An image has a row with `role` image, then one for each reference; `pixels` are base64 of uint8 (height, width, channels).
    """
    y = np.asarray(data["y_test"])
    order = np.random.default_rng(seed).permutation(len(y))
    predicted = model.predict(data["x_test"])
    right = predicted == np.asarray(model.classes)[y]
    shown = [row for side in (right, ~right) for row in order[side[order]][:IMAGES].tolist()]
    rows = [row for image in shown for row in _rows(model, data, image)]
    return pd.DataFrame(rows, columns=COLUMNS["votes.csv.gz"])


def _rows(model: PublishedModel, data: Prepared, image: int) -> Iterator[dict[str, Any]]:
    pixels = np.asarray(data["x_test"][image])
    (votes,) = model.votes(pixels[None], REFERENCES)
    shared = {"model": model.record["model"], "image": image, "predicted": votes.label}
    label = model.classes[int(data["y_test"][image])]
    shown = {"role": "image", "place": 0, "item": image, "label": label, "vote": votes.score}
    yield {**shared, **_picture(pixels), **shown}
    for role, side in (("for", votes.support), ("against", votes.opposition)):
        for place, vote in enumerate(side, 1):
            yield {**shared, **_picture(data["x_train"][vote.item]), **vote._asdict(), "role": role, "place": place}


def _picture(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    height, width = pixels.shape[:2]
    text = base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode()
    return {"height": height, "width": width, "pixels": text}
