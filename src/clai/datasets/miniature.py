"""Miniature synthetic data in the sources' own file formats, so that the real code runs on it from the download on.

Each generator writes the files of one dataset into a folder, with the blemishes of the real ones; `make` adds the table
`sources.csv` that the verified fetch follows. Classes differ, but a good model stays well below every sample right. The
bytes depend on the seed alone.
"""

import csv
import datetime
import gzip
import io
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clai.datasets.cifar10 import FOLDER, META, TEST_BATCH, TRAIN_BATCHES
from clai.datasets.fetch import COLUMNS, checksum_of
from clai.errors import InputError

Rng = np.random.Generator
Array = npt.NDArray[Any]

TABLE = "sources.csv"
VERSION = "miniature"
_ZIP_DATE = (2020, 1, 1, 0, 0, 0)


def make(dataset: str, folder: Path, seed: int) -> Path:
    """Write the raw files of a dataset into `folder` and return its table of sources.

    dataset: a key of GENERATORS. Raises InputError for another one.
    """
    if dataset not in GENERATORS:
        raise InputError(f"dataset '{dataset}' has no miniature; expected one of {', '.join(GENERATORS)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = GENERATORS[dataset](folder, np.random.default_rng([seed, list(GENERATORS).index(dataset)]))
    table = folder / TABLE
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path in files:
            name, size = path.relative_to(folder).as_posix(), path.stat().st_size
            writer.writerow([dataset, VERSION, name, "", "", size, checksum_of(path), "generated", "generated"])
    return table


# Images


def textures(labels: Array, classes: int, size: int, noise: float, cast: Sequence[float], rng: Rng) -> Array:
    """Images uint8 (N, size, size, 3): gratings whose direction and tint depend on the class, under noise.

    noise: standard deviation in grey levels. cast: (3,) grey levels added to every image of the set.
    """
    n = len(labels)
    angle = np.pi * (labels + rng.normal(0, 0.35, n)) / classes
    wavelength = rng.uniform(4.0, 8.0, n)
    phase = rng.uniform(0, 2 * np.pi, n)
    row, column = np.mgrid[:size, :size]
    along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
    grating = np.sin(2 * np.pi * along / wavelength[:, None, None] + phase[:, None, None])
    hue = 2 * np.pi * ((labels * 3) % classes) / classes
    tint = np.stack([np.cos(hue), np.cos(hue - 2.1), np.cos(hue + 2.1)], axis=-1)
    light = rng.normal(0, 18, (n, 1, 1, 3)) + 14 * tint[:, None, None, :] + np.asarray(cast)
    pixels = 125 + light + rng.uniform(12, 34, (n, 1, 1, 1)) * grating[..., None]
    pixels = pixels + rng.normal(0, noise, (n, size, size, 3))
    bounded: Array = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return bounded


class Python2Pickler(pickle._Pickler):
    """Pickles as Python 2 did: text and bytes as its str, numpy under its old module name."""

    dispatch: ClassVar[dict[type, Callable[..., None]]] = dict(pickle._Pickler.dispatch)
    write: Callable[[bytes], None]
    memoize: Callable[[Any], None]

    def save_str(self, value: str | bytes) -> None:
        """Write a Python 2 str."""
        data = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    dispatch[str] = save_str
    dispatch[bytes] = save_str

    def save_global(self, value: Any, name: str | None = None) -> None:
        """Write a reference to a class or function."""
        module = value.__module__.replace("numpy._core", "numpy.core")
        self.write(pickle.GLOBAL + f"{module}\n{value.__qualname__}\n".encode())
        self.memoize(value)


def _python2_pickle(value: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    return stream.getvalue()


def cifar10(folder: Path, rng: Rng) -> list[Path]:
    """`cifar-10-python.tar.gz`: five batches of 120 training images and 200 test images, classes balanced."""
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    members = {META: _python2_pickle({"num_cases_per_batch": 120, "label_names": classes, "num_vis": 3072})}
    for name in (*TRAIN_BATCHES, TEST_BATCH):
        labels = rng.permutation(np.repeat(np.arange(10), 20 if name == TEST_BATCH else 12))
        pixels = textures(labels, 10, 32, 42.0, (0, 0, 0), rng)
        kind = "testing batch 1 of 1" if name == TEST_BATCH else f"training batch {name[-1]} of 5"
        members[name] = _python2_pickle(
            {
                "batch_label": kind,
                "labels": [int(k) for k in labels],
                "data": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1)),
                "filenames": [f"{classes[k]}_s_{i:06d}.png" for i, k in enumerate(labels)],
            }
        )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path = folder / "cifar-10-python.tar.gz"
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=6, mtime=0))
    return [path]


