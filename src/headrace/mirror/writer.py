"""The one producer of a session: idempotent, in order, and never trying twice.

Kafka 4.3.1, killed and started again, was seen to take a retried batch of old records a second
time: same producer, epoch and sequence. Presumably it lets producers expire by their records' own
timestamps (`producer.id.expiration.ms`). So
retries are put off for longer than it takes to notice that something is wrong, and the session
ends before: the next one looks at what has arrived.
"""

import contextlib
from typing import Any

from headrace.client.error_table import NamedError, is_silence, is_too_large, sentence_of
from headrace.client.errors import BusError
from headrace.client.librdkafka import make_producer
from headrace.mirror.endpoint import UNKNOWN_S, Endpoint
from headrace.mirror.errors import MirrorError
from headrace.patience import Patience, StoppedError

# Larger than what brokers take by default: a batch that was small when it was compressed at the
# source may not be so here.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_QUEUED_MESSAGES = 200_000
_QUEUED_KBYTES = 128 * 1024
_LINGER_MS = 20  # full batches matter more than the first message's delay
_WAIT_S = 0.1
# Without an acknowledgement for so long, what was sent is looked for instead of sent again.
STALL_S = 15.0
_RETRY_MS = 60_000  # far more than STALL_S: librdkafka takes a fifth more or less of it


class SessionFailedError(Exception):
    """The producer cannot go on; another one may, from what has arrived."""


class ConnectionLostError(SessionFailedError):
    """What was sent may have arrived or not. Happens as often as brokers come and go."""


class Writer:
    """Owned by one thread. `raw.produce` is for the copy's inner loop, the rest for everyone."""

    def __init__(self, end: Endpoint, compression: str, client_id: str) -> None:
        self._end = end
        self._fatal: str | None = None
        self._is_lost = False  # whether a connection was lost
        self.raw: Any = make_producer(
            end.bus,
            end.config,
            {
                "client.id": client_id,
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "acks": "all",
                "message.timeout.ms": 0,
                "message.max.bytes": MAX_MESSAGE_BYTES,
                "compression.type": compression,
                "linger.ms": _LINGER_MS,
                "queue.buffering.max.messages": _QUEUED_MESSAGES,
                "queue.buffering.max.kbytes": _QUEUED_KBYTES,
                "retry.backoff.ms": _RETRY_MS,
                "retry.backoff.max.ms": _RETRY_MS,
                "reconnect.backoff.max.ms": 2000,
                "error_cb": self._on_error,
            },
        )

    def send(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """Queue a message that is not part of a copy."""
        while True:
            try:
                with self._end.errors():
                    self.raw.produce(topic, value, key, partition)
            except BufferError:
                self.wait()
            else:
                return

    def learn(self, topic: str, partitions: int) -> None:
        """Return when the producer knows the topic with this many partitions."""

        def ask() -> Any:
            return self.raw.list_topics(topic, timeout=self._end.timeout_s).topics[topic]

        def is_known() -> bool:
            known = self._end.ask(lambda: self._end.call(ask))
            return known.error is None and len(known.partitions) >= partitions

        if not self._end.patience(UNKNOWN_S).until(is_known):
            raise MirrorError(f"{self._end.label} does not know topic {topic} any more")

    def wait(self) -> None:
        """Wait a moment for acknowledgements, and room; raises StoppedError when told to stop."""
        self.raw.poll(_WAIT_S)
        self.check()
        if self._end.is_stopped():
            raise StoppedError

    def serve(self) -> None:
        """Take in what has been acknowledged."""
        self.raw.poll(0)
        self.check()

    def flush(self) -> None:
        """Return when everything queued has arrived; raises StoppedError when told to stop."""
        patience = Patience(STALL_S)
        while self.raw.flush(_WAIT_S):
            self.check()
            if self._end.is_stopped():
                raise StoppedError
            if patience.is_over:
                raise ConnectionLostError(f"no acknowledgement for {STALL_S:g} s")
        self.check()

    def flush_for(self, seconds: float) -> bool:
        """Whether everything queued has arrived within this time."""
        patience = Patience(seconds)
        while self.raw.flush(_WAIT_S):  # in slices: a second Ctrl-C is heard between them
            self.check()
            if patience.is_over:
                return False
        self.check()
        return True

    def check(self) -> None:
        """Raise SessionFailedError when the producer has given up."""
        if self._fatal is not None:
            raise SessionFailedError(self._fatal)
        if self._is_lost:
            if len(self.raw):
                raise ConnectionLostError("the connection was lost")
            self._is_lost = False

    def close(self) -> None:
        """Forget what has not arrived. Some of it may arrive all the same, for a while."""
        # To purge what is under way is a fatal error to a gapless producer, and confluent_kafka
        # raises it from whichever callback comes next.
        with contextlib.suppress(BusError, SystemError), self._end.errors():
            self.raw.purge(in_queue=True, in_flight=True, blocking=True)
            self.raw.flush(1)
        self.raw = None  # or its `error_cb`, which is ours, would keep both

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            self._fatal = error.str()
        elif is_silence(error):
            self._is_lost = True
        self._end.on_error(error)


def refusal(end: Endpoint, place: object, error: NamedError) -> MirrorError:
    """What a message the target does not take means."""
    if is_too_large(error):
        return MirrorError(
            f"{end.label} takes no message as large as the next of {place}; raise "
            "message.max.bytes and replica.fetch.max.bytes there"
        )
    return MirrorError(f"{end.label} refused a message of {place}: {sentence_of(error)}")
