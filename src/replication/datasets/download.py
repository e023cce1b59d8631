"""Download the files of the table of sources, and verify them."""

import logging
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clai.errors import InputError
from replication.datasets.checksums import checksum_of
from replication.datasets.sources import Row

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 10.0
_TEMPORARY = {408, 425, 429}  # Answers, beside 5xx, after which a further attempt at the same address may succeed.
# First bytes of a file, to tell an error page from it where the source states no checksum.
_BEGINNINGS = {".zip": b"PK", ".npz": b"PK", ".gz": b"\x1f\x8b", ".edf": b"0"}


@dataclass(frozen=True)
class DownloadLimits:
    """Limits of downloads: `download` in config.yaml.

    retries: further attempts at each address. pause: seconds before the first retry, doubled before each next one.
    timeout: seconds without a byte after which an attempt fails. parallel: files at a time.
    """

    retries: int
    pause: float
    timeout: float
    parallel: int


def verify(path: Path, row: Row) -> None:
    """Raise InputError, naming source, file, expected and found, unless `path` has the size and checksum of the row.

    Without a checksum, the file must begin as files of its suffix do, and a zip must also end as one.
    """
    size = path.stat().st_size
    if row.size is not None and size != row.size:
        raise InputError(
            f"{row.dataset}: {path} has {size} bytes, expected {row.size}. The file is incomplete or of another "
            "version: delete it and run again."
        )
    if row.checksum:
        checksum = checksum_of(path, row.checksum.partition(":")[0])
        if checksum != row.checksum:
            raise InputError(
                f"{row.dataset}: {path} has checksum {checksum}, expected {row.checksum}. The file is damaged or of "
                "another version: delete it and run again."
            )
        return
    suffix = Path(row.file).suffix
    expected = _BEGINNINGS.get(suffix, b"")
    with path.open("rb") as stream:
        begins = stream.read(len(expected))
    if begins != expected or (expected == b"PK" and not zipfile.is_zipfile(path)):
        raise InputError(
            f"{row.dataset}: {path} begins with {begins!r} or is cut short, expected a complete {suffix} file. It may be "
            "an error page: delete it and run again."
        )


class _Partial:
    """The file of an unfinished download, to which each attempt appends.

    Only a file with a stated checksum is continued, because only the checksum reveals parts of two versions.
    """

    def __init__(self, path: Path, row: Row) -> None:
        self.path, self.row = path, row
        self.total = row.size
        self.last_report = time.monotonic()
        self.stream = path.open("ab")
        if not row.checksum:
            self.stream.truncate(0)
        self.start = self.stream.tell()

    def headers(self) -> dict[str, str]:
        """Return the headers of a request for the missing bytes."""
        # Without "identity" a server may declare a .gz as compressed text, which requests would unpack.
        return {"Accept-Encoding": "identity"} | ({"Range": f"bytes={self.start}-"} if self.start else {})

    def begin(self, response: Any, **_: Any) -> None:
        """Keep the bytes of earlier attempts only if the response continues them (a hook that requests calls before the content).

        Raises RequestException for another range than requested, and OSError without space for the rest.
        """
        from requests.exceptions import RequestException

        if response.status_code not in (200, 206):
            return
        content_range = response.headers.get("Content-Range", "")
        if response.status_code == 200 or not content_range.startswith(f"bytes {self.start}-"):
            self.stream.truncate(0)
            self.start = 0
            if response.status_code == 206:
                raise RequestException(f"answered with the range '{content_range}', which was not asked for")
        length = response.headers.get("Content-Length", "")
        if self.total is None and length.isdigit():
            self.total = self.start + int(length)
        if self.total is not None:
            _require_space(self.path.parent, self.total - self.start, self.row)

    def write(self, chunk: bytes) -> None:
        """Append a chunk; raises InputError for more bytes than the row states."""
        self.stream.write(chunk)
        size = self.stream.tell()
        if self.row.size is not None and size > self.row.size:
            raise InputError(f"{self.row.dataset}: {self.path} has more than the {self.row.size} bytes expected")
        if time.monotonic() - self.last_report > PROGRESS_SECONDS:
            self.last_report = time.monotonic()
            of = "" if self.total is None else f" of {self.total / 1e6:.1f}"
            logger.info("%s: %s, %.1f%s MB", self.row.dataset, self.row.file, size / 1e6, of)

    def flush(self) -> None:
        self.stream.flush()

    def __enter__(self) -> "_Partial":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


