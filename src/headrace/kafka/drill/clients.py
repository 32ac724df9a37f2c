"""How the drill's publishers and consumers are configured.

Invariant: librdkafka says nothing on the terminal; what it has to complain about while
brokers die is expected, and what matters reaches the books.
"""

from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.message import PARTITIONER

_LOG_NOTHING = "0"  # syslog's "emergency", which librdkafka never is in
# A stalled broker keeps its connections and answers nothing; a client notices by its socket
# time-out alone (60 s by default). It has let go when the others elect a leader, and turns to
# that: waits ended 1.3 and 1.8 s after the election, with the session's whole time 2.5 and 3.3 s
# (two runs each, on a busy machine).
_SOCKET_SHARE_OF_SESSION = 2 / 3
_MIN_SOCKET_TIMEOUT_S = 2.0  # a busy machine is not a stalled one
_MAX_RECONNECT_BACKOFF_MS = 1000  # 10 s by default, which would be longer than an election
_MAX_RETRY_BACKOFF_MS = 250  # 1 s by default, on top of every election
# Longer than any scenario may take: a message is given up only when all is lost.
_MESSAGE_TIMEOUT_MS = 300_000
# What waits while nobody leads: an election's time at the highest rate that makes sense.
_MAX_QUEUED_MESSAGES = 500_000
_MAX_QUEUED_KBYTES = 128 * 1024

Config = dict[str, object]


def client_config(bootstrap: str, timeouts: Timeouts) -> Config:
    """What publishers and consumers have in common."""
    socket_timeout_s = max(_MIN_SOCKET_TIMEOUT_S, timeouts.session_s * _SOCKET_SHARE_OF_SESSION)
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "headrace-drill",
        "log_level": _LOG_NOTHING,
        "error_cb": _ignore,
        "socket.timeout.ms": round(socket_timeout_s * 1000),
        "reconnect.backoff.max.ms": _MAX_RECONNECT_BACKOFF_MS,
    }


def publisher_config(bootstrap: str, timeouts: Timeouts) -> Config:
    """Idempotent, acks=all: what is acknowledged is there once, in order."""
    return {
        **client_config(bootstrap, timeouts),
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": PARTITIONER,
        "retry.backoff.max.ms": _MAX_RETRY_BACKOFF_MS,
        "message.timeout.ms": _MESSAGE_TIMEOUT_MS,
        "queue.buffering.max.messages": _MAX_QUEUED_MESSAGES,
        "queue.buffering.max.kbytes": _MAX_QUEUED_KBYTES,
    }


def consumer_config(bootstrap: str, timeouts: Timeouts, group: str) -> Config:
    """Reads from the beginning; a group's members commit as they go."""
    return {
        **client_config(bootstrap, timeouts),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1000,
        "queued.max.messages.kbytes": 16 * 1024,
    }


def _ignore(_error: object) -> None:
    pass
