"""Many messages as fast as Python can: what a follower misses while it is away.

librdkafka reports failures only, which saves a call for each message; what it no longer
holds and has not reported is acknowledged.
"""

from collections.abc import Callable, Sequence
from typing import Any

from headrace.kafka.drill.clients import Config
from headrace.kafka.drill.ledger import Account
from headrace.kafka.drill.message import decode, encode, padding

_LOOK_EVERY = 10_000
_ROOM_S = 0.1


def write_bulk(
    config: Config,
    topic: str,
    accounts: Sequence[Account],
    *,
    messages: int,
    message_bytes: int,
    on_progress: Callable[[int], None],
) -> None:
    """Send `messages` over the accounts' streams in turn and wait until all are answered for.

    `on_progress` is told how many are sent, and ends it all by raising.
    """
    from confluent_kafka import Producer

    by_stream = {account.stream.number: account for account in accounts}

    def on_delivery(error: Any, message: Any) -> None:
        place = decode(message.value())
        if error is not None and place is not None:
            by_stream[place[0]].failed.add(place[1])

    bulk_config = {
        **config,
        "delivery.report.only.error": True,
        "linger.ms": 20,
        "batch.size": 256 * 1024,
        "on_delivery": on_delivery,
    }
    producer: Any = Producer(bulk_config)
    produce, fill = producer.produce, padding(message_bytes)
    try:
        for number in range(messages):
            account = accounts[number % len(accounts)]
            stream = account.stream
            value = encode(stream.number, account.sent, fill)
            while True:
                try:
                    produce(topic, value, stream.key)
                    break
                except BufferError:
                    producer.poll(_ROOM_S)
                    on_progress(number)
            account.sent += 1
            if number % _LOOK_EVERY == 0:
                producer.poll(0)
                on_progress(number)
        while producer.flush(_ROOM_S):
            on_progress(messages)
    except BaseException:
        producer.purge()  # or librdkafka would go on in the background
        raise
    for account in accounts:
        account.settle_the_rest()
