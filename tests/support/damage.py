"""Strategies of damaged and malicious input: bytes, texts, and the members of archives."""

import io
import stat
import struct
import zipfile
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
NAMES = (
    "../escaped", "../../escaped", "/tmp/escaped", "a/../../escaped", "..\\escaped", "C:\\escaped", "", ".", "..", "a\0b",
    "x" * 300,
    "\u202egnp.exe", "\x1b[2J", "con/aux", "a//b", "./a",
)  # fmt: skip
"""Names of members that lead outside, or that no file should have."""


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


@st.composite
def altered_members(draw: st.DrawFn, members: Mapping[str, bytes]) -> list[tuple[str, bytes, int]]:
    """Return members as (name, content, mode): left out, doubled, renamed, exchanged, made links, damaged or added."""
    result = [(name, content, stat.S_IFREG) for name, content in members.items()]
    kinds = ("drop", "double", "rename", "exchange", "link", "special", "damage", "add", "empty", "folder")
    for _ in range(draw(st.integers(1, 3))):
        if not result:
            break
        at = draw(st.integers(0, len(result) - 1))
        name, content, mode = result[at]
        kind = draw(st.sampled_from(kinds))
        if kind == "drop":
            del result[at]
        elif kind == "double":
            result.insert(draw(st.integers(0, len(result))), (name, draw(st.sampled_from((content, b"other"))), mode))
        elif kind == "rename":
            other = draw(
                st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES).map(lambda n, name=name: f"{n}/{name}"))
            )
            result[at] = (draw(st.sampled_from((other, name.swapcase(), f"{name}/", f" {name}"))), content, mode)
        elif kind == "exchange":
            result[at] = (name, draw(st.sampled_from(list(members.values()))), mode)
        elif kind in ("link", "special"):
            forms = (stat.S_IFLNK,) if kind == "link" else (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK)
            result[at] = (name, b"/etc/passwd", draw(st.sampled_from(forms)))
        elif kind == "damage":
            result[at] = (name, draw(damaged(content)), mode)
        elif kind == "add":
            result.append((draw(st.sampled_from(NAMES)), b"added", mode))
        elif kind == "empty":
            result[at] = (name, b"", mode)
        else:
            result[at] = (name, b"", stat.S_IFDIR)
    return result


def zipped(members: list[tuple[str, bytes, int]]) -> bytes:
    """Return a zip of members, links and special files among them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo("replaced", date_time=(2020, 1, 1, 0, 0, 0))
            info.filename, info.external_attr, info.create_system = name, mode << 16, 3
            archive.writestr(info, content, compress_type=zipfile.ZIP_DEFLATED)
    return packed.getvalue()


@st.composite
def lying_zip(draw: st.DrawFn, members: Mapping[str, bytes]) -> bytes:
    """Return a zip whose directory or local headers state other sizes, methods, flags or offsets than there are."""
    data = bytearray(zipped([(name, content, stat.S_IFREG) for name, content in members.items()]))
    places = [i for i in range(len(data) - 4) if data[i : i + 4] in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")]
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.sampled_from(places))
        length = {b"PK\x01\x02": 46, b"PK\x03\x04": 30, b"PK\x05\x06": 22}[bytes(data[at : at + 4])]
        offset = draw(st.integers(4, length - 2))
        number = draw(st.sampled_from((0, 1, 8, 9, 12, 14, 99, 2**16 - 1, 2**31, 2**32 - 1)))
        form = draw(st.sampled_from(("<H", "<I")))
        data[at + offset : at + offset + struct.calcsize(form)] = struct.pack(
            form, number % 2 ** (8 * struct.calcsize(form))
        )
    return bytes(data)
