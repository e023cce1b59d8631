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


INTEGERS = tuple(number.to_bytes(8, "little") for number in (1, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1))
"""Bytes in the place of a length or an address."""


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, head: int = 256) -> bytes:
    """Return the bytes after one to four accidents, two thirds of them in the first `head` or the last 128 bytes."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        end = len(data)
        # Not `one_of`: it joins equal strategies where a cache still has the first, so that draws would depend on earlier tests.
        low, high = draw(st.sampled_from(((0, min(head, end)), (max(0, end - 128), end), (0, end))))
        at, length = draw(st.integers(low, high)), draw(st.sampled_from((0, 1, 2, 4, 16, 128, 1024, len(whole))))
        kind = draw(st.sampled_from(("nothing", "zeros", "twice", "text", "integer", "bytes")))
        instead = {"nothing": b"", "zeros": bytes(min(length, 1024)), "twice": 2 * data[at : at + length]}
        if kind == "text":
            instead[kind] = draw(st.sampled_from(TEXTS)).encode("utf-8", "surrogateescape")
        elif kind == "integer":
            instead[kind] = draw(st.sampled_from(INTEGERS))
        elif kind == "bytes":
            instead[kind] = draw(st.binary(min_size=1, max_size=8))
        data[at : at + length] = instead[kind]
    return bytes(data)


def some_damaged(files: Mapping[str, bytes]) -> SearchStrategy[dict[str, bytes]]:
    """Return files of which one is damaged."""
    return st.sampled_from(sorted(files)).flatmap(lambda n: damaged(files[n]).map(lambda d: {**files, n: d}))
