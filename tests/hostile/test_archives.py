"""npz, pickled batches, tar and zip: whatever they hold, nothing of it runs, leaves its place or takes memory without bound."""

import gzip
import io
import os
import pickle
import pickletools
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image

from replication.datasets import cifar10, jpeg_copy
from replication.datasets.fetch import Raw
from replication.datasets.miniature.cifar10 import python2_pickle
from replication.datasets.prepare import prepare
from replication.datasets.prepared import load
from support.damage import NAMES, TEXTS, altered_members, archives_of, damaged, lying_zip, some_damaged, tarred, zipped
from support.hostile import OUT, Attack

RNG = np.random.default_rng(0)
MEDMNIST: dict[str, Any] = {"title": "A", "medmnist_flag": "pneumoniamnist", "medmnist_size": 28}
IMAGES: dict[str, Any] = {"title": "B", "image_size": 8, "validation_share": 0.5}


class Payload:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch escaped",)


def prepared(source: str, settings: dict[str, Any], file: str | None) -> Any:
    """Return the function that prepares the file, or the folder, of a case, and opens what it has prepared."""

    def parse(folder: Path) -> None:
        raw = Raw("cifar10", source, "1", folder / file if file else folder, (), "licence", "open", True)
        prepare(raw, folder / OUT, settings, 0)
        for name, array in load(folder / OUT).arrays.items():
            assert len(array), name

    return parse


# npz


