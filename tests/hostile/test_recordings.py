"""EDF signals and EDF+ hypnograms: no header and no annotation that contradicts the file gets through."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from replication.datasets.fetch import Raw
from replication.datasets.prepare import prepare
from replication.datasets.prepared import load
from replication.datasets.sleep_edf import epochs_of, read_header, read_night
from support.damage import NUMBERS, TEXTS, damaged, raw
from support.hostile import OUT, Attack

CHANNELS = ["EEG Fpz-Cz", "EEG Pz-Oz"]
SETTINGS: dict[str, Any] = {
    "title": "S", "subjects": None, "nights": "all", "unusable": "refuse", "channels": CHANNELS, "sampling_rate": 4,
    "epoch_seconds": 30,
    "trim_wake_minutes": 30, "test_share": 0.3, "validation_share": 0.3,
}  # fmt: skip
EPOCHS, SAMPLES = 6, 120
FIXED = (("version", 8), ("patient", 80), ("recording", 80), ("date", 8), ("time", 8), ("bytes", 8), ("reserved", 44),
("records", 8),
         ("seconds", 8), ("signals", 4))  # fmt: skip
OF_SIGNAL = (("label", 16), ("transducer", 80), ("unit", 8), ("low", 8), ("high", 8), ("lowest", 8), ("highest", 8),
("filter", 80),
             ("samples", 8), ("kept", 32))  # fmt: skip


def edf(
    signals: list[dict[str, str]], data: bytes, fixed: Mapping[str, str], changes: Mapping[str, str] | None = None
) -> bytes:
    """Return an EDF file; `changes` replace fields of the header, such as `records`, or `samples 0` of the first signal."""
    changes = changes or {}
    stated = {
        "version": "0", "patient": "X X X X", "recording": "Startdate 24-APR-1989 X X X", "date": "24.04.89", "time": "16.13.00",
        "bytes": str(256 * (len(signals) + 1)), "signals": str(len(signals)),
    } | fixed  # fmt: skip
    header = b"".join(raw(changes.get(name, stated.get(name, "")))[:width].ljust(width) for name, width in FIXED)
    for name, width in OF_SIGNAL:
        for number, signal in enumerate(signals):
            header += raw(changes.get(f"{name} {number}", signal.get(name, "")))[:width].ljust(width)
    return header + data


def psg(seed: int, changes: Mapping[str, str] | None = None) -> bytes:
    """Return two channels of six epochs."""
    of_signal = {
        "unit": "uV",
        "low": "-192",
        "high": "192",
        "lowest": "-2048",
        "highest": "2047",
        "samples": str(SAMPLES),
    }
    data = np.random.default_rng(seed).integers(-2000, 2000, (EPOCHS, 2, SAMPLES)).astype("<i2").tobytes()
    return edf(
        [{"label": name} | of_signal for name in CHANNELS], data, {"records": str(EPOCHS), "seconds": "30"}, changes
    )


def mark(onset: str, duration: str, text: str) -> str:
    """Return an annotation as EDF+ has it."""
    return f"+{onset}\x15{duration}\x14{text}\x14\0"


STAGES = ("Sleep stage W", "Sleep stage 1", "Sleep stage 2", "Sleep stage 3", "Sleep stage 4", "Sleep stage R")
MARKS = "+0\x14\x14\0" + "".join(mark(str(30 * n), "30", text) for n, text in enumerate(STAGES))


def hypnogram(marks: str, changes: Mapping[str, str] | None = None) -> bytes:
    """Return a file of EDF+ annotations."""
    content = raw(marks)
    content += bytes(-len(content) % 2)
    of_signal = {
        "label": "EDF Annotations",
        "low": "-1",
        "high": "1",
        "lowest": "-32768",
        "highest": "32767",
        "samples": str(len(content) // 2),
    }
    return edf([of_signal], content, {"reserved": "EDF+C", "records": "1", "seconds": "0"}, changes)


def changed_header(signals: int) -> st.SearchStrategy[dict[str, str]]:
    """Return changes of a header's fields."""
    names = [name for name, _ in FIXED] + [f"{name} {number}" for name, _ in OF_SIGNAL for number in range(signals)]
    odd = (
        *TEXTS,
        "31.02.89",
        "24.04.1989",
        "99.99.99",
        "EDF+D",
        "EDF+C",
        "EDF Annotations",
        "mV",
        "kV",
        "EEG Fpz-Cz",
        "768",
        "512",
    )
    return st.dictionaries(st.sampled_from(names), st.sampled_from(odd), min_size=1, max_size=3)


