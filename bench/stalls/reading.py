"""Loads that read: offsets by time, absurd and wide fetches, a cold replay."""

import io
import os
import random
import struct
import threading
import time
from pathlib import Path
from typing import Any

from kio.schema.fetch.v12.request import FetchPartition
from kio.schema.fetch.v12.response import FetchResponse
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i64

from bench.loads import FETCH_BATCH_MESSAGES, MESSAGE_BYTES
from bench.stalls import frames
from bench.stalls.load import Attack
from bench.stalls.offenders import CulpritAccount, Offender, over_and_over, together
from bench.stalls.testbed import Testbed
from headrace.client.bus import Bus
from headrace.client.librdkafka import make_consumer, places
from headrace.records.builder import build_batch, numbered
from headrace.records.codecs import Codec
from headrace.records.record import Record

_SEED = 12
_HOUR_MS = 3_600_000
_COLD_FETCH_BYTES = 10 * 1024 * 1024
_RETENTION_MS = 7 * 24 * _HOUR_MS
_CONSUMER_START_S = 60.0  # at most: librdkafka asks for the ends of all partitions first
_FOLLOW_UPS_S = 60.0
_END = -1  # of a partition, to librdkafka
_BROKER = 4  # Kafka's number of that resource type
_MARK = 0x7A7B7C7D  # an index that stands for others while a request is encoded
# Answer to a Fetch v12: correlation id, tags, throttle time, error code, session id.
_SESSION_ID_AT = 4 + 1 + 4 + 2


def offsets_by_time(testbed: Testbed) -> Attack:
    """50 partitions, half of them compressed: the record asked for is the last of 1 MB."""
    partitions = testbed.count(50, 4)
    testbed.create_topic("timed", partitions)
    first_ms = int(time.time() * 1000) - _HOUR_MS
    rng = random.Random(_SEED)
    plain = _timed_batch(rng, first_ms, records=8_000, value_bytes=110, codec=Codec.NONE)
    packed = _timed_batch(rng, first_ms, records=12_000, value_bytes=70, codec=Codec.ZSTD)
    for partition in range(partitions):
        testbed.ask(frames.produce([("timed", partition, packed if partition % 2 else plain)]))
    asked = [
        {"partition_index": index, "timestamp": first_ms + (11_999 if index % 2 else 7_999)}
        for index in range(partitions)
    ]
    topics = [{"name": "timed", "partitions": asked}]
    question = frames.encode(
        frames.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics
    )

    def attack(outcome: CulpritAccount) -> None:
        over_and_over(testbed.port, [question], outcome, connections=4, seconds=testbed.seconds(8))

    return attack


def _timed_batch(
    rng: random.Random, first_ms: int, *, records: int, value_bytes: int, codec: Codec
) -> bytes:
    """One batch whose records are a millisecond apart."""
    values = [rng.randbytes(value_bytes) for _ in range(records)]
    made = [Record(at, first_ms + at, None, value, []) for at, value in enumerate(values)]
    return bytes(build_batch(made, codec=codec))


def million_partitions(testbed: Testbed) -> Attack:
    """One Fetch that names a million partitions, then ten short ones in its session."""
    count = testbed.count(1_000_000, 1000)
    testbed.create_topic("fetched")
    out = io.BytesIO()
    asked = FetchPartition(
        partition=i32(_MARK), fetch_offset=i64(0), partition_max_bytes=i32(1024 * 1024)
    )
    entity_writer(FetchPartition)(out, asked)
    element = out.getvalue()
    one = frames.fetch({"fetched": [(_MARK, 0)]}, session=(0, 0), max_bytes=1024 * 1024)
    many = (struct.pack(">i", index) + element[4:] for index in range(count))
    opening = frames.stretch(one, element, many)

    def attack(outcome: CulpritAccount) -> None:
        with Offender(testbed.port, outcome) as offender:
            answer = offender.ask(opening)
            if answer is None:
                return
            session_id = struct.unpack_from(">i", answer, _SESSION_ID_AT)[0]
            outcome.notes.append("a session" if session_id else "no session")
            deadline = time.monotonic() + _FOLLOW_UPS_S
            for epoch in range(1, 11):
                if time.monotonic() > deadline:
                    break  # the account says how many it came to
                offender.ask(frames.fetch({}, session=(session_id, epoch), max_wait_ms=0))

    return attack


