"""kafka-python: pure Python, with its codecs in separate packages."""

import warnings
from collections.abc import Sequence

with warnings.catch_warnings():
    # Its import reads schemas through a function of importlib that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.codec import has_lz4, has_snappy, has_zstd

    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.interop.clients.client import READ_TIMEOUT_S, Message


class KafkaPythonClient:
    name = "kafka-python"
    sets_timestamps = True
    sends_null_headers = False  # it asks for bytes
    sends_any_bytes = True

    def why_absent(self) -> str | None:
        if has_snappy() and has_lz4() and has_zstd():
            return None
        return "kafka-python has not all codecs: pip install kafka-python[snappy,lz4,zstd]"

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    partition=partition,
                    key=message.key,
                    value=message.value,
                    headers=list(message.headers),
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            for future in futures:
                future.get(READ_TIMEOUT_S)
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            consumer_timeout_ms=READ_TIMEOUT_S * 1000,
        )
        try:
            assigned = TopicPartition(topic, partition)
            consumer.assign([assigned])
            consumer.seek_to_beginning(assigned)
            received: list[Message] = []
            for record in consumer:
                headers = tuple((name, value) for name, value in record.headers)
                received.append(Message(record.key, record.value, headers, record.timestamp))
                if len(received) == count:
                    break
            return received
        finally:
            consumer.close()