def npy(array: Any, **header: Any) -> bytes:
    """Return an array as .npy, with entries of its header replaced."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    if not header:
        return stream.getvalue()
    stream.seek(8)
    (length,) = struct.unpack("<H", stream.read(2))
    body = stream.getvalue()[10 + length :]
    stated = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    text = repr(stated).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


ARRAYS = {
    f"{split}_{part}": RNG.integers(0, 256, (4, 28, 28)).astype(np.uint8)
    if part == "images"
    else np.array([[0], [1], [0], [1]])
    for split in ("train", "val", "test")
    for part in ("images", "labels")
}
NPZ = {f"{name}.npy": npy(array) for name, array in ARRAYS.items()}
SHAPES = st.sampled_from(
    ((), (0,), (4,), (4, 28), (0, 28, 28), (5, 28, 28), (2**62, 28, 28), (-4, 28, 28), (4, 28, -28), (10**20, 1), (4, 28, 28,
    1), (True, 28, 28),
     (4.0, 28, 28), (-1, 28, 28), (4, 0, 28), ("4", 28, 28), 4, None, (10**6,) * 40)
)  # fmt: skip
DTYPES = st.sampled_from(
    ("|u1", "|i1", "<i8", ">i8", "<f8", "<f4", "<c16", "|b1", "|S1", "<U1", "|O", "<M8[s]", "|V1", "|V0", "<U0", "<f2",
     "u1,u1", "x", "",
     [("a", "|u1")], [("a", "|O")], ("|u1", (2,)), None, 1, "|u9999999999")
)  # fmt: skip


@st.composite
def npz(draw: st.DrawFn) -> bytes:
    """Return a set of MedMNIST with one array replaced, or its header lying."""
    name = draw(st.sampled_from(sorted(ARRAYS)))
    array = ARRAYS[name]
    kind = draw(
        st.sampled_from(("shape", "descr", "fortran_order", "more", "dtype", "payload", "length", "values", "header"))
    )
    if kind == "shape":
        content = npy(array, shape=draw(SHAPES))
    elif kind == "descr":
        content = npy(array, descr=draw(DTYPES))
    elif kind == "fortran_order":
        content = npy(array, fortran_order=draw(st.sampled_from((True, 1, None, "False"))))
    elif kind == "more":
        content = npy(
            array, **draw(st.dictionaries(st.sampled_from(("a", "shape", "descr")), st.sampled_from(TEXTS), min_size=1))
        )
    elif kind == "dtype":
        content = npy(array.astype(draw(st.sampled_from(("f4", "f8", "i8", "i1", "c8", "?", "S3", "U2", ">u4")))))
    elif kind == "payload":
        content = npy(np.array([Payload()] * len(array), dtype=object))
    elif kind == "length":
        content = npy(array[: draw(st.integers(0, 3))])
    elif kind == "values":
        low = draw(st.sampled_from((-1, 0, 1, 2, 255, 2**31, -(2**63))))
        content = npy(np.full(array.shape, low).astype(np.int64 if "labels" in name else np.uint8))
    else:
        content = draw(damaged(npy(array), head=120))
    return zipped([(n, content if n == f"{name}.npy" else c, 0o100000) for n, c in NPZ.items()])


def test_npz(attack: Attack) -> None:
    attack(
        "npz (MedMNIST)",
        st.one_of(npz(), archives_of(NPZ), lying_zip(NPZ)),
        lambda folder, content: (folder / "set.npz").write_bytes(content),
        prepared("medmnist", MEDMNIST, "set.npz"),
        valid=zipped([(name, content, 0o100000) for name, content in NPZ.items()]),
        named=("set.npz", "datasets.cifar10"),
        cases=1500,
    )


# Pickled batches in a gzipped tar


def batch(rows: int, **changes: Any) -> dict[str, Any]:
    """Return a batch of rows of ten classes, with entries replaced."""
    data = RNG.integers(0, 256, (rows, 3072)).astype(np.uint8)
    return {
        "batch_label": "b",
        "labels": [k % 10 for k in range(rows)],
        "data": data,
        "filenames": ["a.png"] * rows,
    } | changes


META = {"num_cases_per_batch": 10, "label_names": [f"class {k}" for k in range(10)], "num_vis": 3072}
SMALL = {"labels": [1], "data": np.zeros((1, 3072), np.uint8)}
OPCODES = [code.code.encode("latin1") for code in pickletools.opcodes]
ARGUMENTS = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        (b"os\nsystem\n", b"builtins\neval\n", b"numpy\nndarray\n", b"numpy.core.multiarray\n_reconstruct\n", b"numpy\ndtype\n",
         b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0\0\0\0\x01\0\0\0", b"\0\0\0\x40\0\0\0\0", b"9" * 5000 + b"\n", b"nan\n",
         b"\x08touch e\n", b"1\n", b"\0")
    ),
)  # fmt: skip
PROGRAMS = st.lists(st.tuples(st.sampled_from(OPCODES), ARGUMENTS), min_size=1, max_size=12).map(
    lambda program: b"\x80\x04" + b"".join(code + argument for code, argument in program) + b"."
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.sampled_from(TEXTS),
        st.binary(max_size=8),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(TEXTS), inner, max_size=3)),
    max_leaves=6,
)
ODD_ARRAYS = st.sampled_from(
    (np.zeros((1, 3072), np.float32), np.zeros((1, 3072), np.int8), np.zeros(3072, np.uint8), np.zeros((), np.uint8),
     np.zeros((0, 3072), np.uint8), np.zeros((1, 3071), np.uint8), np.zeros((1, 1, 3072), np.uint8), np.zeros((2, 3072),
     np.uint8),
     np.asfortranarray(np.zeros((2, 3072), np.uint8)), np.array([None]), np.zeros((1, 3072), ">u2"))
)  # fmt: skip
CHANGES = st.dictionaries(
    st.sampled_from(("labels", "data", "other", "label_names")), st.one_of(VALUES, ODD_ARRAYS), min_size=1
)


@st.composite
def pickles(draw: st.DrawFn) -> bytes:
    """Return a batch damaged, one with other values, one with a payload, or a program of any opcodes."""
    kind = draw(st.sampled_from(("damage", "damage", "change", "payload", "program", "program")))
    if kind == "damage":
        return draw(
            damaged(draw(st.sampled_from((python2_pickle(SMALL), pickle.dumps(SMALL, 5), pickle.dumps(SMALL, 0)))))
        )
    if kind == "change":
        return pickle.dumps(SMALL | draw(CHANGES), draw(st.integers(0, 5)))
    if kind == "payload":
        place = draw(st.sampled_from(("labels", "data", "other")))
        return pickle.dumps(SMALL | {place: draw(st.sampled_from((Payload(), [Payload()])))}, draw(st.integers(0, 5)))
    return draw(PROGRAMS)


def test_pickled_batches(attack: Attack) -> None:
    def parse(folder: Path) -> None:
        x, y = cifar10.images(cifar10.unpickle((folder / "data_batch_1").read_bytes(), "data_batch_1"), "data_batch_1")
        assert x.shape == (len(y), 32, 32, 3)
        assert x.dtype == np.uint8
        assert y.dtype == np.int64
        assert set(y) <= set(range(10))

    attack(
        "pickled batches (CIFAR-10)",
        pickles(),
        lambda folder, content: (folder / "data_batch_1").write_bytes(content),
        parse,
        valid=python2_pickle(SMALL),
        named=("data_batch_1",),
        cases=5000,
    )


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0)


MEMBERS = {
    f"{cifar10.FOLDER}/{name}": b"content" * 100 for name in (*cifar10.TRAIN_BATCHES, cifar10.TEST_BATCH, cifar10.META)
}
PAX = st.dictionaries(
    st.sampled_from(("path", "linkpath", "size", "mtime", "uid", "GNU.sparse.map", "GNU.sparse.major", "GNU.sparse.size",
    "hdrcharset",
                     "GNU.sparse.realsize", "GNU.sparse.minor", "GNU.sparse.name", "GNU.sparse.numblocks")),
    st.sampled_from((*(t for t in TEXTS if "\udc80" not in t), "1,2,3", "0,9999999999999", *NAMES)),
    min_size=1,
)  # fmt: skip


def test_tar(attack: Attack) -> None:
    altered = altered_members(MEMBERS)
    whole = tarred([(name, content, 0o100000) for name, content in MEMBERS.items()])
    attack(
        "tar.gz (CIFAR-10)",
        st.one_of(
            altered.map(tarred).map(gzipped),
            st.builds(tarred, altered, PAX).map(gzipped),
            damaged(whole, head=2048).map(gzipped),
            damaged(gzipped(whole), head=32),
        ),
        lambda folder, content: (folder / "cifar.tar.gz").write_bytes(content),
        lambda folder: cifar10.read_members(folder / "cifar.tar.gz"),
        valid=gzipped(whole),
        named=("cifar.tar.gz",),
        cases=2000,
    )


def test_the_whole_archive(attack: Attack) -> None:
    batches = {name: python2_pickle(batch(20)) for name in (*cifar10.TRAIN_BATCHES, cifar10.TEST_BATCH)}
    members = {
        f"{cifar10.FOLDER}/{name}": content
        for name, content in (batches | {cifar10.META: python2_pickle(META)}).items()
    }
    changed = st.one_of(
        CHANGES.map(lambda c: {cifar10.META: pickle.dumps(META | c, 2)}),
        CHANGES.map(lambda c: {"data_batch_2": pickle.dumps(batch(20) | c, 2)}),
        st.integers(0, 9).map(lambda n: {"test_batch": python2_pickle(batch(n))}),
        st.integers(0, 9).map(lambda n: {"data_batch_3": python2_pickle(batch(20, labels=[n] * 20))}),
        st.just({"test_batch": python2_pickle(batch(20, data=np.zeros((20, 3072), np.uint8)))}),
    )
    attack(
        "tar.gz (CIFAR-10)",
        changed.map(lambda c: members | {f"{cifar10.FOLDER}/{name}": content for name, content in c.items()}),
        lambda folder, files: (folder / "cifar.tar.gz").write_bytes(
            gzipped(tarred([(name, content, 0o100000) for name, content in files.items()]))
        ),
        prepared("cifar10", {"title": "C", "validation_share": 0.2}, "cifar.tar.gz"),
        valid=members,
        named=("cifar.tar.gz", "datasets.cifar10"),
        cases=150,
    )


# Images in zips and folders


def image(size: int = 8, form: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    pixels = RNG.integers(0, 256, (size, size, 3)).astype(np.uint8)
    Image.fromarray(pixels).convert(mode).save(stream, form, **options)
    return stream.getvalue()


def png(*chunks: tuple[bytes, bytes], size: int = 8) -> bytes:
    """Return a PNG with chunks (kind, content) behind its header."""

    whole = image(size)
    packed = b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return whole[:33] + packed + whole[33:]


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(escaped) (w) file closefile\nshowpage\n%%EOF\n"
BOMB = zlib.compress(bytes(2**27), 9)
ODD_IMAGES = (
    EPS, image(9), image(8, "GIF"), image(8, "BMP"), image(8, "TIFF"), image(8, "WEBP"), image(8, "PPM"), image(8, "PNG",
    "1"), image(8, "PNG", "P"),
    image(8, "PNG", "I;16"), image(8, "PNG", "LA"), image(8, "JPEG", "CMYK"), image(8, "JPEG", "L"), b"",
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff",
    png((b"zTXt", b"a\0\0" + BOMB)), png((b"iCCP", b"a\0\0" + BOMB)), png((b"iTXt", b"a\0\x01\0\0\0" + BOMB)), png((b"eXIf",
    b"II*\0" + b"\xff" * 40)),
    png((b"acTL", struct.pack(">II", 2**31 - 1, 0))), png((b"tEXt", b"x" * 5000)), png((b"gAMA", b"")), png((b"pHYs", b"1")),
    png((b"cHRM", b"\0" * 5)),
    png((b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0))), png((b"tRNS", b"")), png((b"PLTE", b"x")),
    png((b"sRGB", b"")),
)  # fmt: skip
ENCODED = st.one_of(
    st.sampled_from(ODD_IMAGES),
    damaged(image(), head=64),
    damaged(image(8, "JPEG"), head=640),
    st.sampled_from(ODD_IMAGES).flatmap(lambda content: damaged(content[:4000], head=64)),
)
FILES = {f"{split}/{name}/{n}.png": image() for split in ("train", "test") for name in "ab" for n in range(2)}
FILES |= {f"{split}/{name}/3.jpg": image(8, "JPEG") for split in ("train", "test") for name in "ab"}


def test_images(attack: Attack) -> None:
    """One image among good ones, in a folder."""

    def lay(folder: Path, content: bytes) -> None:
        for name, whole in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if name == "test/b/1.png" else whole)

    attack(
        "images (PNG, JPEG)",
        ENCODED,
        lay,
        prepared("image_folder", IMAGES, None),
        valid=image(),
        named=("test/b/1.png",),
        cases=800,
    )


def test_zip_of_images(attack: Attack) -> None:
    attack(
        "zip (images)",
        st.one_of(archives_of(FILES), lying_zip(FILES)),
        lambda folder, content: (folder / "images.zip").write_bytes(content),
        prepared("image_folder", IMAGES, "images.zip"),
        valid=zipped([(name, content, 0o100000) for name, content in FILES.items()]),
        named=("images.zip", "datasets.cifar10"),
        cases=1200,
    )


def test_zip_of_the_jpeg_copy(attack: Attack) -> None:
    """Its checksum is computed before anything says that the archive is the right one."""
    files = {name: content for name, content in FILES.items() if name.endswith(".jpg")}
    attack(
        "zip (JPEG copy)",
        st.one_of(
            archives_of(files),
            lying_zip(files),
            some_damaged(files).map(lambda f: zipped([(n, c, 0o100000) for n, c in f.items()])),
        ),
        lambda folder, content: (folder / "CIFAR-10-images-1.zip").write_bytes(content),
        jpeg_copy.content,
        valid=zipped([(name, content, 0o100000) for name, content in files.items()]),
        named=("CIFAR-10-images-1.zip",),
        cases=1000,
    )
