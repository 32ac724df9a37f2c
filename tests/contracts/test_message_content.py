"""What is in a message comes out as it went in: text, bytes, headers, nothing at all."""

import pytest
from tests.contracts.bus import Bus
from tests.interop.clients import CLIENTS, Message

ALL_BYTES = bytes(range(256))
TEXT = "Grüße, 世界, 🚀, \u0000, e\u0301"


@pytest.mark.parametrize(
    "content",
    [TEXT.encode(), ALL_BYTES, b"", None],
    ids=["UTF-8", "all bytes", "empty", "null"],
)
def test_keys_values_and_headers_come_back_as_they_are(
    bus: Bus, topic: str, content: bytes | None
) -> None:
    bus.send(topic, [content], key=content, headers=[("h", content)])

    (message,) = bus.read(topic)

    assert message.value() == content
    assert message.key() == content
    assert message.headers() == [("h", content)]


def test_a_message_without_headers_has_none(bus: Bus, topic: str) -> None:
    bus.send(topic, [b"v"])

    assert not bus.read(topic)[0].headers()


def test_headers_keep_their_order_and_may_repeat(bus: Bus, topic: str) -> None:
    headers = [("b", b"1"), ("a", b"2"), ("b", b"3"), ("世界", TEXT.encode()), ("", b"no name")]

    bus.send(topic, [b"v"], headers=headers)

    assert bus.read(topic)[0].headers() == headers


def test_other_clients_read_and_write_the_same(bus: Bus) -> None:
    topic = bus.new_topic(retention_ms=-1)
    sent = [
        Message(ALL_BYTES, ALL_BYTES, (("h", ALL_BYTES), ("h", b"")), 1_700_000_000_000),
        Message(TEXT.encode(), b"", (), 1_700_000_000_001),
        Message(b"", None, (("h", TEXT.encode()),), 1_700_000_000_002),
    ]
    others = [CLIENTS["kafka-python"], CLIENTS["aiokafka"]]
    for client in others:
        client.write(bus.bootstrap, topic, 0, "none", sent)

    expected = sent * len(others)
    for client in others:
        assert client.read(bus.bootstrap, topic, 0, len(expected)) == expected
    assert [
        Message(each.key(), each.value(), tuple(each.headers() or ()), each.timestamp()[1])
        for each in bus.read(topic)
    ] == expected
