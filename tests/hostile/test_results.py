"""Embeddings and evidence: what was computed elsewhere is read without trust, and published whole or not at all."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import save

from replication.models.embedding import load_embedded
from replication.report.publish import promote
from replication.runs.record import read_records
from support.damage import NAMES, TEXTS, damaged, some_damaged
from support.evidence_fixture import write_evidence
from support.hostile import OUT, Attack

ODD = (
    torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 2), torch.ones(6),
    torch.ones(()), torch.ones(0, 3),
    torch.full((2, 3), torch.nan), torch.full((2, 3), torch.inf), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3,
    dtype=torch.bfloat16),
    torch.ones(2, 3, dtype=torch.float16), torch.ones(2, 4), torch.ones(1, 2, 3), torch.zeros(4, dtype=torch.int32),
    torch.ones(1, 4, 2) * 1e38,
)  # fmt: skip


def tensor_files(tensors: Mapping[str, torch.Tensor]) -> st.SearchStrategy[bytes]:
    """Return files with tensors damaged, replaced, left out or added."""
    names = st.sampled_from((*tensors, "other", *(t for t in TEXTS if t != "\udc80")))
    return st.one_of(
        damaged(save(dict(tensors)), head=200),
        st.tuples(names, st.sampled_from(ODD)).map(lambda t: save({**tensors, t[0]: t[1].clone()})),
        st.sampled_from(sorted(tensors)).map(lambda name: save({n: t for n, t in tensors.items() if n != name})),
        st.sampled_from((b"", b"\x80\x04N.", struct.pack("<Q", 2**40), struct.pack("<Q", 2**64 - 1) + b"{}")),
    )


def test_embeddings(attack: Attack) -> None:
    whole = {f"z_{split}": torch.ones(1, 4, 2) for split in ("train", "val", "test")}
    whole |= {f"y_{split}": torch.zeros(4, dtype=torch.int64) for split in ("train", "val", "test")}

    def parse(folder: Path) -> None:
        for part in load_embedded(folder / "embedded.safetensors").values():
            vectors = part.vectors()
            assert len(vectors.x) == len(vectors.labels)

    attack(
        "embeddings (safetensors)",
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
    whole = ("dataset.json", "runs.jsonl", "runs_shared.json")
    small = {
        name: content if name in whole else b"\n".join([*content.split(b"\n")[:5], b""])
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

    odd = st.sampled_from((None, True, 0, -1, 2**63, [], {}, {"dirty": False}, *(t for t in TEXTS if t != "\udc80")))
    keys = ("dirty", "commit", "run", "settings", "data", "versions", "evaluation")
    records_changed = st.dictionaries(st.sampled_from(keys), odd, min_size=1).map(line)
    described = json.loads(small["dataset.json"])
    description_changed = st.dictionaries(
        st.sampled_from(("licence", "classes", "kind", "title")), odd, min_size=1
    ).map(lambda changes: json.dumps(described | changes).encode())
    torn = st.sampled_from((b"", b"[]", b"null", b"1", b"{}", b"\xff", b"NaN", b"[" * 10**5, b'{"a":' * 10**5))
    names = [n for n in NAMES if n and "/" not in n and "\0" not in n and n not in (".", "..") and len(n) < 200]
    attack(
        "evidence folders (publish)",
        st.one_of(
            some_damaged(small),
            some_damaged({name: small[name] for name in whole}).map(lambda files: small | files),
            records_changed.map(lambda content: small | {"runs.jsonl": content}),
            description_changed.map(lambda content: small | {"dataset.json": content}),
            st.tuples(st.sampled_from(whole), torn).map(lambda t: small | {t[0]: t[1]}),
            st.tuples(st.sampled_from(sorted(small)), st.sampled_from(LINKS)).map(lambda t: small | {t[0]: t[1]}),
            st.sampled_from(sorted(small)).map(lambda name: {n: c for n, c in small.items() if n != name}),
            st.sampled_from(names).map(lambda name: small | {name: b"added"}),
        ),
        lay,
        parse,
        valid=small,
        named=("challenge2019/evidence", "runs.jsonl"),
        cases=1000,
    )
