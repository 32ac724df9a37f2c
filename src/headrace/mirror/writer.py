"""The one producer of a session: idempotent, in order, and never trying twice.

Kafka 4.3.1, killed and started again, was seen to take a retried batch of old records a second
time: same producer, epoch and sequence. Presumably it lets producers expire by their records' own
timestamps (`producer.id.expiration.ms`). So
retries are put off for longer than it takes to notice that something is wrong, and the session
ends before: the next one looks at what has arrived.
"""

import contextlib
import time
from typing import TYPE_CHECKING, Any

from headrace.mirror.end import UNKNOWN_S, End, StoppedError
from headrace.mirror.errors import MirrorError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

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

    def __init__(self, end: End, compression: str, client_id: str) -> None:
        self._end = end
        self.raw: Any = end.producer(
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
            }
        )

    def send(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """Queue a message that is not part of a copy."""
        while True:
            try:
                self.raw.produce(topic, value, key, partition)
            except BufferError:
                self.make_room()
            else:
                return

    def learn(self, topic: str, partitions: int) -> None:
        """Return when the producer knows the topic with this many partitions."""
        deadline = time.monotonic() + UNKNOWN_S
        while True:
            known = self._end.ask(
                lambda: self.raw.list_topics(topic, timeout=self._end.timeout_s).topics[topic]
            )
            if known.error is None and len(known.partitions) >= partitions:
                return
            if time.monotonic() > deadline:
                raise MirrorError(f"{self._end.label} does not know topic {topic} any more")
            self._end.pause()

    def make_room(self) -> None:
        """Wait a moment for the queue to shorten; raises StoppedError when told to stop."""
        self.raw.poll(_WAIT_S)
        self.check()
        if self._end.is_stopped():
            raise StoppedError

    def wait(self) -> None:
        """Wait a moment for acknowledgements; raises StoppedError when told to stop."""
        self.make_room()

    def serve(self) -> None:
        """Take in what has been acknowledged."""
        self.raw.poll(0)
        self.check()

    def flush(self) -> None:
        """Return when everything queued has arrived; raises StoppedError when told to stop."""
        deadline = time.monotonic() + STALL_S
        while self.raw.flush(_WAIT_S):
            self.check()
            if self._end.is_stopped():
                raise StoppedError
            if time.monotonic() > deadline:
                raise ConnectionLostError(f"no acknowledgement for {STALL_S:g} s")
        self.check()

    def flush_for(self, seconds: float) -> bool:
        """Whether everything queued has arrived within this time."""
        is_done = bool(self.raw.flush(seconds) == 0)
        self.check()
        return is_done

    def check(self) -> None:
        """Raise SessionFailedError when the producer has given up."""
        if self._end.fatal is not None:
            raise SessionFailedError(self._end.fatal.str())
        if self._end.is_lost:
            if len(self.raw):
                raise ConnectionLostError("the connection was lost")
            self._end.is_lost = False

    def close(self) -> None:
        """Forget what has not arrived. Some of it may arrive all the same, for a while."""
        from confluent_kafka import KafkaException

        # To purge what is under way is a fatal error to a gapless producer, and confluent_kafka
        # raises it from whichever callback comes next.
        with contextlib.suppress(KafkaException, SystemError):
            self.raw.purge(in_queue=True, in_flight=True, blocking=True)
            self.raw.flush(1)


def refusal(end: End, place: object, error: "KafkaError") -> MirrorError:
    """What a message the target does not take means."""
    if error.code() == error.MSG_SIZE_TOO_LARGE:
        return MirrorError(
            f"{end.label} takes no message as large as the next of {place}; raise "
            "message.max.bytes and replica.fetch.max.bytes there"
        )
    return MirrorError(f"{end.label} refused a message of {place}: {error.str()}")
