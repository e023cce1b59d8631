"""Models, embeddings and evidence: what was computed elsewhere is read without trust, and published whole or not at all."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import save
from torch import nn

from clai.tensors import fill_module, load_tensors
from replication.models.embedding import load_embedded
from replication.report.publish import promote
from replication.runs.record import read_records
from support.damage import NAMES, TEXTS, damaged, some_damaged
from support.evidence_fixture import write_evidence
from support.hostile import OUT, Attack

TENSORS = {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}
ODD = (
    torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 2), torch.ones(6),
    torch.ones(()), torch.ones(0, 3),
    torch.full((2, 3), torch.nan), torch.full((2, 3), torch.inf), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3,
    dtype=torch.bfloat16),
    torch.ones(2, 3, dtype=torch.float16), torch.ones(2, 4), torch.ones(1, 2, 3), torch.zeros(4, dtype=torch.int32),
    torch.ones(1, 4, 2) * 1e38,
)  # fmt: skip
ENTRIES = st.sampled_from(
    ({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 24]},
     {"dtype": "F32", "shape": [-2, -3], "data_offsets": [0, 24]}, {"dtype": "F32", "shape": [2, 3], "data_offsets": [24, 0]},
     {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 2**63]}, {"dtype": "X", "shape": [2, 3], "data_offsets": [0, 24]},
     {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, {"dtype": "F8_E4M3", "shape": [24], "data_offsets": [0, 24]}, {},
     None, [], "x",
     {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}, {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]},
     {"dtype": "U64", "shape": [3], "data_offsets": [0, 24]},
     {"dtype": "F32", "shape": [1] * 70 + [6], "data_offsets": [0, 24]}, {"dtype": "C64", "shape": [3], "data_offsets": [0, 24]})
)  # fmt: skip


def stated(header: Any, data: bytes = bytes(32)) -> bytes:
    """Return a file of tensors whose header says so."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor_files(tensors: Mapping[str, torch.Tensor]) -> st.SearchStrategy[bytes]:
    """Return files with tensors damaged, replaced, left out, added, or lied about."""
    names = st.sampled_from((*tensors, "other", *(t for t in TEXTS if t != "\udc80")))
    return st.one_of(
        damaged(save(dict(tensors)), head=200),
        st.tuples(names, st.sampled_from(ODD)).map(lambda t: save({**tensors, t[0]: t[1].clone()})),
        st.sampled_from(sorted(tensors)).map(lambda name: save({n: t for n, t in tensors.items() if n != name})),
        st.dictionaries(names, ENTRIES, max_size=3).map(stated),
        st.sampled_from(
            [
                stated({}),
                stated([]),
                struct.pack("<Q", 2**40),
                struct.pack("<Q", 2**64 - 1) + b"{}",
                b"",
                b"\x80\x04N.",
                stated({"__metadata__": {"a": "b"}}),
            ]
        ),
    )


def test_models(attack: Attack) -> None:
    def parse(folder: Path) -> None:
        module = nn.Linear(3, 2)
        path = folder / "model.safetensors"
        fill_module(module, load_tensors(path), path)
        assert all(p.dtype == torch.float32 and p.isfinite().all() for p in module.parameters())

    attack(
        "models (safetensors)",
        tensor_files(TENSORS),
        lambda folder, content: (folder / "model.safetensors").write_bytes(content),
        parse,
        valid=save(TENSORS),
        named=("model.safetensors",),
        cases=1500,
    )


