"""A publisher under load: sends at a steady rate and books every acknowledgement.

One thread each. It sends on through a fault, as an application would: messages queue up in
librdkafka until somebody leads again. The books are its own; others only read them.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.kafka.drill.acks import AckSeries
from headrace.kafka.drill.clients import Config
from headrace.kafka.drill.ledger import Account
from headrace.kafka.drill.message import decode, encode, padding

_LONGEST_POLL_S = 0.05  # how soon it sees that it is to stop
_ROOM_S = 0.1


class Publisher(threading.Thread):
    """Started with `start`, ended with `finish`. `now_s` is the timeline's clock."""

    def __init__(
        self,
        config: Config,
        topic: str,
        accounts: Sequence[Account],
        *,
        rate: float,
        message_bytes: int,
        now_s: Callable[[], float],
        on_failure: Callable[[str], None] = lambda _text: None,
    ) -> None:
        from confluent_kafka import Producer

        super().__init__(name=f"drill-publisher-{accounts[0].stream.publisher}", daemon=True)
        self.accounts = accounts
        self.acks = AckSeries()
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.fatal_error: str | None = None
        self._by_stream = {account.stream.number: account for account in accounts}
        self._producer: Any = Producer({**config, "on_delivery": self._on_delivery})
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
        from confluent_kafka import KafkaException

        account = self.accounts[self.sent % len(self.accounts)]
        value = encode(account.stream.number, account.sent, self._padding)
        try:
            self._producer.produce(self._topic, value, account.stream.key)
        except BufferError:
            self._producer.poll(_ROOM_S)
            return False
        except KafkaException as error:
            reason = error.args[0]
            self._on_failure(reason.str())
            if reason.fatal() or reason.code() == reason._FATAL:
                # An idempotent producer that lost its thread refuses to go on, rightly.
                self.fatal_error = reason.str()
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
            self._on_failure(error.str())
        self.acks.add(self._now_s(), message.latency() or 0.0)
