"""Loads that write: bombs, absurd requests, hoarders, and many who wait for a slow disk."""

import io
import random
import resource
import struct
import threading
import time
from contextlib import ExitStack
from functools import partial

from kio.schema.produce.v10.request import PartitionProduceData
from kio.serial import entity_writer
from kio.static.primitive import Records, i32

from bench.clients import replay
from bench.errors import BenchError
from bench.requests import write_produce_requests
from bench.stalls import frames
from bench.stalls.load import Attack
from bench.stalls.offenders import CulpritAccount, Offender, all_at_once, together
from bench.stalls.testbed import Testbed
from headrace.records.builder import build_batch, numbered
from headrace.records.codecs import Codec

_SEED = 12
_BOMB_BYTES = 120_000_000
_SNAPPY_BOMB_BYTES = 20_000_000  # it shrinks 21-fold at most, and a batch may have 1 MiB
_ZSTD_PADDING_BYTES = 140_000  # zeros alone would be 11 kB: as large as the others
_TINY_BOMB_BYTES = 2_000_000
_LARGE_BATCH_BYTES = 1_040_000  # 100 of them are just within socket.request.max.bytes
_MARK = 0x7A7B7C7D
_HOARD_BYTES = 100_000_000
_HOARDED_FIRST_BYTES = 1_000_000  # of all together more than a broker sets aside for requests
_TRICKLE_S = 2.0
_HOARDING_S = 40.0  # at every scale: patience is what is tested
_SPARE_FILES = 256


def bombs(testbed: Testbed) -> Attack:
    """40 small batches of each codec that become 20 to 120 MB each, over 8 connections."""
    testbed.create_topic("bombs", 8)
    count = testbed.count(40, 8)
    padding = random.Random(_SEED).randbytes(_ZSTD_PADDING_BYTES)
    made = [
        _bomb(Codec.ZSTD, bytes(_BOMB_BYTES) + padding),
        _bomb(Codec.GZIP, bytes(_BOMB_BYTES)),
        _bomb(Codec.LZ4, bytes(_BOMB_BYTES)),
        _bomb(Codec.SNAPPY, bytes(_SNAPPY_BOMB_BYTES)),
    ]
    scripts = [
        [
            frames.produce([("bombs", number % 8, made[number % len(made)])])
            for number in range(connection, count, 8)
        ]
        for connection in range(8)
    ]
    return partial(_storm, testbed, scripts)


def tiny_bombs(testbed: Testbed) -> Attack:
    """2,000 batches of under 200 bytes that become 2 MB each, on one connection in one go."""
    testbed.create_topic("bombs", 8)
    bomb = _bomb(Codec.ZSTD, bytes(_TINY_BOMB_BYTES))
    script = [
        frames.produce([("bombs", number % 8, bomb)]) for number in range(testbed.count(2000, 50))
    ]
    return partial(_storm, testbed, [script])


def _storm(testbed: Testbed, scripts: list[list[frames.Frame]], outcome: CulpritAccount) -> None:
    all_at_once(testbed.port, scripts, outcome)


def _bomb(codec: Codec, value: bytes) -> bytes:
    now_ms = int(time.time() * 1000)
    return bytes(build_batch(numbered([value], timestamp=now_ms), codec=codec))


