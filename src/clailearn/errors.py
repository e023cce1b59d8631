"""Errors that a user can correct."""

LONGEST_MESSAGE = 4000
"""Characters of a message at most; a file decides how long the names in it are."""


def legible(text: str) -> str:
    """Return a text of one line, with characters that cannot be printed, a line's end among them, as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class InputError(ValueError):
    """Bad input from outside: a setting, a file, a row.

    The message names the key, file or row, the value found, the value expected and the remedy. Scripts print it without a
    traceback. What it quotes of a file may be anything: characters that cannot be printed appear as escapes, and a message
    that is too long loses its middle.
    """

    def __init__(self, message: str) -> None:
        text = "\n".join(map(legible, message.split("\n")))
        if len(text) > LONGEST_MESSAGE:
            half = (LONGEST_MESSAGE - len(" ... ")) // 2
            text = f"{text[:half]} ... {text[-half:]}"
        super().__init__(text)


def kind_of(content: bytes) -> str:
    """Return in words what a file is that begins with these bytes, for a message about one that cannot be read."""
    if not content:
        return "an empty file"
    packed = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7-Zip", b"Rar!": "RAR"}
    kinds = {b"<": "an HTML page", b"PK\3\4": "a zip, or a workbook", b"\xd0\xcf\x11\xe0": "an old workbook"}
    kinds |= {start: f"a file packed by {name}" for start, name in packed.items()}
    known = (kind for start, kind in kinds.items() if content.lstrip().startswith(start))
    return next(known, f"a file that begins with {content[:8]!r}")


class DivergenceError(InputError):
    """Training has left the finite numbers, or loss or embeddings have exploded: the settings do not suit the data."""
