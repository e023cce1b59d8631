"""Table S1: what the paper leaves open, and which value the runs had."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clai.errors import InputError
from replication.report.latex import long_table, paragraphs
from replication.report.tables.parts import Sources

COLUMNS = ["setting", "question", "value", "reason"]
READ_BY = {
    "resnet2d": ("blocks", "pool"), "convnet": ("whitening",), "resnet1d": ("blocks",), "mlp": ("layers",),
    "hours": ("layers", "dropout"), "gru": ("layers", "dropout"),
}  # fmt: skip
"""The settings of a trunk beside its width: those that it reads (`clai.encoders.build_trunk`)."""


def read_choices(path: Path) -> pd.DataFrame:
    """Return what the paper leaves open: setting (dotted, empty where the code decides), question, reason.

    Raises:
        InputError: the file has other columns.
    """
    frame = pd.read_csv(path, keep_default_na=False)
    expected = ["setting", "question", "reason"]
    if list(frame) != expected:
        raise InputError(f"{path}: found the columns {list(frame)}, expected the columns {expected}; rename them")
    return frame


def choices_frame(sources: Sources) -> pd.DataFrame:
    """Return setting, question, value and reason of every choice.

    The value is what the runs recorded. Where no run recorded one it is that of the settings, and without a setting the code's.

    Raises:
        InputError: a row names a setting that is not there.
    """
    evidence = sources.evidence
    recorded = {
        key: [
            r["settings"] | r.get("evaluation", {}).get("settings", {}) for r in evidence.runs(key) if "settings" in r
        ]
        for key in evidence.at_hand()
    }
    rows = []
    for choice in sources.choices.to_dict("records"):
        setting = choice["setting"]
        value = setting_text(setting, sources.settings, recorded) if setting else "in the code"
        rows.append({"setting": setting, "question": choice["question"], "value": value, "reason": choice["reason"]})
    return pd.DataFrame(rows, columns=COLUMNS)


def setting_text(setting: str, settings: Mapping[str, Any], recorded: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the value of a dotted setting, then the values that differ from it, each behind the name of its dataset.

    Args:
        recorded: the settings of runs, by dataset; where they hold the setting, they count, not `settings`.
    """
    base = _look_up(settings, setting)
    if base is _ABSENT:
        raise InputError(
            f"workflow/config/choices.csv: the setting {setting!r} is not in the settings; "
            f"name one of theirs ({', '.join(sorted(settings))}, with dots below) or remove the row"
        )
    texts = [_plain(base)]
    for key, entry in settings["datasets"].items():
        of_runs = [_look_up(record, setting) for record in recorded.get(key, [])]
        whole = [value for value in of_runs if not any(_is_part(value, block) for block in of_runs)]
        values = list(dict.fromkeys(_plain(_filled(value, base)) for value in whole if value is not _ABSENT))
        if not values and (value := _look_up(entry["overrides"], setting)) is not _ABSENT:
            values = [_plain(value)]
        if values and values != texts[:1]:
            texts.append(f"{key}: {' or '.join(values)}")
    return "; ".join(texts)


_ABSENT = object()


def _look_up(settings: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        if not isinstance(settings, Mapping) or key not in settings:
            return _ABSENT
        settings = settings[key]
    return settings


def _is_part(value: Any, block: Any) -> bool:
    """Return whether a run recorded fewer settings of a block than another run: it read fewer of them."""
    return isinstance(value, Mapping) and isinstance(block, Mapping) and value.items() < block.items()


def _filled(value: Any, base: Any) -> Any:
    """Return a recorded block of settings in the order of today's, with the settings that joined the block since."""
    return {**base, **value} if isinstance(value, Mapping) and isinstance(base, Mapping) else value


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        trunk = value.get("trunk")
        read = ("trunk", "width", *READ_BY[trunk]) if trunk in READ_BY else value
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items() if key in read)
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(item) for item in value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def choices_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S1, which runs over pages."""
    head = paragraphs("Setting", "What the paper leaves open", "Value", "Reason")
    body = "\\addlinespace[2pt]\n".join(
        paragraphs(*(choice[key] for key in COLUMNS)) for choice in frame.to_dict("records")
    )
    columns = "p{2.8cm}p{3.3cm}p{3.8cm}p{5.4cm}"
    return long_table(head, body, columns, text, "tab:choices", sources.evidence.miniature)
