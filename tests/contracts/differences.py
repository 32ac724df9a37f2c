"""What the engines do not do alike: the one table the tests may ask, and docs/engines.md shows.

A test marked `differs(title)` must fail on the engines that the row of this title names.
"""

from typing import NamedTuple

_EMBEDDED = frozenset({"embedded"})


class Difference(NamedTuple):
    """One row of docs/engines.md: what each engine does, and why."""

    title: str
    embedded: str
    kafka: str
    reason: str

    def row(self) -> str:
        """As it stands on the page."""
        return f"| {self.title} | {self.embedded} | {self.kafka} | {self.reason} |"


DIFFERENCES = (
    Difference(
        "transactions",
        "not yet: a transactional producer waits for its coordinator until it gives up",
        "yes",
        "work to come; idempotent producers, which need no coordinator, work on both",
    ),
    Difference(
        "compaction",
        "of `__consumer_offsets` only; other topics accept `cleanup.policy=compact` and keep all",
        "of every topic that says so",
        "work to come; who takes the last message of a key gets the same from both",
    ),
    Difference(
        "users and access rules",
        "none: no TLS, SASL, ACLs or quotas, so it binds 127.0.0.1 unless told `--allow-public`; "
        "settings that ask for them stop the start, and are refused at run time",
        "all of them",
        "work to come",
    ),
    Difference(
        "compression by the topic",
        "batches are kept as the producer made them, whatever `compression.type` says",
        "`compression.type` other than `producer` has the broker compress anew",
        "batches are never rebuilt (ADR 0001); readers get the same messages from both",
    ),
    Difference(
        "replication",
        "never: one broker; a replication factor above 1 is refused",
        "as many replicas as there are brokers",
        "it is Apache Kafka's job; this is what the second engine is for",
    ),
    Difference(
        "`acks=all`",
        "waits for the disk",
        "waits for the replicas in sync, not for a disk",
        "one node has no replicas: only its disk is left",
    ),
    Difference(
        "writing into `__consumer_offsets`",
        "refused",
        "refused, but for a client that calls itself `__admin_client`",
        "the name proves nothing, and who writes there can undo every group's position",
    ),
    Difference(
        "more than 10,000 partitions at once",
        "refused as INVALID_PARTITIONS, with the limit; counted by topic",
        "refused as POLICY_VIOLATION; counted by request",
        "the refusal is the same, its sentence says more",
    ),
    Difference("share groups", "not yet", "yes", "work to come"),
    Difference(
        "features (`kafka-features describe`)",
        "`metadata.version` and `group.version`, at Kafka 4.3's levels",
        "also `transaction.version`, `share.version`, `streams.version`, `kraft.version` and "
        "`eligible.leader.replicas.version`",
        "only what is there may be promised; clients fall back where a feature is not listed",
    ),
    Difference(
        "topics that a pattern matches later",
        "are looked for when the next heartbeat comes, and given with the one after (KIP-848)",
        "are looked for at most every 10 s",
        "only new names are matched, so nobody has to be spared",
    ),
    Difference(
        "a new group",
        "is served at once: `group.initial.rebalance.delay.ms` is 0 by default",
        "waits 3 s for more members by default",
        "the first message shall not wait; set it to Kafka's value where many start together",
    ),
    Difference(
        "when an idempotent producer is forgotten",
        "a day (`producer.id.expiration.ms`) after the broker last heard of it",
        "a day after its last batch's largest timestamp, so at once when its records are old",
        "a retry of old records, a backfill's, must not be stored twice",
    ),
    Difference(
        "a batch that says it was stamped by LogAppendTime",
        "refused as INVALID_TIMESTAMP",
        "taken where the topic keeps producers' times and the header's is in range",
        "only a broker stamps; what the header claims for all records would be believed",
    ),
    Difference(
        "a batch with very many bad records",
        "the first 10,000 are named, the rest is counted",
        "all are named",
        "an answer has a limit; 10,000 is librdkafka's largest batch by default",
    ),
)


def broken_on(title: str) -> frozenset[str]:
    """The engines on which a test of this promise must fail."""
    assert title in {difference.title for difference in DIFFERENCES}, title
    return _EMBEDDED
