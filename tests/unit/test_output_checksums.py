"""A file that changed after its job is noticed, whatever its times say; a file whose times alone changed is not."""

import json
import os
from pathlib import Path

import pytest

from replication.runs.output_checksums import OutputChecksums, bring_to_present


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.csv"
    path.write_text("accuracy,0.5\n")
    return path


@pytest.fixture
def noted(tmp_path: Path, output: Path) -> Path:
    """The file of checksums, with the output noted."""
    path = tmp_path / "folder" / "checksums.jsonl"
    OutputChecksums(path).note(str(output))
    return path


def change(noted: Path, output: Path) -> str | None:
    return OutputChecksums(noted).altered(str(output))


def test_an_output_as_its_job_left_it_is_not_read(noted: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.runs.output_checksums._checksum", lambda path: pytest.fail(f"{path} was read"))
    assert change(noted, output) is None


def test_a_truncated_output_is_named_with_its_sizes(noted: Path, output: Path) -> None:
    os.truncate(output, 4)
    assert change(noted, output) == f"{output} has 4 bytes, its job wrote 13"


def test_other_content_of_the_same_size_is_noticed_although_the_time_was_put_back(noted: Path, output: Path) -> None:
    before = output.stat().st_mtime_ns
    output.write_text("accuracy,0.9\n")
    os.utime(output, ns=(before, before))
    assert change(noted, output) == f"{output} has other content than its job wrote"


@pytest.mark.parametrize("seconds", [-(10**9), 10**9])
def test_other_times_are_noted_and_nothing_more(noted: Path, output: Path, seconds: int) -> None:
    time = output.stat().st_mtime + seconds
    os.utime(output, (time, time))
    assert change(noted, output) is None
    lines = [json.loads(line) for line in noted.read_text().splitlines() if line]
    assert [line["files"][str(output)][0][1] == output.stat().st_mtime_ns for line in lines] == [False, True]


def test_arrays_belong_to_the_description_beside_them(tmp_path: Path) -> None:
    description, array = tmp_path / "dataset.json", tmp_path / "x_train.npy"
    for path in (description, array):
        path.write_bytes(b"content")
    noted = tmp_path / "checksums.jsonl"
    OutputChecksums(noted).note(str(description))
    array.write_bytes(b"Content")
    assert change(noted, description) == f"{array} has other content than its job wrote"
    array.unlink()
    assert change(noted, description) == f"{array} is missing"


def test_an_output_that_was_never_noted_or_is_missing_is_left_to_snakemake(noted: Path, output: Path) -> None:
    assert change(noted, output.with_name("other.csv")) is None
    output.unlink()
    assert change(noted, output) is None


@pytest.mark.parametrize("fragment", ['{"output": "a", "fi', "[]", '{"output": "a"}', "\x00\xff", '{"files": {}}'])
def test_a_line_that_was_cut_short_is_ignored_and_the_next_one_is_whole(
    noted: Path, output: Path, fragment: str
) -> None:
    with noted.open("a") as file:
        file.write(fragment)
    output.write_text("accuracy,0.9\n")
    OutputChecksums(noted).note(str(output))
    assert change(noted, output) is None


def test_times_that_cannot_be_noted_are_no_error(noted: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    os.utime(output, (0, 0))
    checksums = OutputChecksums(noted)
    checksums.altered(str(output.with_name("other.csv")))  # reads the file
    monkeypatch.setattr(Path, "mkdir", full)
    assert checksums.altered(str(output)) is None


def test_a_file_from_the_future_gets_the_present_time_and_others_keep_theirs(tmp_path: Path) -> None:
    now = 1_700_000_000.0
    for name, given, expected in (("future", now + 86400, now), ("past", now - 86400, now - 86400)):
        path = tmp_path / name
        path.touch()
        os.utime(path, (given, given))
        bring_to_present(str(path), now)
        assert path.stat().st_mtime == expected
    bring_to_present(str(tmp_path / "missing"), now)
