"""Every client writes with every codec, and every client reads what every other wrote."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.interop.clients import CLIENTS, Client, Message
from tests.interop.wire import T0, WireClient

from headrace.records.batch import BatchHeader, peek_header
from headrace.records.codecs import Codec
from headrace.testing import RunningBroker, running_broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.java) if name == "java" else name


EVERY_CLIENT = [_marked(name) for name in CLIENTS]
ANY_BYTES_CLIENTS = [name for name, client in CLIENTS.items() if client.sends_any_bytes]


class Written(NamedTuple):
    """What one client wrote into its topic, and between which moments."""

    topic: str
    messages: list[Message]
    starts: dict[str, int]  # offset of the first message of each codec
    from_ms: int
    to_ms: int

    def of(self, codec: str) -> range:
        start = self.starts[codec]
        return range(start, start + len(self.messages) // len(CODECS))


def messages_of(writer: str, codec: str) -> list[Message]:
    """One message of every kind; the texts name the writer, so that none can be mistaken."""
    tag = f"{writer}-{codec}".encode()
    kinds = [
        Message(b"plain", b"value of " + tag),
        Message(None, b"no key, " + tag),
        Message(b"empty", b""),
        Message(b"tombstone", None),
        Message(b"one header", b"by " + tag, (("codec", codec.encode()),)),
        Message(
            b"headers",
            b"by " + tag,
            (("twice", b"1"), ("twice", b"2"), ("null", None), ("empty", b"")),
        ),
        Message(b"tombstone", None, (("why", b"because"),)),
        Message("schlüssel".encode(), "wert €".encode(), (("köpfe", b"ja"),)),
        Message(b"long", b"the quick brown fox of " + tag + b" jumps. " * 2000),
    ]
    return [kind._replace(timestamp_ms=T0 + 1000 * index) for index, kind in enumerate(kinds)]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture(scope="module")
def written_by(broker: RunningBroker) -> Callable[[str], Written]:
    """Let a client write all codecs one after the other into partition 0, the first time asked."""
    done: dict[str, Written] = {}

    def write(name: str) -> Written:
        _need(name)
        if name not in done:
            done[name] = _write_all_codecs(broker, name)
        return done[name]

    return write


@pytest.fixture(scope="module")
def read_by(
    broker: RunningBroker, written_by: Callable[[str], Written]
) -> Callable[[str, str], list[Message]]:
    """Let a client read all that another wrote, the first time asked."""
    done: dict[tuple[str, str], list[Message]] = {}

    def read(reader: str, writer: str) -> list[Message]:
        _need(reader)
        written = written_by(writer)
        if (reader, writer) not in done:
            done[reader, writer] = CLIENTS[reader].read(
                broker.bootstrap, written.topic, 0, len(written.messages)
            )
        return done[reader, writer]

    return read


def _need(name: str) -> None:
    if reason := CLIENTS[name].why_absent():
        pytest.skip(reason)


def _write_all_codecs(broker: RunningBroker, name: str) -> Written:
    client = CLIENTS[name]
    topic = f"from-{name}"
    _create(broker, topic)
    from_ms = _now_ms()
    messages: list[Message] = []
    starts: dict[str, int] = {}
    for codec in CODECS:
        starts[codec] = len(messages)
        block = [_as_sent(client, message) for message in messages_of(name, codec)]
        client.write(broker.bootstrap, topic, 0, codec, block)
        messages += block
    return Written(topic, messages, starts, from_ms, _now_ms())


def _as_sent(client: Client, message: Message) -> Message:
    """Leave out what the client has no words for."""
    if not client.sets_timestamps:
        message = message._replace(timestamp_ms=None)
    if not client.sends_null_headers:
        headers = tuple(header for header in message.headers if header[1] is not None)
        message = message._replace(headers=headers)
    return message


def _create(broker: RunningBroker, topic: str) -> None:
    with WireClient(broker.bootstrap) as wire:
        # T0 lies years back: retention would take the messages away.
        assert wire.create_topic(topic, retention_ms=-1).error_code == 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.feature("{writer}", "produce, {codec}")
@pytest.mark.feature("{reader}", "consume, {codec}")
@pytest.mark.parametrize("reader", EVERY_CLIENT)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", EVERY_CLIENT)
def test_what_one_client_writes_another_reads(
    writer: str,
    codec: str,
    reader: str,
    written_by: Callable[[str], Written],
    read_by: Callable[[str, str], list[Message]],
) -> None:
    written = written_by(writer)
    received = read_by(reader, writer)

    block = written.of(codec)
    for offset in block:
        expected, actual = written.messages[offset], received[offset]
        if expected.timestamp_ms is None:
            assert actual.timestamp_ms is not None
            assert written.from_ms <= actual.timestamp_ms <= written.to_ms
            actual = actual._replace(timestamp_ms=None)
        assert actual == expected, f"offset {offset}"


@pytest.mark.feature("{writer}", "produce, {codec}")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", EVERY_CLIENT)
def test_batches_are_stored_with_the_codec_the_client_chose(
    writer: str, codec: str, broker: RunningBroker, written_by: Callable[[str], Written]
) -> None:
    written = written_by(writer)

    block = written.of(codec)
    batches = [
        header
        for header in _headers_on_disk(broker.data_dir / f"{written.topic}-0")
        if header.base_offset in block
    ]

    used = {Codec(header.codec).name.lower() for header in batches}
    # librdkafka sends a small batch as it is when compression would make it larger;
    # the last message of a block is long enough to gain from every codec.
    assert Codec(batches[-1].codec).name.lower() == codec
    assert used <= {codec, "none"}
    assert sum(header.record_count for header in batches) == len(block)


def _headers_on_disk(directory: Path) -> Iterator[BatchHeader]:
    for path in sorted(directory.glob("*.log")):
        content = path.read_bytes()
        position = 0
        while header := peek_header(content, position):
            yield header
            position += header.size


@pytest.mark.feature("{writer}", "any bytes in keys, values and headers")
@pytest.mark.feature("{reader}", "any bytes in keys, values and headers")
@pytest.mark.parametrize("reader", ANY_BYTES_CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", ANY_BYTES_CLIENTS)
def test_any_bytes_come_through(
    writer: str, codec: str, reader: str, broker: RunningBroker, tmp_path: Path
) -> None:
    _need(writer)
    _need(reader)
    every_byte = bytes(range(256))
    messages = [
        Message(every_byte, every_byte[::-1], (("all", every_byte),), T0),
        Message(b"", b"\0" * 100_000, (), T0 + 1),
        Message(b"\n", b"\r\n\x1e|~", (), T0 + 2),
    ]
    topic = f"bytes-{writer}-{codec}-{reader}"
    _create(broker, topic)

    CLIENTS[writer].write(broker.bootstrap, topic, 0, codec, messages)

    assert CLIENTS[reader].read(broker.bootstrap, topic, 0, len(messages)) == messages
