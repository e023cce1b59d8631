"""Labels and groups as people write them: blanks around them, texts that stand for a missing value, and the order of classes."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError

_UNSEEN = re.compile(r"[\u00ad\u180e\u200b-\u200f\u2060\ufeff]")
_MISSING = re.compile(
    r"\W*|-?nan|n\W?a\W?|(pd\.|<)na>?|nat|\W?null\W?|none|nil|\\n|missing|undefined|not a(vailable|pplicable)|#n/?a.*|"
    r"#\w+(/0)?[!?]|-?1\.#(ind|qnan)",
    re.IGNORECASE,
)
"""Also what has no letter and no digit, as `.` of SAS; errors of a spreadsheet, as `#VALUE!`; and `\\N` of databases."""


def trimmed(texts: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Return texts (N,) without blanks around them and unseen characters, blanks within and accented letters as one character."""
    found, rows = np.unique(np.asarray(texts, dtype=str), return_inverse=True)
    seen = [_UNSEEN.sub("", unicodedata.normalize("NFC", text)) for text in found]
    return np.array([" ".join(text.split()) for text in seen], dtype=str)[rows]


def missing(texts: npt.NDArray[np.str_], classes: Sequence[Any] | None = None) -> npt.NDArray[np.bool_]:
    """Return (N,) whether each trimmed text stands for a missing value; one that `classes` names does not."""
    named = {str(name) for name in classes or ()}
    return np.isin(texts, [text for text in np.unique(texts) if _MISSING.fullmatch(text) and text not in named])


def refuse_odd_texts(texts: npt.NDArray[np.str_], where: str, classes: Sequence[Any] | None) -> None:
    """Raise InputError, naming where, for a text that cannot be printed, and two that are one number (1, 1.0) or word (p1, P1).

    Those that `classes` names are meant as they stand: beats of a heart are A and a, for instance.
    """
    named, texts_of = {str(name) for name in classes or ()}, dict[Decimal | str, str]()
    for text in np.unique(texts).tolist():
        if not text.isprintable():
            raise InputError(f"{where}: found the text '{text}', expected one that can be printed. Correct it.")
        for meaning in (Decimal, str.casefold):
            with suppress(InvalidOperation, TypeError):  # no number, or one that cannot be looked up, such as sNaN
                if (first := texts_of.setdefault(meaning(text), text)) != text and not {first, text} <= named:
                    raise InputError(
                        f"{where}: found {first} and {text}, expected one way to write it. Correct it, or rename one "
                        "(`classes` of the entry may name both)."
                    )


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
        raise InputError(
            f"found the classes {', '.join(names)} and the positive class {positive}, expected it to be one of two. Correct or "
            "remove `positive` of the entry."
        )
    return sorted(names, key=str(positive).__eq__)
