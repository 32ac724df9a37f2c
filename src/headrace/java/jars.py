"""Pinned jars from a Maven repository: downloaded once, verified always, cached.

Invariant: a path this module returns holds exactly the bytes its list names. A
download goes to a temporary file and is renamed only after size and SHA-256
match, so several processes may fetch the same jars at the same time.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import platformdirs

from headrace.java.errors import JarError
from headrace.java.repository import repository_url

_PARALLEL_DOWNLOADS = 8
_ATTEMPTS = 3
_TIMEOUT_S = 30
_CHUNK_BYTES = 256 * 1024

Advance = Callable[[int], None]  # told the number of bytes that just arrived


class Jar(NamedTuple):
    """One line of a pinned list: Maven coordinate, checksum and size."""

    group: str
    artifact: str
    version: str
    sha256: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def parse_jar_list(text: str) -> list[Jar]:
    """Read `group:artifact:version sha256 bytes` lines; `#` starts a comment line."""
    jars = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            coordinate, sha256, size = line.split()
            group, artifact, version = coordinate.split(":")
            if len(bytes.fromhex(sha256)) != 32:
                raise ValueError("a SHA-256 has 64 hexadecimal digits")
            jars.append(Jar(group, artifact, version, sha256.lower(), int(size)))
        except ValueError as error:
            raise JarError(
                f"line {number} of the jar list is not "
                f"'group:artifact:version sha256 bytes': {line!r} ({error})"
            ) from error
    return jars


def cache_directory() -> Path:
    """Where downloads and built programs are kept: HEADRACE_CACHE_DIR, or the platform's place."""
    return Path(os.environ.get("HEADRACE_CACHE_DIR") or platformdirs.user_cache_dir("headrace"))


def read_jar_list(package: str, name: str) -> list[Jar]:
    """Return the pinned list that lies beside the modules of `package`."""
    return parse_jar_list(resources.files(package).joinpath(name).read_text("utf-8"))


def fetch_jars(
    jars: Sequence[Jar],
    *,
    directory: Path | None = None,
    repository: str | None = None,
    on_bytes: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Return the paths of `jars`, downloading those that are absent or damaged.

    `on_bytes` is told how many bytes have come of how many; without it a terminal gets a bar.
    """
    directory = directory or cache_directory() / "jars"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JarError(
            f"cannot make {directory} for jars: {error.strerror}; "
            "set HEADRACE_CACHE_DIR to a directory that can be written"
        ) from error
    with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
        is_good = pool.map(lambda jar: _is_intact(directory / jar.file_name, jar), jars)
        missing = [jar for jar, good in zip(jars, is_good, strict=True) if not good]
        if missing:
            base = (repository or repository_url()).rstrip("/")
            with _telling(missing, on_bytes) if on_bytes else _progress(missing) as advance:
                futures = [pool.submit(_download, jar, base, directory, advance) for jar in missing]
                try:
                    for future in futures:
                        future.result()
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)
    return sorted(directory / jar.file_name for jar in jars)


def _is_intact(path: Path, jar: Jar) -> bool:
    try:
        if path.stat().st_size != jar.size_bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _download(jar: Jar, base: str, directory: Path, advance: Advance) -> None:
    url = f"{base}/{jar.repository_path}"
    for attempt in range(1, _ATTEMPTS + 1):
        descriptor, name = tempfile.mkstemp(prefix=f".{jar.file_name}.", dir=directory)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                digest, size = _copy(url, file.write, jar.size_bytes, advance)
            if (digest, size) != (jar.sha256, jar.size_bytes):
                raise JarError(
                    f"{url} is not the pinned jar: {size} bytes with SHA-256 {digest}, wanted "
                    f"{jar.size_bytes} bytes with SHA-256 {jar.sha256}; nothing of it was kept"
                )
            temporary.chmod(0o644)
            temporary.rename(directory / jar.file_name)
            return
        except (OSError, HTTPException) as error:
            is_final = False
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                # A 4xx answer will not change by asking again; a broken connection may.
                is_final = error.code < 500
            if is_final or attempt == _ATTEMPTS:
                raise JarError(
                    f"cannot download {jar.file_name} from {url}: {_reason(error)}; connect this "
                    f"machine to the network, point HEADRACE_MAVEN_REPOSITORY at a mirror, or put "
                    f"the file into {directory}"
                ) from error
        finally:
            temporary.unlink(missing_ok=True)


def _copy(
    url: str, write: Callable[[bytes], object], limit: int, advance: Advance
) -> tuple[str, int]:
    """Pass the body of `url` to `write`, at most one chunk beyond `limit` bytes."""
    digest, size = hashlib.sha256(), 0
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
        while size <= limit and (chunk := response.read(_CHUNK_BYTES)):
            write(chunk)
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return digest.hexdigest(), size


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


@contextlib.contextmanager
def _telling(jars: Iterable[Jar], on_bytes: Callable[[int, int], None]) -> Iterator[Advance]:
    total, done, lock = sum(jar.size_bytes for jar in jars), 0, threading.Lock()

    def advance(arrived: int) -> None:
        nonlocal done
        with lock:  # downloads run in several threads
            done += arrived
            on_bytes(done, total)

    on_bytes(0, total)
    yield advance


@contextlib.contextmanager
def _progress(jars: Iterable[Jar]) -> Iterator[Advance]:
    """Show a bar on a terminal; stay silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    # Imported here: most callers find everything cached and need no terminal library.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("jars"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("jars", total=sum(jar.size_bytes for jar in jars))
        yield lambda arrived: progress.advance(task, arrived)