def pathmnist(folder: Path, rng: Rng) -> list[Path]:
    """`pathmnist.npz`: 600, 100 and 200 images of nine classes; the test images have another centre's stain."""
    share = np.array([0.10, 0.11, 0.12, 0.12, 0.09, 0.14, 0.08, 0.10, 0.14])
    arrays: dict[str, Array] = {}
    for split, n, cast in (("train", 600, (20, -12, 14)), ("val", 100, (20, -12, 14)), ("test", 200, (12, -6, 8))):
        labels = rng.permutation(np.concatenate([np.arange(9), rng.choice(9, size=n - 9, p=share)]))
        arrays[f"{split}_images"] = textures(labels, 9, 28, 38.0, cast, rng)
        arrays[f"{split}_labels"] = labels.astype(np.uint8)[:, None]
    path = folder / "pathmnist.npz"
    members = {}
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, allow_pickle=False)
        members[f"{name}.npy"] = stream.getvalue()
    _write_zip(path, members)
    return [path]


def _write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=_ZIP_DATE), data, compress_type=zipfile.ZIP_DEFLATED)


# Sleep

# Power in five bands (delta, theta, alpha, sigma, beta) for wake, N1, N2, N3 and REM, relative to the background.
_BANDS = ((0.5, 4), (4, 8), (8, 12), (12, 15), (15, 30))
_BAND_POWER = np.array(
    [[0.6, 0.6, 1.9, 0.7, 1.2], [0.8, 1.5, 1.0, 0.7, 0.8], [1.3, 1.4, 0.7, 1.4, 0.6], [2.6, 1.2, 0.6, 0.9, 0.4],
     [0.8, 1.5, 0.8, 0.6, 1.0]]
)  # fmt: skip
_NIGHT = ((0, 22), (1, 3), (2, 8), (3, 5), (2, 6), (4, 5), (1, 2), (2, 7), (3, 3), (2, 4), (4, 6), (0, 8))


def _eeg(stages: Array, rate: int, seconds: int, gain: float, rng: Rng) -> Array:
    samples = rate * seconds
    frequency = np.fft.rfftfreq(samples, 1 / rate)
    amplitude = np.tile(1 / np.sqrt(np.maximum(frequency, 0.5)), (len(stages), 1))
    varied = _BAND_POWER[np.maximum(stages, 0)] * rng.lognormal(0, 0.45, (len(stages), len(_BANDS)))
    for band, (low, high) in enumerate(_BANDS):
        inside = (frequency >= low) & (frequency < high)
        amplitude[:, inside] *= varied[:, band : band + 1]
    amplitude[:, 0] = 0
    wave = np.fft.irfft(amplitude * np.exp(2j * np.pi * rng.random(amplitude.shape)), n=samples)
    wave *= 16 * gain / wave.std(axis=1).mean()
    return (wave + rng.normal(0, 4, wave.shape)).reshape(-1)


