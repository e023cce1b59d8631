"""psv and csv of the sepsis sources: whatever a table holds, it gives rows of numbers and labels, or a message."""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clailearn.errors import InputError
from replication.datasets.miniature import icu
from replication.datasets.prepared import load
from replication.datasets.sources import Raw, prepare
from support.hostile import OUT, attack, some_damaged
from support.ward import CHALLENGE, MIMIC


def sepsis(folder: Path, source: str, settings: Mapping[str, Any]) -> None:
    """Prepare recordings, and check that they are in order and labelled 0 or 1."""
    files = [{"file": path.relative_to(folder).as_posix()} for path in sorted(folder.rglob("*.*"))]
    prepare(Raw("sepsis", source, "1", folder, files, "licence", "as provided", True), folder / OUT, settings, 0)
    data = load(folder / OUT)
    assert set(np.unique(data["y_all"])) <= {0, 1}
    assert np.isfinite(data["hours_all"]).all()
    assert not np.isinf(data["x_all"]).any()
    same = np.diff(data["groups_all"]) == 0
    assert (np.diff(data["hours_all"])[same] >= 0).all()


def record(septic: bool) -> bytes:
    """Return a record of Challenge 2019 of six hours."""
    rng = np.random.default_rng(int(septic))
    table = pd.DataFrame(rng.uniform(36, 60, (6, 7)).round(1), columns=list(CHALLENGE["variables"]))
    table = table.assign(Temp=36.5 + table.index / 10).reindex(columns=icu.HEADER.split("|"))
    label = (table.index > 2).astype(int) * septic
    return table.assign(ICULOS=table.index + 1, SepsisLabel=label).to_csv(sep="|", na_rep="NaN", index=False).encode()


def test_psv_in_a_folder(tmp_path: Path) -> None:
    records = {f"p{number:06d}.psv": record(number % 2 == 0) for number in range(1, 9)}
    named = (*records, "datasets.sepsis")
    attack(
        tmp_path, some_damaged(records), lambda folder: sepsis(folder, "challenge2019", CHALLENGE), valid=records,
        named=named, cases=1000,
    )  # fmt: skip


def test_tables_of_mimic(tmp_path: Path) -> None:
    """Unpacked ones of the first stays of the miniature: of packed ones, gzip itself would refuse what is damaged."""
    tables = {}
    for path in icu.mimic_iv(tmp_path / "whole", np.random.default_rng(0)):
        header, *rows = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
        stays = re.compile(r"300000(00|43|86)|30000129" if "stay_id" in header else r"100000(00|37|74)|10000111")
        name = path.relative_to(tmp_path / "whole").with_suffix("").as_posix()
        tables[name] = "".join([header, *filter(stays.search, rows)]).encode()
    settings = MIMIC | {"memory_gb": 0.5, "minimum_hours": 12, "maximum_hours": 336, "minimum_onset_hours": 7}

    def parse(folder: Path) -> None:
        try:
            sepsis(folder, "mimic_iv", settings | {"onset": "challenge2019"})
        except InputError as error:
            if re.search(r"[13]0000\d{3}|21\d\d-", str(error)):
                raise AssertionError(f"the message shows the row of a patient: {error}") from None
            raise

    attack(tmp_path, some_damaged(tables), parse, valid=tables, named=("datasets.sepsis",), cases=200)
