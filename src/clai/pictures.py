"""How a picture file becomes an array: one rule for training data and for predictions."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from clai.errors import InputError

SUFFIXES = {
    ".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".ppm": "PPM", ".pgm": "PPM", ".bmp": "BMP", ".tif": "TIFF", ".tiff": "TIFF",
    ".webp": "WEBP",
}  # fmt: skip
"""Formats by the endings that torchvision's `ImageFolder` reads. Of the other formats of Pillow some start a program."""


def read_picture(
    file: Path | BinaryIO, size: tuple[int, int], channels: int, name: str, advice: str
) -> NDArray[np.uint8]:
    """Return the pixels of a picture, uint8 (height, width, channels), as stored: not scaled, not turned.

    Args:
        file: its path, or its opened content.
        size: expected height and width.
        channels: 1 for grey levels, 3 for RGB; colours of another kind are converted.
        name: of the file in messages.
        advice: what to do about a picture that does not fit, as the end of a message.

    Raises:
        InputError: the picture is damaged, or has another size.
    """
    from PIL import Image

    height, width = size
    try:
        with Image.open(file, formats=sorted(set(SUFFIXES.values()))) as image:
            if image.size != (width, height):
                raise InputError(
                    f"{name}: found an image of {image.size[0]} x {image.size[1]} pixels, expected {width} x {height}. {advice}"
                )
            return np.asarray(image.convert("L" if channels == 1 else "RGB")).reshape(height, width, channels)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # A damaged picture can raise almost any error.
        raise InputError(f"{name}: cannot be decoded as an image ({error}). {advice}") from error