def sleepedf(folder: Path, rng: Rng) -> list[Path]:
    """Six nights of one subject each: signals at 100 Hz beside slow channels, and hypnograms that run past them."""
    from edfio import Edf, EdfAnnotation, EdfSignal, Patient, Recording

    descriptions = ["Sleep stage W", "Sleep stage 1", "Sleep stage 2", "Sleep stage 3", "Sleep stage R"]
    seconds, rate = 30, 100
    date, time = datetime.date(1989, 4, 24), datetime.time(16, 13)
    written = []
    for subject in range(6):
        runs = [(stage, max(1, length + int(rng.integers(-2, 3)))) for stage, length in _NIGHT]
        blocks: list[tuple[str, int]] = []
        for stage, length in runs:
            if stage == 3 and length > 2:
                blocks += [("Sleep stage 3", length // 2), ("Sleep stage 4", length - length // 2)]
            else:
                blocks.append((descriptions[stage], length))
            if stage == 2 and len(blocks) == 3:
                blocks.append(("Movement time", 1))
        blocks.insert(1, ("Sleep stage ?", 1))
        stages = np.concatenate([np.full(n, _stage_of(text)) for text, n in blocks])
        gain = float(rng.lognormal(0, 0.15))
        signals = []
        for label, share in (("EEG Fpz-Cz", 1.0), ("EEG Pz-Oz", 0.8)):
            data = np.clip(_eeg(stages, rate, seconds, gain * share, rng), -190, 190)
            signals.append(
                EdfSignal(data, rate, label=label, physical_dimension="uV", physical_range=(-192, 192),
                          transducer_type="Ag-AgCl electrodes", prefiltering="HP:0.5Hz LP:100Hz [enhanced cassette BW]")
            )  # fmt: skip
        slow = np.clip(rng.normal(2, 0.5, len(stages) * seconds), -5, 5)
        signals.append(EdfSignal(slow, 1, label="EMG submental", physical_dimension="uV", physical_range=(-5, 5)))
        person = Patient(code="X", sex="F" if subject % 2 else "M", name=f"Miniature_{subject}")
        night = Recording(startdate=date, hospital_administration_code="X")
        name = f"SC4{subject:02d}1"
        psg = folder / f"{name}E0-PSG.edf"
        Edf(signals, patient=person, recording=night, starttime=time, data_record_duration=seconds).write(psg)
        blocks.append(("Sleep stage W", 4))
        blocks.append(("Sleep stage ?", 40))
        edges = np.cumsum([0, *(n for _, n in blocks)]) * seconds
        marks = [
            EdfAnnotation(float(start), float(stop - start), text)
            for (text, _), start, stop in zip(blocks, edges, edges[1:], strict=False)
        ]
        hypnogram = folder / f"{name}EC-Hypnogram.edf"
        Edf([], patient=person, recording=night, starttime=time, annotations=marks).write(hypnogram)
        written += [psg, hypnogram]
    return written


def _stage_of(description: str) -> int:
    return {"1": 1, "2": 2, "3": 3, "4": 3, "R": 4}.get(description[-1], 0)


# Intensive care

_VITALS = ("HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp")
_USUAL = np.array([84.0, 97.2, 36.9, 122.0, 82.0, 64.0, 18.0])
_BETWEEN = np.array([11.0, 1.2, 0.3, 13.0, 8.0, 7.0, 2.5])
_WITHIN = np.array([6.0, 1.2, 0.25, 9.0, 6.0, 5.0, 2.5])
_SEPSIS = np.array([15.0, -1.4, 0.8, -16.0, -11.0, -7.0, 4.5])
_DIGITS = (0, 0, 2, 0, 1, 0, 0)


def _vitals(hours: int, onset: int | None, rng: Rng) -> Array:
    """Hourly vital signs (hours, 7): slow fluctuations around a patient's own level, drifting up to the onset."""
    level = _USUAL + _BETWEEN * rng.normal(size=7)
    noise = rng.normal(size=(hours, 7))
    slow = np.empty_like(noise)
    state = rng.normal(size=7)
    for hour in range(hours):
        state = 0.8 * state + 0.6 * noise[hour]
        slow[hour] = state
    values: Array = level + _WITHIN * slow
    if onset is not None:
        ramp = np.clip((np.arange(hours) - (onset - 10)) / 10, 0, 1)
        values += ramp[:, None] * _SEPSIS * rng.uniform(0.2, 1.1)
    values[:, 1] = np.minimum(values[:, 1], 100)
    values[:, 2:] = np.maximum(values[:, 2:], 5)
    return values


PSV_HEADER = (
    "HR|O2Sat|Temp|SBP|MAP|DBP|Resp|EtCO2|BaseExcess|HCO3|FiO2|pH|PaCO2|SaO2|AST|BUN|Alkalinephos|Calcium|"
    "Chloride|Creatinine|Bilirubin_direct|Glucose|Lactate|Magnesium|Phosphate|Potassium|Bilirubin_total|"
    "TroponinI|Hct|Hgb|PTT|WBC|Fibrinogen|Platelets|Age|Gender|Unit1|Unit2|HospAdmTime|ICULOS|SepsisLabel"
)


def challenge2019(folder: Path, rng: Rng) -> list[Path]:
    """`training_setA.zip` and `training_setB.zip` with 60 records each, one in five septic."""
    written = []
    for letter, first in (("A", 1), ("B", 100001)):
        observed = np.array([0.92, 0.88, 0.34, 0.85, 0.90, 0.52 if letter == "A" else 0.85, 0.90])
        members = {}
        for number in range(first, first + 60):
            septic = rng.random() < 0.2 or number % 30 == 1
            hours = int(rng.integers(20, 56))
            onset = hours - 4 if septic else None
            values = _vitals(hours, onset, rng)
            values[rng.random(values.shape) > observed] = np.nan
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 2] = 20.9
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 6] = 100
            if letter == "A" and rng.random() < 0.3:
                values[:, 5] = np.nan
            start = 1 if rng.random() < 0.85 else int(rng.integers(2, 9))
            labelled = hours if onset is None else onset - 6
            age, gender = round(float(rng.uniform(20, 89)), 2), int(rng.integers(2))
            admitted = round(-float(rng.exponential(20)), 2)
            lines = [PSV_HEADER]
            for hour in range(hours):
                vitals = [_number(v, d) for v, d in zip(values[hour], _DIGITS, strict=True)]
                rest = [
                    str(age),
                    str(gender),
                    "NaN",
                    "NaN",
                    str(admitted),
                    str(start + hour),
                    str(int(hour >= labelled)),
                ]
                lines.append("|".join([*vitals, *["NaN"] * (PSV_HEADER.count("|") - 13), *rest]))
            members[f"training_set{letter}/p{number:06d}.psv"] = ("\n".join(lines) + "\n").encode()
        path = folder / f"training_set{letter}.zip"
        _write_zip(path, members)
        written.append(path)
    return written


