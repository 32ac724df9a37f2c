"""Settings that Kafka does not have, and defaults that are not Kafka's; each with its reason.

An own setting's variable leaves the doubled word out: headrace.http.port is HEADRACE_HTTP_PORT.
"""

from typing import NamedTuple

PREFIX = "headrace."


class OwnSetting(NamedTuple):
    """One setting of headrace's own; `reason` says why Kafka's settings are not enough."""

    name: str
    type: str
    default: str
    minimum: int | None
    doc: str
    reason: str


OWN_SETTINGS = (
    OwnSetting(
        "headrace.acks.all.sync",
        "BOOLEAN",
        "true",
        None,
        "Whether acks=all waits until the messages are on disk; false waits for the page cache.",
        "Kafka's acks=all relies on replicas, and one node has none: only its disk is left.",
    ),
    OwnSetting(
        "headrace.http.port",
        "INT",
        "-1",
        -1,
        "Port of /healthz, /readyz and /metrics; 0 takes any free port, -1 serves none.",
        "Kafka shows its metrics through JMX, which needs a JVM.",
    ),
    OwnSetting(
        "headrace.buffer.memory.bytes",
        "LONG",
        str(256 * 1024 * 1024),
        1024 * 1024,
        "Memory that the buffers of all connections may take together.",
        "queued.max.request.bytes counts requests only; slow readers hold answers as well.",
    ),
    OwnSetting(
        "headrace.connection.inflight.requests.max",
        "INT",
        "1000",
        1,
        "Requests of one connection that may wait for their answer before reading pauses.",
        "Kafka reads the next request of a connection only when the last one is answered.",
    ),
    OwnSetting(
        "headrace.debug.checks",
        "BOOLEAN",
        "false",
        None,
        "Whether each batch's checksum is computed once more just before it is written.",
        "Batches are written from where they were received: a test proves that none has changed.",
    ),
)

# A default of ours in place of Kafka's, and why.
DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",  # others reach it only when told so
    "node.id": "1",  # Kafka has no default; a single node needs no choice
    "broker.id": "1",  # the old name of node.id
    # One loop accepts between requests: a crowd that comes at once waits here, not for a new SYN.
    "socket.listen.backlog.size": "1024",
    "process.roles": "broker,controller",  # Kafka has no default; one process does both
    "group.initial.rebalance.delay.ms": "0",  # the first message of a new group comes at once
    # Kafka spares its assignor; without this a second member waits for its second heartbeat.
    "group.consumer.assignment.interval.ms": "0",
}

# Kafka changes these at run time. Here the address is bound once, and whoever may send a request
# must not be able to open it to the world at the next start.
FIXED_WHILE_RUNNING = frozenset({"listeners", "listener.security.protocol.map"})

# Variables that other parts of headrace read: not settings of the broker.
OTHER_VARIABLES = frozenset(
    {
        "HEADRACE_BOOTSTRAP",  # which broker the command line talks to
        "HEADRACE_CACHE_DIR",  # where Kafka's and Spark's jars are kept
        "HEADRACE_KAFKA_DIR",  # where clusters of real Kafka lie
        "HEADRACE_MAVEN_REPOSITORY",  # where they come from
        "HEADRACE_SPARK_JARS",  # another pinned list of them
        "HEADRACE_STATE_DIR",  # where pipelines keep their runs
    }
)