def wide_consumer(testbed: Testbed) -> Attack:
    """A consumer at the end of 5,000 partitions, a producer to random ones, config changes."""
    topics = [f"wide-{number}" for number in range(10)]
    partitions = testbed.count(500, 20)
    testbed.create_topics(topics, partitions)
    rng = random.Random(_SEED)
    batch = bytes(build_batch(numbered([b"w" * 100], timestamp=int(time.time() * 1000))))
    written = [
        frames.produce([(rng.choice(topics), rng.randrange(partitions), batch)]) for _ in range(500)
    ]
    seconds = testbed.seconds(15)

    def attack(outcome: CulpritAccount) -> None:
        is_over = threading.Event()
        read = [0]

        def produce() -> None:
            began_at = time.monotonic()
            limits = seconds, seconds + _CONSUMER_START_S  # a busy machine needs the second
            with Offender(testbed.port, outcome) as offender:
                while offender.is_open and time.monotonic() - began_at < limits[not read[0]]:
                    offender.ask(rng.choice(written))
                    time.sleep(0.003)
            is_over.set()

        def change_configs() -> None:
            with Offender(testbed.port, outcome) as offender:
                while offender.is_open and not is_over.wait(2):
                    value = str(_RETENTION_MS + rng.randrange(1000))
                    offender.ask(frames.alter_config(_BROKER, "", "log.retention.ms", value))

        together([produce, change_configs, lambda: _consume_all(testbed, is_over, read)])
        outcome.facts["messages_read"] = read[0]
        outcome.notes.append(f"the consumer read {read[0]:,} messages")

    def _consume_all(testbed: Testbed, is_over: threading.Event, read: list[int]) -> None:
        consumer = make_consumer(Bus(f"127.0.0.1:{testbed.port}"), {"group.id": "wide"})
        everywhere = ((topic, partition) for topic in topics for partition in range(partitions))
        consumer.assign(places(dict.fromkeys(everywhere, _END)))
        while not is_over.is_set():
            read[0] += sum(one.error() is None for one in consumer.consume(500, 0.1))
        consumer.close()

    return attack


def cold_replay(testbed: Testbed) -> Attack:
    """1 GB that is on the disk and nowhere else, read by one consumer after a restart."""
    testbed.create_topic("cold")
    size = FETCH_BATCH_MESSAGES * MESSAGE_BYTES
    batches = testbed.count(1_000_000_000 // size, 100)
    batch_bytes = testbed.write(
        "cold",
        1,
        value_bytes=MESSAGE_BYTES,
        messages=FETCH_BATCH_MESSAGES,
        requests=batches,
        connections=1,
    )
    directory = testbed.broker.data_directory
    testbed.restart(lambda: _drop_pages(directory))

    def attack(outcome: CulpritAccount) -> None:
        began_at, offset, total = time.monotonic(), 0, 0
        with Offender(testbed.port, outcome) as offender:
            while offset < batches * FETCH_BATCH_MESSAGES:
                frame = frames.fetch({"cold": [(0, offset)]}, max_bytes=_COLD_FETCH_BYTES)
                answer = offender.ask(frame)
                whole = len(_records_in(answer)) // batch_bytes if answer else 0
                if not whole:
                    outcome.notes.append(f"nothing at offset {offset:,}")
                    break
                offset += whole * FETCH_BATCH_MESSAGES
                total += whole * batch_bytes
        seconds = time.monotonic() - began_at
        outcome.facts |= {"messages": batches * FETCH_BATCH_MESSAGES, "messages_read": offset}
        outcome.notes.append(f"{total / 1e9:.2f} GB read in {seconds:.1f} s")

    return attack


def _records_in(answer: bytes) -> bytes:
    _, start = entity_reader(FetchResponse.__header_schema__)(answer, 0)
    response: Any = entity_reader(FetchResponse)(answer, start)[0]
    return response.responses[0].partitions[0].records or b""


def _drop_pages(directory: Path) -> None:
    """Write everything out and let the kernel forget it."""
    os.sync()
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