PSG = st.one_of(changed_header(2).map(lambda changes: psg(0, changes)), damaged(psg(0), head=768))
ODD_MARKS = st.lists(
    st.one_of(
        st.builds(mark, st.sampled_from(("0", "30", "-30", "15", "90.5", *NUMBERS)), st.sampled_from(("30", "60", "0",
        *NUMBERS)), st.sampled_from((*STAGES, *TEXTS))),
        st.sampled_from(("+0\x14\x14\0", "+0\x15", "\x14", "\x15\x14", "+\x14\0", "30\x1530\x14Sleep stage W\x14\0",
        "+0\x1530\x14\0", "\0" * 40, "+0\x14a\x14b\x14\0")),
    ),
    max_size=8,
).map("".join)  # fmt: skip
HYPNOGRAMS = st.one_of(
    ODD_MARKS.map(hypnogram),
    st.builds(hypnogram, ODD_MARKS, changed_header(1)),
    changed_header(1).map(lambda changes: hypnogram(MARKS, changes)),
    damaged(hypnogram(MARKS), head=600),
)


def lay(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def night(folder: Path) -> None:
    """Read the recording of a case, and check shapes and stages of its epochs."""
    files = {kind: next(folder.glob(f"*-{kind}.edf")) for kind in ("PSG", "Hypnogram")}
    found = read_night(files, (0, 1), SETTINGS, Counter())
    assert len(found.epochs) == len(found.stages)
    assert set(found.stages) <= set(range(5))
    parts = list(epochs_of(found, CHANNELS, SAMPLES))
    assert sum(len(part) for part in parts) == len(found.epochs)
    assert all(part.shape[1:] == (2, SAMPLES) and part.dtype == np.float32 for part in parts)
    assert all(np.isfinite(part).all() for part in parts)


SIGNAL, SCORED = "SC4001E0-PSG.edf", "SC4001EC-Hypnogram.edf"


def test_headers(attack: Attack) -> None:
    attack(
        "EDF (signals)",
        PSG,
        lambda folder, content: lay(folder, {SIGNAL: content}),
        lambda folder: read_header(folder / SIGNAL),
        valid=psg(0),
        named=(SIGNAL,),
        cases=2000,
    )


def test_signals(attack: Attack) -> None:
    attack(
        "EDF (signals)",
        PSG,
        lambda folder, content: lay(folder, {SIGNAL: content, SCORED: hypnogram(MARKS)}),
        night,
        valid=psg(0),
        named=(SIGNAL, SCORED),
        cases=800,
    )


def test_annotations(attack: Attack) -> None:
    attack(
        "EDF+ annotations (hypnograms)",
        HYPNOGRAMS,
        lambda folder, content: lay(folder, {SIGNAL: psg(0), SCORED: content}),
        night,
        valid=hypnogram(MARKS),
        named=(SIGNAL, SCORED),
        cases=1500,
    )


def test_a_folder_of_recordings(attack: Attack) -> None:
    whole = {f"SC40{n}1E0-PSG.edf": psg(n) for n in range(3)} | {
        f"SC40{n}1EC-Hypnogram.edf": hypnogram(MARKS) for n in range(3)
    }

    def parse(folder: Path) -> None:
        raw_files = Raw(
            "sleepedf", "sleep_edf", "1", folder, ({"file": "/", "checksum": "sha256-tree:"},), "licence", "open", True
        )
        prepare(raw_files, folder / OUT, SETTINGS, 0)
        load(folder / OUT)

    signals, scored = "SC4011E0-PSG.edf", "SC4011EC-Hypnogram.edf"
    attack(
        "EDF (signals)",
        st.one_of(
            PSG.map(lambda content: whole | {signals: content}),
            HYPNOGRAMS.map(lambda content: whole | {scored: content}),
            st.sampled_from(sorted(whole)).map(lambda name: {n: c for n, c in whole.items() if n != name}),
            st.sampled_from(("SC4001EX-PSG.edf", "SC4-PSG.edf", "SC4\u0660\u0661\u0662E0-PSG.edf")).map(
                lambda name: whole | {name: psg(0)}
            ),
        ),
        lay,
        parse,
        valid=whole,
        named=("SC40", "SC4-PSG.edf", "SC4\u0660\u0661\u0662E0-PSG.edf", "datasets.sleepedf"),
        cases=200,
    )
