import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import scanner
from headrace.log.files import OpenFile
from headrace.log.scanner import Scan, scan_file
from headrace.records.builder import build_batch
from headrace.records.record import Record


def batch(offset: int, value: bytes = b"v" * 30, count: int = 1) -> bytes:
    records = [Record(i, 1, None, value, []) for i in range(count)]
    return bytes(build_batch(records, base_offset=offset))


def scan(path: Path, data: bytes, **options: Any) -> tuple[Scan, list[int]]:
    path.write_bytes(data)
    file = OpenFile(path, os.O_RDONLY)
    seen: list[int] = []
    result = scan_file(
        file.fd, 0, len(data), 0, lambda fields, *_: seen.append(fields[0]), **options
    )
    return result, seen


def test_every_batch_is_seen_whatever_the_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(batch(n, b"x" * (n * 37 % 400)) for n in range(50))

    for piece in (1, 61, 100, 1000, 10**6):
        monkeypatch.setattr(scanner, "PIECE_BYTES", piece)
        result, seen = scan(tmp_path / "log", data)
        assert (result, seen) == (Scan(len(data), 50, []), list(range(50)))


def test_gaps_in_the_offsets_are_no_damage(tmp_path: Path) -> None:
    data = batch(3) + batch(10) + batch(11) + batch(500)

    assert scan(tmp_path / "log", data)[0] == Scan(len(data), 501, [])


@pytest.mark.parametrize("bit", [0, 1, 3, 20, 40, 62])
def test_a_flipped_bit_in_an_offset_is_damage_to_that_batch_only(tmp_path: Path, bit: int) -> None:
    good = [batch(offset) for offset in range(100, 110)]
    bad = bytearray(good[4])
    bad[7 - bit // 8] ^= 1 << bit % 8
    data = b"".join(good[:4]) + bytes(bad) + b"".join(good[5:])

    result, seen = scan(tmp_path / "log", data)

    assert seen == [100, 101, 102, 103, 105, 106, 107, 108, 109]
    (damage,) = result.damages
    size = len(good[0])
    assert damage[:4] == (4 * size, 5 * size, 104, 105)


def test_offsets_that_belong_to_the_next_segment_are_damage(tmp_path: Path) -> None:
    result, seen = scan(tmp_path / "log", batch(0) + batch(1) + batch(2), offset_limit=2)

    assert seen == [0, 1]
    assert "past the segment's end" in result.damages[0].reason


def test_a_large_batch_behind_damage_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_RESYNC_WINDOWS", (4096, 100_000))
    data = b"\xff" * 1000 + batch(7, b"y" * 30_000)

    result, seen = scan(tmp_path / "log", data)

    assert seen == [7]
    assert result.damages[0][:4] == (0, 1000, 0, 7)


def test_an_absurd_length_does_not_hide_what_follows(tmp_path: Path) -> None:
    first = bytearray(batch(0))
    first[8:12] = (2**31 - 1).to_bytes(4, "big")

    result, seen = scan(tmp_path / "log", bytes(first) + batch(1) + batch(2))

    assert seen == [1, 2]
    assert "where" in result.damages[0].reason


@given(st.binary(max_size=300), st.integers(0, 4), st.integers(0, 4))
def test_noise_between_batches_is_never_seen_as_one(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, before: int, after: int
) -> None:
    good = b"".join(batch(n) for n in range(before))
    behind = b"".join(batch(n) for n in range(before, before + after))
    path = tmp_path_factory.getbasetemp() / "noise.log"

    result, seen = scan(path, good + noise + behind)

    assert seen == list(range(before + after))
    assert bool(result.damages) == bool(noise)
