"""The samples of a user's own data: labels and groups as people write them, what is wrong with a value and where, and splits."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clailearn.errors import InputError
from replication.datasets.prepared import SPLITS, require_classes

Indices = npt.NDArray[np.int64]
Texts = npt.NDArray[np.str_]

_UNSEEN = re.compile(r"[\u00ad\u180e\u200b-\u200f\u2060\ufeff]")
_MISSING = re.compile(
    r"\W*|-?nan|n\W?a\W?|(pd\.|<)na>?|nat|\W?null\W?|none|nil|\\n|missing|undefined|not a(vailable|pplicable)|#n/?a.*|"
    r"#\w+(/0)?[!?]|-?1\.#(ind|qnan)",
    re.IGNORECASE,
)
"""Also what has no letter and no digit, as `.` of SAS; errors of a spreadsheet, as `#VALUE!`; and `\\N` of databases."""


@dataclass(frozen=True)
class Column:
    """The column of a table, or the array of a file, that has a value for each sample.

    name: of the column, for messages. locate: returns in words where the value of a sample, counted from 0, is.
    """

    path: Path
    name: str
    locate: Callable[[int], str] = "at sample {}, counted from 0".format

    def refuse(self, bad: npt.ArrayLike, found: Any, expected: str) -> None:
        """Raise InputError for the first value (N,) that is `bad`. found: a text, or the values (N,)."""
        samples = np.flatnonzero(bad)
        if not samples.size:
            return
        value = found if isinstance(found, str) else f"'{np.asarray(found)[samples[0]]}'"
        at = self.locate(int(samples[0])) + (f", and in {len(samples) - 1} more" if len(samples) > 1 else "")
        raise InputError(f"{self.path}: found {value} in {self.name} {at}, expected {expected}. Correct or remove it.")

    def refuse_infinite(self, values: npt.NDArray[Any], found: Any, remedy: str = "") -> None:
        """Raise InputError for the first of the values (N,) that is no finite number which float32 can hold."""
        bad = ~(np.abs(values) <= np.finfo(np.float32).max)
        self.refuse(bad, found, f"a finite number that float32 can hold{remedy}")

    def texts(self, values: npt.ArrayLike, classes: Sequence[Any] | None = None) -> Texts:
        """Return texts (N,), trimmed; raise InputError for one that is missing or odd (`_refuse_odd`).

        classes: names that are meant as they stand, also where others write them for a missing value.
        """
        named = {str(name) for name in classes or ()}
        texts = trimmed(values)
        self._refuse_odd(texts, named)
        lacking = [text for text in np.unique(texts) if _MISSING.fullmatch(text) and text not in named]
        self.refuse(np.isin(texts, lacking), texts, "a value (`classes` of the entry may name it, if it is a class)")
        return texts

    def _refuse_odd(self, texts: Texts, named: set[str]) -> None:
        """Raise InputError for a text that cannot be printed, and two that are one number (1, 1.0) or word (p1, P1).

        Those that are named are meant as they stand: beats of a heart are A and a, for instance.
        """
        first_of, what = dict[Decimal | str, str](), f"{self.path}: {self.name}: found"
        for text in np.unique(texts).tolist():
            if not text.isprintable():
                raise InputError(f"{what} the text '{text}', expected one that can be printed. Correct it.")
            for meaning in (Decimal, str.casefold) if "_" not in text else (str.casefold,):  # To Python 1_0 is ten.
                with suppress(InvalidOperation, TypeError):  # no number, or one that cannot be looked up, such as sNaN
                    if (first := first_of.setdefault(meaning(text), text)) != text and not {first, text} <= named:
                        remedy = "Correct it, or rename one (`classes` of the entry may name both)."
                        raise InputError(f"{what} {first} and {text}, expected one way to write it. {remedy}")

    def values(self, values: npt.NDArray[Any], samples: int, classes: Sequence[Any] | None = None) -> npt.NDArray[Any]:
        """Return whole numbers or texts (N,), texts as `texts` has them; raise InputError unless each sample has one."""
        if values.shape != (samples,) or values.dtype.kind not in "biuU":
            found = f"found {self.name} as {values.dtype} {values.shape} beside {samples} samples"
            raise InputError(f"{self.path}: {found}, expected a whole number or a text for each. Correct the array.")
        return self.texts(values, classes) if values.dtype.kind == "U" else values

    def class_indices(
        self, values: npt.NDArray[Any], classes: Sequence[Any] | None, positive: str | int | None
    ) -> tuple[list[str], Indices]:
        """Return the classes, `positive` last, and the class index of each value (N,); raise InputError for another value.

        values: names of classes; or numbers, which count the classes from 0 where they are not all names. classes: their names
        in order; None for those found.
        """
        texts = values.astype(str)
        names = in_order(np.unique(texts).tolist()) if classes is None else trimmed(classes).tolist()
        if len(set(names)) < len(names):
            raise InputError(f"classes: found {', '.join(names)}, expected each name once. Correct the entry.")
        known, also = names, ""
        if values.dtype.kind != "U" and not set(texts.tolist()) <= set(names):
            texts = values.astype(np.int64).astype(str)  # of truth values, too
            if not set(texts.tolist()) <= set(names):
                known, also = [str(k) for k in range(len(names))], f", by name or by number from 0 to {len(names) - 1}"
        y = pd.Index(known).get_indexer(pd.Index(texts)).astype(np.int64)
        self.refuse(y < 0, texts, f"one of {', '.join(names)}{also}, as `classes` has them")
        ordered = positive_last(names, positive)
        return ordered, y if ordered == names else 1 - y


def trimmed(texts: npt.ArrayLike) -> Texts:
    """Return texts (N,) without blanks around them and unseen characters, blanks within and accented letters as one character."""
    found, rows = np.unique(np.asarray(texts, dtype=str), return_inverse=True)
    seen = [_UNSEEN.sub("", unicodedata.normalize("NFC", text)) for text in found]
    return np.array([" ".join(text.split()) for text in seen], dtype=str)[rows]


def in_order(names: Iterable[str]) -> list[str]:
    """Return names sorted, numbers as numbers and before texts."""

    def key(name: str) -> tuple[bool, float, str]:
        with suppress(ValueError):
            if math.isfinite(number := float(name)):
                return False, number, name
        return True, 0.0, name

    return sorted(names, key=key)


def positive_last(names: Sequence[str], positive: str | int | None) -> list[str]:
    """Return class names with `positive` last, if it is given; raise InputError unless it is one of two classes."""
    if positive is None:
        return list(names)
    if len(names) != 2 or str(positive) not in names:
        found = f"found the classes {', '.join(names)} and the positive class {positive}"
        raise InputError(f"{found}, expected it to be one of two. Correct or remove `positive` of the entry.")
    return sorted(names, key=str(positive).__eq__)


def stratified_validation(
    y: Indices, share: float, seed: int, classes: Sequence[str], key: str = "validation_share"
) -> tuple[Indices, Indices]:
    """Return ascending indices for training and for validation, with `share` of each class of y (N,), at least one sample.

    key: the setting of the share. Raises InputError, naming key and class, for a class of too few samples.
    """
    from sklearn.model_selection import train_test_split

    parts: list[Indices] = []
    with suppress(ValueError):  # of scikit-learn, for too few samples
        parts = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    counts = np.bincount(y, minlength=len(classes))
    if not parts or any(len(np.unique(y[part])) < len(classes) for part in parts):
        found = f"found {counts.min()} of {len(y)} samples in class '{classes[int(counts.argmin())]}'"
        expected = f"expected enough for a share of {share:g} with some on either side"
        raise InputError(f"{key}: {found}, {expected}. Change it, or provide more.")
    return np.sort(parts[0]), np.sort(parts[1])


def rows_by_class(y: Indices, classes: Sequence[str], settings: Mapping[str, Any], seed: int) -> list[Indices]:
    """Return the ascending rows for each of SPLITS, the same shares of each class of y (N,); raise as `stratified_validation`."""
    rest, test = stratified_validation(y, settings["test_share"], seed, classes, "test_share")
    train, val = stratified_validation(y[rest], settings["validation_share"], seed, classes)
    return [rest[train], rest[val], test]


def group_split(groups: npt.NDArray[Any], settings: Mapping[str, Any], seed: int, unit: str) -> dict[str, Any]:
    """Divide groups (N,), such as subjects, into SPLITS, arrays in ascending order, with at least one group in each.

    Of them `test_share` are for test, and `validation_share` of the others for validation. unit: what a message calls the
    groups. Raises InputError for fewer than three groups.
    """
    unique = np.unique(groups)
    if len(unique) < 3:
        raise InputError(f"found {len(unique)} {unit}, expected at least 3: one for each split. Provide more of them.")
    order = np.random.default_rng(seed).permutation(unique)
    n_test = min(max(1, round(settings["test_share"] * len(order))), len(order) - 2)
    n_val = min(max(1, round(settings["validation_share"] * (len(order) - n_test))), len(order) - n_test - 1)
    test, val, train = np.split(order, [n_test, n_test + n_val])
    return {"train": np.sort(train), "val": np.sort(val), "test": np.sort(test)}


def rows_by_group(
    groups: Indices, y: Indices, classes: Sequence[str], settings: Mapping[str, Any], seed: int, unit: str
) -> list[Indices]:
    """Return the ascending rows of `group_split` for each of SPLITS; raise InputError where one lacks a class."""
    parts = group_split(groups, settings, seed, unit)
    rows = [np.flatnonzero(np.isin(groups, parts[split])) for split in SPLITS]
    named = {f"the {len(parts[split])} {unit} for {split}": part for split, part in zip(SPLITS, rows, strict=True)}
    advice = "Change test_share or validation_share of the entry, or split_seed, or leave the class out."
    require_classes(y, named, classes, advice)
    return rows


def division(settings: Mapping[str, Any], unit: str, seed: int) -> str:
    """Return in words how samples are divided. unit: what the shares are of."""
    test, validation = settings["test_share"], settings["validation_share"]
    return f"{test:g} of {unit} for test, {validation:g} of the others for validation (seed {seed})"