def _number(value: float, digits: int) -> str:
    return "NaN" if np.isnan(value) else f"{value:.{digits}f}"


MIMIC_COLUMNS = {
    "hosp/patients": "subject_id gender anchor_age anchor_year anchor_year_group dod",
    "icu/icustays": "subject_id hadm_id stay_id first_careunit last_careunit intime outtime los",
    "icu/chartevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valuenum valueuom "
    "warning",
    "icu/inputevents": "subject_id hadm_id stay_id caregiver_id starttime endtime storetime itemid amount amountuom "
    "rate rateuom orderid linkorderid ordercategoryname secondaryordercategoryname ordercomponenttypedescription "
    "ordercategorydescription patientweight totalamount totalamountuom isopenbag continueinnextdept statusdescription "
    "originalamount originalrate",
    "icu/outputevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valueuom",
    "hosp/labevents": "labevent_id subject_id hadm_id specimen_id itemid order_provider_id charttime storetime value "
    "valuenum valueuom ref_range_lower ref_range_upper flag priority comments",
    "hosp/microbiologyevents": "microevent_id subject_id hadm_id micro_specimen_id order_provider_id chartdate "
    "charttime spec_itemid spec_type_desc test_seq storedate storetime test_itemid test_name org_itemid org_name "
    "isolate_num quantity ab_itemid ab_name dilution_text dilution_comparison dilution_value interpretation comments",
    "hosp/prescriptions": "subject_id hadm_id pharmacy_id poe_id poe_seq order_provider_id starttime stoptime "
    "drug_type drug formulary_drug_cd gsn ndc prod_strength form_rx dose_val_rx dose_unit_rx form_val_disp "
    "form_unit_disp doses_per_24_hrs route",
}


