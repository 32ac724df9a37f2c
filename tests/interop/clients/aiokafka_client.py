"""aiokafka."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from tests.interop.clients.client import READ_TIMEOUT_S, Message


class AiokafkaClient:
    name = "aiokafka"
    sets_timestamps = True
    sends_null_headers = True
    sends_any_bytes = True

    def why_absent(self) -> str | None:
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        asyncio.run(_write(bootstrap, topic, partition, codec, messages))

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        return asyncio.run(_read(bootstrap, topic, partition, count))


async def _write(
    bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
    )
    async with producer:
        acknowledgements = [
            await producer.send(
                topic,
                partition=partition,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        await asyncio.wait_for(asyncio.gather(*acknowledgements), READ_TIMEOUT_S)


async def _read(bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    async with consumer:
        assigned = TopicPartition(topic, partition)
        consumer.assign([assigned])
        await consumer.seek_to_beginning(assigned)
        received: list[Message] = []
        while len(received) < count:
            polled = await consumer.getmany(
                timeout_ms=READ_TIMEOUT_S * 1000, max_records=count - len(received)
            )
            if not polled:
                break
            received += [
                Message(record.key, record.value, tuple(record.headers), record.timestamp)
                for records in polled.values()
                for record in records
            ]
        return received
