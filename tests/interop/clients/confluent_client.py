"""confluent-kafka, that is librdkafka."""

from collections.abc import Sequence

import confluent_kafka as ck
from tests.interop.clients.client import READ_TIMEOUT_S, Message


class ConfluentClient:
    name = "confluent"
    sets_timestamps = True
    sends_null_headers = True
    sends_any_bytes = True

    def why_absent(self) -> str | None:
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        producer = ck.Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        failures: list[ck.KafkaError] = []
        for message in messages:
            producer.produce(
                topic,
                partition=partition,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                timestamp=message.timestamp_ms or 0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        left = producer.flush(READ_TIMEOUT_S)
        assert (left, failures) == (0, [])

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        consumer = ck.Consumer(
            # librdkafka wants a group even where assign() never uses it.
            {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
        )
        try:
            consumer.assign([ck.TopicPartition(topic, partition, ck.OFFSET_BEGINNING)])
            received: list[Message] = []
            while len(received) < count:
                polled = consumer.consume(count - len(received), READ_TIMEOUT_S)
                if not polled:
                    break
                for message in polled:
                    assert message.error() is None, message.error()
                    received.append(_message(message))
            return received
        finally:
            consumer.close()


def _message(message: ck.Message) -> Message:
    headers = tuple(message.headers() or ())
    return Message(message.key(), message.value(), headers, message.timestamp()[1])
