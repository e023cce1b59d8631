"""Supplementary tables of the setup: the open choices and the datasets."""

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from clai.errors import InputError
from replication.report.tables.layout import (
    Sources,
    escape,
    floating,
    long_table,
    paragraphs,
    row,
)

CHOICE_COLUMNS = ["setting", "question", "value", "reason"]
READ_BY = {
    "resnet2d": ("blocks", "pool"), "convnet": ("whitening",), "resnet1d": ("blocks",), "mlp": ("layers",),
    "hours": ("layers", "dropout"), "gru": ("layers", "dropout"),
}  # fmt: skip
"""The settings of a trunk beside its width: those that it reads (`clai.encoders.build_trunk`)."""
_ABSENT = object()

QUANTITIES = [
    "Data", "Samples", "Recordings", "Classes", "Split", "Split train", "Split val", "Split test", "Split all",
    "Cohort", "Exclusions", "Lacking", "Files", "Licence, access",
]  # fmt: skip
STATED = {
    "Samples": "images",
    "Recordings": "recordings",
    "Classes": "classes",
    "Split train": "training images",
    "Split test": "test images",
}
"""By quantity the name of what the paper states of it."""
UNITS = {"images": "images", "signals": "epochs", "features": "rows", "recordings": "hours"}
"""What samples of a kind of data are."""
PER_PART = 4
"""Datasets side by side in one part of table S2."""
LINE, FIRST, GAP = 16.6, 1.8, 0.29
"""Width in cm of the line, of the first column, and of the space around a column."""


def choices_frame(sources: Sources) -> pd.DataFrame:
    """Return setting, question, value and reason of every choice.

    The value is what the runs recorded. Where no run recorded one it is that of the settings or of the code.

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
    values = [
        setting_text(setting, sources.settings, recorded) if setting else "in the code"
        for setting in sources.choices["setting"]
    ]
    return sources.choices.assign(value=values)[CHOICE_COLUMNS]


def setting_text(setting: str, settings: Mapping[str, Any], recorded: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the value of a dotted setting, then the values that differ from it, each behind the name of its dataset.

    Args:
        recorded: the settings of runs, by dataset; where they hold the setting, they count, not `settings`.
    """
    base = _look_up(settings, setting)
    if base is _ABSENT:
        base = _constants().get(setting, _ABSENT)
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


def _constants() -> dict[str, Any]:
    """Return the choices that settings of published runs name and that are constants now.

    The imports are slow, and no other table needs them.
    """
    from replication.experiments import read_outs
    from replication.metrics.bootstrap import DRAWS
    from replication.metrics.classification import ECE_BINS
    from replication.models.run import BINARY_TARGET
    from replication.runs.controls import SEEDS, TRACED_DATASETS
    from replication.runs.models import EMBEDDING

    return {
        "target.binary": BINARY_TARGET,
        "baselines.embedding": EMBEDDING,
        "baselines.supervised_contrastive.read_out": "linear",
        "evaluation.ece_bins": ECE_BINS,
        "evaluation.bootstrap": DRAWS,
        "controls.seeds": SEEDS,
        "controls.traced.datasets": TRACED_DATASETS,
        "controls.read_outs.samples": read_outs.SAMPLES,
        "controls.read_outs.components": read_outs.COMPONENTS,
    }


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
    rows = [paragraphs(*(choice[key] for key in CHOICE_COLUMNS)) for choice in frame.to_dict("records")]
    body = "\\addlinespace[2pt]\n".join(rows)
    columns = "p{2.8cm}p{3.3cm}p{3.8cm}p{5.4cm}"
    return long_table(head, body, columns, text, "tab:choices", sources.evidence.miniature)


def datasets_frame(sources: Sources) -> pd.DataFrame:
    """Return datasets as used: columns dataset, quantity, ours, printed (the figure that the paper states, or empty)."""
    evidence, printed = sources.evidence, sources.printed_values
    rows: list[tuple[str, str, str, str]] = []
    for dataset in evidence.expected:
        own = printed[(printed["table"] == "text") & (printed["row"] == dataset)]
        stated = {metric: f"{value:,.0f}" for metric, value in zip(own["metric"], own["value"], strict=True)}
        if evidence.has(dataset):
            rows += [(dataset, *described) for described in _described(evidence.description(dataset), stated)]
            continue
        rows.append((dataset, "Data", evidence.not_run(dataset), ""))
        rows += [
            (dataset, quantity, "not run", f"{stated[key]} {key}") for quantity, key in STATED.items() if key in stated
        ]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "printed"])


