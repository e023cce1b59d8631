"""A miniature of CIFAR-10: the python archive, pickled by the rules of Python 2."""

import gzip
import io
import pickle
import struct
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from replication.datasets.cifar10 import FOLDER, META, TEST_BATCH, TRAIN_BATCHES
from replication.datasets.miniature.textures import textures


class Python2Pickler(pickle._Pickler):
    """Pickle as Python 2 did: text and bytes as its str, numpy under its old module name."""

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


def python2_pickle(value: Mapping[str, Any]) -> bytes:
    """Return the pickle that Python 2 would have written."""
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    return stream.getvalue()


def cifar10(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `cifar-10-python.tar.gz`: five batches of 120 training images and one of 200 test images, classes balanced."""
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    members = {META: python2_pickle({"num_cases_per_batch": 120, "label_names": classes, "num_vis": 3072})}
    for name in (*TRAIN_BATCHES, TEST_BATCH):
        labels = rng.permutation(np.repeat(np.arange(10), 20 if name == TEST_BATCH else 12))
        pixels = textures(labels, 10, 32, 42.0, (0, 0, 0), rng)
        kind = "testing batch 1 of 1" if name == TEST_BATCH else f"training batch {name[-1]} of 5"
        members[name] = python2_pickle(
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
