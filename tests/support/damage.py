"""Strategies of damaged and malicious input: bytes, texts and names."""

from collections.abc import Mapping

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

NUMBERS = (
    "", "0", "-1", "1", "7", "256", "65536", "99999999", "-9999999", "1e308", "-1e308", "1e999", "1e-320", "nan", "inf",
    "-inf", "NaN",
    "0x10", "1_0", "1,5", "--1", "+", ".", "1.5", "9" * 30, "\u0663", "True", "None",
)  # fmt: skip
"""Texts in the place of a number."""
TEXTS = (
    *NUMBERS, "a", "\0", "\n", "\r\n", '"', "'", "|", ";", ",", "\t", "\ufeff", "\u202e", "\x1b[2J", "\udc80", "\xff",
    "=cmd()", "%s%n", "{0}",
    "../..", "/etc/passwd", "' OR 1=1 --", "x" * 5000,
)  # fmt: skip
"""Texts in the place of a text."""


def raw(text: str) -> bytes:
    """Return a text as UTF-8 where it can be, lone surrogates as the bytes that they stand for."""
    return text.encode("utf-8", "surrogateescape")


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, head: int = 256) -> bytes:
    """Return the bytes after one to four accidents, two thirds of them in the first `head` or the last 128 bytes."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        end = len(data)
        # Not `one_of`: it joins equal strategies where a cache still has the first, so that draws would depend on earlier tests.
        low, high = draw(st.sampled_from(((0, min(head, end)), (max(0, end - 128), end), (0, end))))
        at = draw(st.integers(low, high))
        kind = draw(st.sampled_from(("flip", "set", "number", "cut", "delete", "insert", "repeat", "zero", "text")))
        if kind == "cut":
            del data[at:]
        elif kind == "flip" and at < end:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set" and at < end:
            data[at] = draw(st.integers(0, 255))
        elif kind == "number":
            number = draw(st.sampled_from((0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)))
            width, order = draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from(("little", "big")))
            data[at : at + width] = (number % 2 ** (8 * width)).to_bytes(width, order)  # type: ignore[arg-type]
        elif kind == "text":
            text = raw(draw(st.sampled_from(TEXTS)))
            data[at : at + len(text)] = text
        else:
            length = draw(st.sampled_from((1, 2, 4, 16, 128, 1024)))
            if kind == "delete":
                del data[at : at + length]
            elif kind == "zero":
                data[at : at + length] = bytes(len(data[at : at + length]))
            elif kind == "repeat":
                data[at:at] = data[at : at + length] * draw(st.integers(1, 3))
            else:
                data[at:at] = draw(st.binary(min_size=1, max_size=8))
    return bytes(data)


def some_damaged(files: Mapping[str, bytes], head: int = 256) -> SearchStrategy[dict[str, bytes]]:
    """Return files of which one is damaged."""
    return st.sampled_from(sorted(files)).flatmap(lambda n: damaged(files[n], head).map(lambda d: {**files, n: d}))
