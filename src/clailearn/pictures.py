"""Which files of a folder are read, and how a picture becomes an array: one rule for training data and for predictions."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clailearn.errors import InputError, kind_of
from clailearn.limits import LARGEST_FILE, check_file

SUFFIXES = {
    ".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".ppm": "PPM", ".pgm": "PPM", ".bmp": "BMP", ".tif": "TIFF", ".tiff": "TIFF",
    ".webp": "WEBP",
}  # fmt: skip
"""Formats by the endings that torchvision's `ImageFolder` reads. Of the other formats of Pillow some start a program."""
SYSTEM_FOLDERS = (
    "__MACOSX", "__pycache__", "@eaDir", "#recycle", "@Recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found",
)  # fmt: skip
"""What systems put beside a user's files."""


def is_own(name: str) -> bool:
    """Return whether a file or folder of this name is a user's own: not hidden, and none of a system."""
    return not name.startswith(".") and name not in SYSTEM_FOLDERS


def files_below(folder: Path) -> list[Path]:
    """Return the user's own files at any depth of a folder, sorted.

    Links are followed. Raises InputError, naming it, for a link in a circle, and a folder that must not be read.
    """
    found = []

    def refuse(error: OSError) -> None:
        raise InputError(
            f"{error.filename}: cannot be listed ({error.strerror}), expected a folder to read. Correct it."
        )

    for root, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = filter(is_own, folders)
        for path in (Path(root, name) for name in folders):
            if path.is_symlink() and any(map(path.samefile, path.absolute().parents)):
                raise InputError(f"{path}: found a link to a folder that holds it, expected no circle. Remove it.")
        found += [Path(root, name) for name in filter(is_own, names)]
    return sorted(found)


def sizes_of(files: Iterable[Path]) -> set[tuple[int, int]]:
    """Return the heights and widths of pictures but those that are damaged, which are named when their pixels are read."""
    from PIL import Image

    sizes = set()
    for file in filter(Path.is_file, files):
        with contextlib.suppress(Exception), Image.open(file, formats=sorted(set(SUFFIXES.values()))) as image:
            sizes.add((image.height, image.width))
    return sizes


def read_picture(
    file: Path, size: tuple[int, int], channels: int, name: str, advice: str, resize: bool = False
) -> NDArray[np.uint8]:
    """Return the pixels of a picture, uint8 (height, width, channels), as stored: not turned.

    Grey levels of 16 bits are scaled to 8.

    Args:
        size: expected height and width.
        channels: 1 for grey levels, 3 for RGB; colours of another kind are converted.
        name: of the file in messages.
        advice: what to do about a picture that does not fit, as the end of a message.
        resize: whether a picture of another size is scaled to cover this one, and its middle kept.

    Raises:
        InputError: the picture is damaged or no file, has another size, or grey levels of more bits or as fractions.
    """
    from PIL import Image, ImageOps

    height, width = size
    try:
        check_file(file, LARGEST_FILE)
        with Image.open(file, formats=sorted(set(SUFFIXES.values()))) as image:
            if image.size != (width, height) and not resize:
                raise InputError(
                    f"{name}: found an image of {image.size[0]} x {image.size[1]} pixels, expected {width} x {height}. {advice}"
                )
            shown: Image.Image = image
            tags = getattr(image, "tag_v2", {})  # of TIFF: Pillow knows neither a sign nor white as 0 in these modes
            if (image.mode == "L" and 2 in tags.get(339, ())) or (image.mode.startswith("I;16") and tags.get(262) == 0):
                raise InputError(
                    f"{name}: found grey levels with a sign, or with white as 0, expected black as 0. {advice}"
                )
            if image.mode.startswith("I;16") or (image.mode, image.format) == ("I", "PPM"):  # else cut off at 255
                white = 2 ** tags.get(258, (16,))[0] - 1  # some TIFF have 12 bits
                shown = Image.fromarray(np.rint(np.asarray(image) / (white / 255)).astype(np.uint8))
            elif image.mode in ("I", "F"):
                raise InputError(
                    f"{name}: found grey levels of 32 bits or with a sign, expected 8 or 16 bits. {advice}"
                )
            shown = shown.convert("L" if channels == 1 else "RGB")
            if shown.size != (width, height):
                shown = ImageOps.fit(shown, (width, height))
            return np.asarray(shown).reshape(height, width, channels)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # A damaged picture can raise almost any error.
        found = ""
        if file.is_file():
            with file.open("rb") as opened:
                found = f"; found {kind_of(opened.read(64))}"
        raise InputError(
            f"{name}: cannot be decoded as an image ({error}){found}. Replace the file, or name another"
        ) from error
