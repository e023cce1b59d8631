"""A miniature of CIFAR-10: the python archive."""

import gzip
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np

from replication.datasets.cifar10 import ARCHIVE, FOLDER, META, TEST, TRAIN
from replication.datasets.miniature.textures import textures


def cifar10(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `cifar-10-python.tar.gz`: five batches of 120 training images and one of 200 test images, classes balanced."""
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    members = {META: pickle.dumps({"num_cases_per_batch": 120, "label_names": classes, "num_vis": 3072}, protocol=2)}
    for name in (*TRAIN, TEST):
        labels = rng.permutation(np.repeat(np.arange(10), 20 if name == TEST else 12))
        pixels = textures(labels, 10, 32, 42.0, (0, 0, 0), rng)
        kind = "testing batch 1 of 1" if name == TEST else f"training batch {name[-1]} of 5"
        members[name] = pickle.dumps(
            {
                "batch_label": kind,
                "labels": [int(k) for k in labels],
                "data": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1)),
                "filenames": [f"{classes[k]}_s_{i:06d}.png" for i, k in enumerate(labels)],
            },
            protocol=2,
        )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path = folder / ARCHIVE
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=6, mtime=0))
    return [path]
