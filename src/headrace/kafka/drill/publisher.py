"""Publishers: under load, at a steady rate with every acknowledgement booked; or much at once.

One thread each. Under load it sends on through a fault, as an application would: messages queue
up in librdkafka until somebody leads again. The books are its own; others only read them.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.client.bus import Bus
from headrace.client.error_table import is_fatal, sentence_of
from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, make_producer
from headrace.kafka.drill.acks import AckSeries
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.ledger import Account
from headrace.kafka.drill.message import PARTITIONER, decode, encode, padding

_LONGEST_POLL_S = 0.05  # how soon it sees that it is to stop
_ROOM_S = 0.1
_LOOK_EVERY = 10_000  # messages of a bulk
_MAX_RETRY_BACKOFF_MS = 250  # 1 s by default, on top of every election
# Longer than any scenario may take: a message is given up only when all is lost.
_MESSAGE_TIMEOUT_MS = 300_000
# What waits while nobody leads: an election's time at the highest rate that makes sense.
_MAX_QUEUED_MESSAGES = 500_000
_MAX_QUEUED_KBYTES = 128 * 1024

Config = dict[str, object]


def publisher_config(timeouts: Timeouts) -> Config:
    """Idempotent, acks=all: what is acknowledged is there once, in order."""
    return {
        **timeouts.client_config(),
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": PARTITIONER,
        "retry.backoff.max.ms": _MAX_RETRY_BACKOFF_MS,
        "message.timeout.ms": _MESSAGE_TIMEOUT_MS,
        "queue.buffering.max.messages": _MAX_QUEUED_MESSAGES,
        "queue.buffering.max.kbytes": _MAX_QUEUED_KBYTES,
    }


class Publisher(threading.Thread):
    """Started with `start`, ended with `finish`. `now_s` is the timeline's clock."""

    def __init__(
        self,
        bus: Bus,
        config: Config,
        topic: str,
        accounts: Sequence[Account],
        *,
        rate: float,
        message_bytes: int,
        now_s: Callable[[], float],
        on_failure: Callable[[str], None] = lambda _text: None,
    ) -> None:
        super().__init__(name=f"drill-publisher-{accounts[0].stream.publisher}", daemon=True)
        self.accounts = accounts
        self.acks = AckSeries()
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.fatal_error: str | None = None
        self._by_stream = {account.stream.number: account for account in accounts}
        self._producer = make_producer(bus, {**config, "on_delivery": self._on_delivery})
        self._topic = topic
        self._interval_s = 1 / rate
        self._padding = padding(message_bytes)
        self._now_s = now_s
        self._on_failure = on_failure
        self._is_stopping = threading.Event()

    @property
    def settled(self) -> int:
        """Messages that were answered for, one way or the other."""
        return self.acknowledged + self.failed

    def run(self) -> None:
        """Send what is due, take in what came back, until told to stop."""
        next_at = time.monotonic()
        while not self._is_stopping.is_set() and self.fatal_error is None:
            now = time.monotonic()
            while next_at <= now and self._send():
                next_at += self._interval_s
            # After a full queue it goes on at its rate; catching up would be another load.
            next_at = max(next_at, now - 1)
            self._producer.poll(max(0.0, min(next_at - time.monotonic(), _LONGEST_POLL_S)))

    def stop(self) -> None:
        """Send nothing new from now on."""
        self._is_stopping.set()

    def finish(self, timeout_s: float) -> bool:
        """Stop sending, wait for what is on its way; whether all of it was answered for."""
        self.stop()
        if self.is_alive():
            self.join()
        return bool(self._producer.flush(timeout_s) == 0)

    def _send(self) -> bool:
        account = self.accounts[self.sent % len(self.accounts)]
        value = encode(account.stream.number, account.sent, self._padding)
        try:
            with bus_errors():
                self._producer.produce(self._topic, value, account.stream.key)
        except BufferError:
            self._producer.poll(_ROOM_S)
            return False
        except BusError as error:
            self._on_failure(str(error))
            if is_fatal(error.reason):
                # An idempotent producer that lost its thread refuses to go on, rightly.
                self.fatal_error = str(error)
            self._producer.poll(_ROOM_S)
            return False
        account.sent += 1
        self.sent += 1
        return True

    def _on_delivery(self, error: Any, message: Any) -> None:
        place = decode(message.value())
        assert place is not None, "a publisher is told of its own messages only"
        stream, sequence = place
        account = self._by_stream[stream]
        if error is None:
            account.acknowledged.add(sequence)
            self.acknowledged += 1
        else:
            account.failed.add(sequence)
            self.failed += 1
            self._on_failure(sentence_of(error))
        self.acks.add(self._now_s(), message.latency() or 0.0)


def write_bulk(
    bus: Bus,
    config: Config,
    topic: str,
    accounts: Sequence[Account],
    *,
    messages: int,
    message_bytes: int,
    on_progress: Callable[[int], None],
) -> None:
    """Send `messages` over the accounts' streams in turn and wait until all are answered for.

    As fast as Python can: librdkafka reports failures only, which saves a call for each message,
    and what it no longer holds and has not reported is acknowledged. `on_progress` is told how
    many are sent, and ends it all by raising.
    """
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
    producer = make_producer(bus, bulk_config)
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