def huge_produce(testbed: Testbed) -> Attack:
    """Requests of 100 MB: 100 batches of 1 MB to 100 partitions, three times."""
    partitions = testbed.count(100, 10)
    testbed.create_topic("huge", partitions)
    value = random.Random(_SEED).randbytes(1000)
    records = numbered([value] * (_LARGE_BATCH_BYTES // 1010), timestamp=int(time.time() * 1000))
    batch = bytes(build_batch(records))
    request = frames.produce([("huge", index, batch) for index in range(partitions)])

    def attack(outcome: CulpritAccount) -> None:
        with Offender(testbed.port, outcome) as offender:
            for _ in range(3):
                offender.ask(request)

    return attack


def absurd_produce(testbed: Testbed) -> Attack:
    """A Produce that names 100,000 partitions, 100 of which exist, each with a tiny batch."""
    count = testbed.count(100_000, 1000)
    testbed.create_topic("absurd", 100)
    batch = bytes(build_batch(numbered([b"a"], timestamp=int(time.time() * 1000))))
    out = io.BytesIO()
    data = PartitionProduceData(index=i32(_MARK), records=Records(batch))
    entity_writer(PartitionProduceData)(out, data)
    element = out.getvalue()
    many = (struct.pack(">i", index) + element[4:] for index in range(count))
    request = frames.stretch(frames.produce([("absurd", _MARK, batch)]), element, many)

    def attack(outcome: CulpritAccount) -> None:
        with Offender(testbed.port, outcome) as offender:
            for _ in range(3):
                offender.ask(request)

    return attack


def hoarders(testbed: Testbed) -> Attack:
    """500 who trickle into frames of 100 MB, beside one who sends 5 MB at a time."""
    _allow_open_files()
    count = testbed.count(500, 50)
    testbed.create_topic("normal", 5)
    value = random.Random(_SEED).randbytes(1000)
    records = numbered([value] * 1000, timestamp=int(time.time() * 1000))
    batch = bytes(build_batch(records))
    request = frames.produce([("normal", index, batch) for index in range(5)])
    begun = struct.pack(">i", _HOARD_BYTES) + request.data[4 : 4 + _HOARDED_FIRST_BYTES]
    seconds = _HOARDING_S

    def attack(outcome: CulpritAccount) -> None:
        is_over = threading.Event()

        def serve() -> None:
            with Offender(testbed.port, outcome) as client:
                while client.is_open and not is_over.wait(0.1):
                    client.ask(request)

        def hoard() -> None:
            _hoard(testbed, count, begun, seconds, outcome)
            is_over.set()

        together([serve, hoard])

    return attack


def _hoard(
    testbed: Testbed, count: int, begun: bytes, seconds: float, outcome: CulpritAccount
) -> None:
    """Trickle from all of them; note how many were let go and when the last was."""
    refused, last_at, began_at = 0, 0.0, time.monotonic()
    with ExitStack() as stack:
        hoarding = []
        for _ in range(count):
            try:
                one = stack.enter_context(Offender(testbed.port, CulpritAccount(), patience_s=5))
            except OSError:
                refused += 1
                continue
            if one.push(begun):
                hoarding.append(one)
            else:
                refused += 1
        while hoarding and time.monotonic() < began_at + seconds:
            time.sleep(_TRICKLE_S)
            kept = [one for one in hoarding if not one.is_closed_by_peer() and one.push(b"\0")]
            if len(kept) < len(hoarding):
                last_at = time.monotonic() - began_at
            hoarding = kept
        kept_count = len(hoarding)
    let_go = count - refused - kept_count
    outcome.facts |= {"hoarders": count, "let_go": let_go, "never_let_in": refused}
    outcome.facts["last_let_go_seconds"] = last_at
    outcome.notes.append(
        f"{let_go} of {count} hoarders let go within {last_at or seconds:.0f} s"
        + (f", {refused} never let in" if refused else "")
    )


def _allow_open_files() -> None:
    """As many connections as hoarders are more than the usual soft limit of files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 500 + _SPARE_FILES
    if soft < wanted <= hard or (soft < wanted and hard == resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def slow_disk(testbed: Testbed) -> Attack:
    """Thousands of acks=all requests that wait for a slow disk, and topics made meanwhile."""
    partitions = 16
    testbed.create_topic("slow", partitions)
    file = testbed.scratch / "slow.produce"
    write_produce_requests(
        file, topic="slow", partitions=partitions, value_bytes=100, messages=10, acks=-1
    )
    seconds = testbed.seconds(10)

    def attack(outcome: CulpritAccount) -> None:
        is_over = threading.Event()

        def produce() -> None:
            try:
                result = replay(
                    testbed.port, produce=file, connections=64, in_flight=60, seconds=seconds
                )
                assert result.produce is not None
                outcome.notes.append(f"{result.produce.requests:,} acks=all requests answered")
            except BenchError as error:
                outcome.notes.append(f"producers: {error}")
            is_over.set()

        def create() -> None:
            number = 0
            with Offender(testbed.port, outcome) as client:
                while client.is_open and not is_over.wait(0.05):
                    client.ask(frames.create_topics([f"meanwhile-{number}"], 1))
                    number += 1

        together([produce, create])

    return attack