def _described(content: Mapping[str, Any], stated: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return quantity, our text and the paper's text of a dataset's description."""
    # The splits of recordings are the whole ("all") and its test folds, those of other kinds are disjoint.
    whole = {name: split for name, split in content["splits"].items() if name == "all"} or content["splits"]
    unit, flow = UNITS[content["kind"]], content.get("flow", [])
    samples = sum(int(split["n"]) for split in whole.values())
    people = {
        name: sum(int(split.get(name, 0)) for split in whole.values())
        for name in ("recordings", "subjects", "groups")
        if any(name in split for split in whole.values())
    }
    usable = [("recordings", step["n"]) for step in flow if step["step"] == "usable"]
    recordings = ", ".join(f"{n:,} {name}" for name, n in (dict(usable) | people).items())
    rows = [
        ("Data", f"{content['title']}, version {content['version']}", ""),
        ("Samples", f"{samples:,} {unit}", stated.get(unit, "")),
        ("Recordings", recordings, f"{stated['recordings']} recordings" if "recordings" in stated else ""),
        ("Classes", str(len(content["classes"])), stated.get("classes", "")),
        ("Split", str(content["split_rule"]),
         f"{stated['share for training']} % for training" if "share for training" in stated else ""),
        *((f"Split {name}", f"{split['n']:,}: {_shares(content['classes'], split['counts'])}",
           stated.get(STATED.get(f"Split {name}", name), "")) for name, split in whole.items()),
        ("Cohort", "; ".join(f"{step['n']:,} {step['unit']}: {step['step']}" for step in flow), ""),
        ("Exclusions", "; ".join(f"{item['reason']}: {item['count']:,}" for item in content["exclusions"]) or "none", ""),
        ("Lacking", ", ".join(content.get("lacking", [])), ""),
        ("Files", _files(content["files"]), ""),
        ("Licence, access", f"{content['licence']}; {content['access']}", ""),
    ]  # fmt: skip
    return [row for row in rows if row[1] or row[2]]


def _shares(classes: Sequence[str], counts: Sequence[int]) -> str:
    total = sum(counts)
    shares = [f"{100 * count / total:.1f} %" for count in counts] if total else []
    if shares and len(set(shares)) == 1:
        return f"{shares[0]} each"
    return ", ".join(f"{name} {share}" for name, share in zip(classes, shares, strict=False))


def _files(files: Sequence[Mapping[str, Any]], shown: int = 2) -> str:
    """Return each file with the beginning of its checksum; of many, their number, size and one checksum over all of theirs."""
    if len(files) <= shown:
        return "; ".join(f"{item['file']} ({str(item['checksum'])[:19]})" for item in files)
    lines = "".join(f"{item['file']} {item['checksum']}\n" for item in files)
    total = sum(int(item["size"]) for item in files) / 1e6
    return f"{len(files):,} files, {total:,.1f} MB (sha256 of their list: {hashlib.sha256(lines.encode()).hexdigest()[:12]})"


def datasets_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table S2 in parts of a few datasets each, so that their columns stay wide enough to read."""
    evidence = sources.evidence
    datasets = list(evidence.expected)
    size = math.ceil(len(datasets) / math.ceil(len(datasets) / PER_PART))
    entries = {(entry["dataset"], entry["quantity"]): entry for entry in frame.to_dict("records")}
    parts = []
    for start in range(0, len(datasets), size):
        shown = datasets[start : start + size]
        body = row("", *(escape(evidence.expected[key]["title"]) for key in shown)) + "\\midrule\n"
        for quantity in QUANTITIES:
            cells = [_dataset_cell(entries.get((dataset, quantity))) for dataset in shown]
            body += paragraphs(quantity, *cells) if any(cells) else ""
        width = (LINE - FIRST - GAP * (len(shown) + 1)) / len(shown)
        columns = f"p{{{FIRST}cm}}" + f"p{{{width:.2f}cm}}" * len(shown)
        parts.append(floating(body, columns, text, "tab:datasets", evidence.miniature, continued=start > 0))
    return "\n".join(parts)


def _dataset_cell(entry: Mapping[Hashable, Any] | None) -> str:
    if entry is None:
        return ""
    return f"{entry['ours']} (paper: {entry['printed']})" if entry["printed"] else str(entry["ours"])
