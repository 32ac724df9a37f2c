import errno
import os
from pathlib import Path

import pytest

from headrace.log import files
from headrace.log.files import FileCache, OpenFile, pread_fully, replace_file


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def numbered(tmp_path: Path, count: int) -> list[Path]:
    paths = [tmp_path / str(number) for number in range(count)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def test_no_more_files_are_open_than_the_limit(tmp_path: Path) -> None:
    cache = FileCache(3)
    cached = [cache.cached(path) for path in numbered(tmp_path, 10)]

    content = [os.pread(file.get().fd, 10, 0) for file in cached]

    assert content == [str(number).encode() for number in range(10)]
    assert sum(file.file is not None for file in cached) == 3


def test_a_file_in_use_stays_open_longer_than_an_idle_one(tmp_path: Path) -> None:
    cache = FileCache(2)
    busy, idle, *others = [cache.cached(path) for path in numbered(tmp_path, 4)]
    for file in (busy, idle):
        file.get()
    others[0].get()  # clears both marks, drops the first
    busy.get()

    others[1].get()

    assert busy.file is not None
    assert idle.file is None


def test_an_open_file_is_closed_with_its_last_reference(tmp_path: Path) -> None:
    (path,) = numbered(tmp_path, 1)
    cached = FileCache(1).cached(path)
    held = cached.get()
    fd = held.fd

    cached.close()
    assert is_open(fd)
    del held

    assert not is_open(fd)


def test_a_file_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OpenFile(tmp_path / "none", os.O_RDONLY)


def test_running_out_of_descriptors_makes_the_cache_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FileCache(100)
    cached = [cache.cached(path) for path in numbered(tmp_path, 9)]
    for file in cached[:8]:
        file.get()
    real = os.open

    def scarce(path: Path, flags: int, mode: int = 0o777) -> int:
        if sum(file.file is not None for file in cached) >= 8:
            raise OSError(errno.EMFILE, "too many open files")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", scarce)

    assert os.pread(cached[8].get().fd, 1, 0) == b"8"
    assert cache.limit == 4


def test_unreadable_blocks_come_back_as_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 4096 + b"b" * 4096 + b"c" * 100)
    real = os.pread

    def bad_block(fd: int, length: int, position: int) -> bytes:
        if position < 8192 and position + length > 4096:
            raise OSError(errno.EIO, "input/output error")
        return real(fd, length, position)

    file = OpenFile(path, os.O_RDONLY)
    monkeypatch.setattr(os, "pread", bad_block)

    assert pread_fully(file.fd, 9000, 0) == b"a" * 4096 + bytes(4096) + b"c" * 100


def test_short_reads_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: real(fd, min(length, 7), at))

    file = OpenFile(path, os.O_RDONLY)

    assert pread_fully(file.fd, 50, 100) == bytes(range(100, 150))
    assert pread_fully(file.fd, 50, 180) == bytes(range(180, 200))


def test_a_replacement_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    replace_file(path, b"old")

    def refuse(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="no space"):
        replace_file(path, b"new")

    assert path.read_bytes() == b"old"


def test_the_default_limit_leaves_descriptors_for_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for soft, expected in ((1024, 512), (1_000_000, 900), (-1, 900), (8, 16)):
        monkeypatch.setattr(files.resource, "getrlimit", lambda _, s=soft: (s, s))
        assert files.default_open_files() == expected