def write_mimic_tables(folder: Path, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Path]:
    """Write MIMIC-IV tables as `<folder>/<table>.csv.gz` with the columns of 3.1; cells that a row leaves out are empty.

    rows: by table name (a key of MIMIC_COLUMNS); a table without rows has its header alone.
    """
    written = []
    for table, columns in MIMIC_COLUMNS.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, columns.split(), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows.get(table, ()))
        path = folder / f"{table}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=6, mtime=0))
        written.append(path)
    return written


_CHART_ITEMS = {
    "HR": 220045, "O2Sat": 220277, "SBP": 220179, "MAP": 220181, "DBP": 220180, "Resp": 220210, "Temp": 223761
}  # fmt: skip
_CHARTED = {"HR": 0.95, "O2Sat": 0.92, "SBP": 0.9, "MAP": 0.9, "DBP": 0.9, "Resp": 0.93, "Temp": 0.35}


def mimic_iv(folder: Path, rng: Rng) -> list[Path]:
    """Eighty ICU stays of seventy-four patients, about half with an onset of sepsis; one is too short to keep."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in MIMIC_COLUMNS}
    for number in range(80):
        again = number >= 74
        subject = 10_000_000 + 37 * (number - 74 if again else number)
        keys = {"subject_id": subject, "hadm_id": 20_000_000 + 41 * number, "stay_id": 30_000_000 + 43 * number}
        start = datetime.datetime(2150, 1, 1, 7, 20) + datetime.timedelta(days=30 * number + (4000 if again else 0))
        hours = 6 if number == 5 else int(rng.integers(30, 80))
        septic = hours > 20 and (number % 2 == 0)
        onset = int(rng.integers(14, max(hours - 8, 16))) if septic else None

        def at(hour: float, start: datetime.datetime = start) -> str:
            return f"{start + datetime.timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}"

        if not again:
            rows["hosp/patients"].append(
                {"subject_id": subject, "gender": "FM"[number % 2], "anchor_age": int(rng.integers(19, 91)),
                 "anchor_year": start.year, "anchor_year_group": "2011 - 2013"}
            )  # fmt: skip
        unit = "Medical Intensive Care Unit (MICU)"
        rows["icu/icustays"].append(
            {**keys, "first_careunit": unit, "last_careunit": unit, "intime": at(0), "outtime": at(hours - 0.3),
             "los": round((hours - 0.3) / 24, 5)}
        )  # fmt: skip
        _chart(rows, keys, at, _vitals(hours, onset, rng), rng)
        _laboratory(rows, keys, at, hours, onset, rng)
        _infection(rows, keys, at, hours, onset, rng)
    return write_mimic_tables(folder, rows)


def _chart(
    rows: dict[str, list[dict[str, Any]]], keys: dict[str, int], at: Callable[[float], str], values: Array, rng: Rng
) -> None:
    """Vital signs, coma scale and urine of a stay, with two values no body has and readings between the hours."""
    for hour, hourly in enumerate(values):
        for name, value in zip(_VITALS, hourly, strict=True):
            if rng.random() > _CHARTED[name]:
                continue
            if rng.random() < 0.002:
                value = 9999.0
            if name == "Temp" and value < 100:
                value = value * 9 / 5 + 32
            charted = {"itemid": _CHART_ITEMS[name], "value": f"{value:.1f}", "valuenum": f"{value:.1f}", "warning": 0}
            when = at(hour + rng.random() * 0.6)
            rows["icu/chartevents"].append({**keys, "charttime": when, "storetime": when, **charted})
        if hour % 4 == 0:
            for item, best in ((220739, 4), (223900, 5), (223901, 6)):
                rows["icu/chartevents"].append(
                    {**keys, "charttime": at(hour), "storetime": at(hour), "itemid": item, "value": "",
                     "valuenum": best, "warning": 0}
                )  # fmt: skip
            rows["icu/outputevents"].append(
                {**keys, "charttime": at(hour + 0.5), "storetime": at(hour + 0.6), "itemid": 226559,
                 "value": int(rng.integers(160, 420)), "valueuom": "mL"}
            )  # fmt: skip


def _laboratory(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    hours: int,
    onset: int | None,
    rng: Rng,
) -> None:
    """Laboratory values every eight hours, worse from a septic onset on, and noradrenaline for some."""
    for hour in range(1, hours, 8):
        ill = onset is not None and hour >= onset - 2
        for item, value in (
            (51265, rng.uniform(60, 95) if ill else rng.uniform(160, 320)),
            (50885, rng.uniform(2.1, 4) if ill else rng.uniform(0.3, 1.1)),
            (50912, rng.uniform(1.3, 1.9) if ill else rng.uniform(0.6, 1.1)),
        ):
            rows["hosp/labevents"].append(
                {"labevent_id": len(rows["hosp/labevents"]) + 1, "subject_id": keys["subject_id"],
                 "hadm_id": keys["hadm_id"] if rng.random() < 0.9 else "",
                 "specimen_id": len(rows["hosp/labevents"]) // 3, "itemid": item, "charttime": at(hour),
                 "storetime": at(hour + 1), "value": f"{value:.1f}",
                 "valuenum": f"{value:.1f}"}
            )  # fmt: skip
    if onset is not None and rng.random() < 0.5:
        rows["icu/inputevents"].append(
            {**keys, "starttime": at(onset + 1), "endtime": at(onset + 6), "storetime": at(onset + 1), "itemid": 221906,
             "amount": 4, "amountuom": "mg", "rate": 0.08, "rateuom": "mcg/kg/min",
             "orderid": len(rows["icu/inputevents"]), "statusdescription": "FinishedRunning"}
        )  # fmt: skip


def _infection(
    rows: dict[str, list[dict[str, Any]]],
    keys: dict[str, int],
    at: Callable[[float], str],
    hours: int,
    onset: int | None,
    rng: Rng,
) -> None:
    """Several cultures and antibiotics around an onset; for others only one of the two; for all an eye ointment."""

    def culture(hour: float, timed: bool) -> None:
        rows["hosp/microbiologyevents"].append(
            {"microevent_id": len(rows["hosp/microbiologyevents"]) + 1, "subject_id": keys["subject_id"],
             "hadm_id": keys["hadm_id"], "micro_specimen_id": len(rows["hosp/microbiologyevents"]),
             "chartdate": at(hour)[:10] + " 00:00:00", "charttime": at(hour) if timed else "", "spec_itemid": 70012,
             "spec_type_desc": "BLOOD CULTURE", "test_seq": 1, "test_name": "Blood Culture, Routine"}
        )  # fmt: skip

    def drug(hour: float, name: str, route: str) -> None:
        rows["hosp/prescriptions"].append(
            {"subject_id": keys["subject_id"], "hadm_id": keys["hadm_id"],
             "pharmacy_id": len(rows["hosp/prescriptions"]), "starttime": at(hour), "stoptime": at(hour + 72),
             "drug_type": "MAIN", "drug": name, "route": route}
        )  # fmt: skip

    if onset is not None:
        culture(onset, timed=True)
        culture(onset + 5, timed=True)
        drug(onset + 2, "Vancomycin", "IV")
        drug(onset + 3, "Piperacillin-Tazobactam", "IV")
        drug(onset + 20, "Ciprofloxacin HCl", "PO/NG")
    elif rng.random() < 0.4:
        culture(hours / 2, timed=rng.random() < 0.5)
    elif rng.random() < 0.4:
        drug(hours / 2, "CefazoLIN", "IV")
    drug(2, "Erythromycin 0.5% Ophth Oint", "BOTH EYES")
    drug(1, "Acetaminophen", "PO/NG")


GENERATORS: dict[str, Callable[[Path, Rng], list[Path]]] = {
    "pathmnist": pathmnist,
    "cifar10": cifar10,
    "sleepedf": sleepedf,
    "mimic-iv": mimic_iv,
    "challenge2019": challenge2019,
}