def test_embeddings(attack: Attack) -> None:
    whole = {f"z_{split}": torch.ones(1, 4, 2) for split in ("train", "val", "test")}
    whole |= {f"y_{split}": torch.zeros(4, dtype=torch.int64) for split in ("train", "val", "test")}

    def parse(folder: Path) -> None:
        for part in load_embedded(folder / "embedded.safetensors").values():
            vectors = part.vectors()
            assert len(vectors.x) == len(vectors.labels)

    attack(
        "models (safetensors)",
        tensor_files(whole),
        lambda folder, content: (folder / "embedded.safetensors").write_bytes(content),
        parse,
        valid=save(whole),
        named=("embedded.safetensors",),
        cases=500,
    )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The evidence of a dataset of intensive care: a folder of tables, records and a description."""
    root = tmp_path_factory.mktemp("evidence")
    write_evidence(root, ["challenge2019"], seeds=1, folds=2, theory=False)
    folder = root / "challenge2019" / "evidence"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


LINKS = ("/etc/passwd", "../../../../../etc/passwd", "metrics.csv", "missing", "/dev/zero")


def test_evidence(attack: Attack, evidence: dict[str, bytes]) -> None:
    """Published is all that was computed, as it was, or nothing."""
    small = {
        name: content
        if name in ("dataset.json", "runs.jsonl", "runs_shared.json")
        else b"\n".join(content.split(b"\n")[:5]) + b"\n"
        for name, content in evidence.items()
    }
    records = [json.loads(line) for line in small["runs.jsonl"].splitlines()]

    def lay(folder: Path, files: Mapping[str, Any]) -> None:
        place = folder / "real" / "challenge2019" / "evidence"
        place.mkdir(parents=True)
        for name, content in files.items():
            if isinstance(content, str):
                (place / name).symlink_to(content)
            else:
                (place / name).write_bytes(content)

    def parse(folder: Path) -> None:
        source = folder / "real"
        files = {file.relative_to(source): file for file in (source / "challenge2019" / "evidence").iterdir()}
        promote(files, folder / OUT)
        for copy in (folder / OUT / "challenge2019" / "evidence").iterdir():
            original = files[copy.relative_to(folder / OUT)]
            assert not copy.is_symlink()
            assert not original.is_symlink()
            assert copy.read_bytes() == original.read_bytes()
        assert all(record["run"] for record in read_records(folder / OUT / "challenge2019" / "evidence"))

    def line(changes: Mapping[str, Any]) -> bytes:
        return b"".join(json.dumps(record | changes).encode() + b"\n" for record in records)

    odd = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([t for t in TEXTS if t != "\udc80"]),
        st.just([]),
        st.just({}),
        st.just({"dirty": False}),
    )
    described = json.loads(small["dataset.json"])
    attack(
        "evidence folders (publish)",
        st.one_of(
            some_damaged(small),
            some_damaged({n: c for n, c in small.items() if n.startswith("runs") or n == "dataset.json"}).map(
                lambda f: small | f
            ),
            st.dictionaries(
                st.sampled_from(("dirty", "commit", "run", "settings", "data", "versions", "evaluation")),
                odd,
                min_size=1,
            ).map(lambda c: small | {"runs.jsonl": line(c)}),
            st.dictionaries(st.sampled_from(("licence", "classes", "kind", "title")), odd, min_size=1).map(
                lambda c: small | {"dataset.json": json.dumps(described | c).encode()}
            ),
            st.tuples(st.sampled_from(sorted(small)), st.sampled_from(LINKS)).map(lambda t: small | {t[0]: t[1]}),
            st.sampled_from(sorted(small)).map(lambda name: {n: c for n, c in small.items() if n != name}),
            st.sampled_from(
                [n for n in NAMES if n and "/" not in n and "\0" not in n and n not in (".", "..") and len(n) < 200]
            ).map(lambda name: small | {name: b"added"}),
            st.tuples(
                st.sampled_from(("runs.jsonl", "runs_shared.json", "dataset.json")),
                st.sampled_from((b"", b"[]", b"null", b"1", b"{}", b"\xff", b"NaN", b"[" * 10**5, b'{"a":' * 10**5)),
            ).map(lambda t: small | {t[0]: t[1]}),
        ),
        lay,
        parse,
        valid=small,
        named=("challenge2019/evidence", "runs.jsonl"),
        cases=1000,
    )