def _require_space(folder: Path, needed: int, row: Row) -> None:
    """Raise OSError unless `needed` bytes are free in the folder."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"{needed} bytes of {row.file} are still to come, and {free} are free")


def _attempt(url: str, part: Path, row: Row, timeout: float) -> bool:
    """Request the missing bytes, append them to `part` and verify the file.

    Returns False, with `part` deleted, where the bytes of an earlier attempt do not fit. Raises InputError where a file from
    a single attempt is wrong.
    """
    import pooch

    with _Partial(part, row) as partial:
        if not (partial.start and partial.start == row.size):
            downloader = pooch.HTTPDownloader(
                timeout=timeout, chunk_size=2**16, headers=partial.headers(), hooks={"response": partial.begin}
            )
            downloader(url, partial, None)
        resumed = partial.start > 0
    try:
        verify(part, row)
    except InputError:
        part.unlink()
        if resumed:
            return False
        raise
    return True


def download(row: Row, folder: Path, limits: DownloadLimits) -> Path:
    """Download one file into `folder`, and verify it before it gets its name.

    Tries the addresses in order. After a failure that may pass (no connection, no byte for `timeout` seconds, a connection
    cut off, 5xx) the same address is tried again after a pause, from the byte where it stopped.

    Raises InputError when no address delivers, saying where to put the file by hand, and when the file cannot be written.
    The bytes that arrived stay under a hidden name for the next run.
    """
    from requests.exceptions import HTTPError, RequestException

    target = folder / row.file
    part = target.with_name(f".{target.name}.part")
    failures: list[str] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for url in row.urls:
            attempt = 0
            while attempt <= limits.retries:
                if attempt:
                    time.sleep(limits.pause * 2 ** (attempt - 1))
                try:
                    if not _attempt(url, part, row, limits.timeout):
                        logger.warning("%s: what an earlier attempt left does not fit: from the start again", url)
                        continue
                    os.replace(part, target)
                    return target
                except HTTPError as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s", failures[-1])
                    status = 0 if error.response is None else error.response.status_code
                    if status == 416:  # The part is longer than the file: start again.
                        part.unlink()
                    elif status < 500 and status not in _TEMPORARY:
                        break
                except RequestException as error:
                    failures.append(f"{url}: {error}")
                    logger.warning("%s: attempt %d failed: %s", url, attempt + 1, error)
                except InputError as error:
                    part.unlink(missing_ok=True)
                    failures.append(str(error).replace(str(part), url))
                    logger.warning("%s", failures[-1])
                    break
                attempt += 1
    except OSError as error:
        raise InputError(
            f"{row.dataset}: {target} cannot be written ({error}). Make room or set data_dir to another folder, and run "
            "again: the download goes on from there."
        ) from error
    reason = "; ".join(failures[-3:]) if failures else "the table of sources gives no address"
    raise InputError(
        f"{row.dataset}: {row.file} could not be obtained ({reason}). Access: {row.access}. "
        f"Put the file at {target.resolve()} by hand and run again."
    )


def fetch(rows: Sequence[Row], folder: Path, limits: DownloadLimits) -> None:
    """Verify the files of `rows` that are in `folder`, and download the others, several at a time.

    After the first failure no further file is begun; downloads on the way finish. Raises the InputError of that failure.
    """
    done, lock = 0, threading.Lock()

    def obtain_file(row: Row) -> None:
        nonlocal done
        path = folder / row.file
        present = path.is_file()
        if present:
            verify(path, row)
        else:
            download(row, folder, limits)
        with lock:
            done += 1
            how = "verified" if present else "downloaded"
            logger.info("%s: file %d of %d, %s %s", row.dataset, done, len(rows), row.file, how)

    with ThreadPoolExecutor(limits.parallel) as executor:
        waiting = [executor.submit(obtain_file, row) for row in rows]
        try:
            for future in waiting:
                future.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
