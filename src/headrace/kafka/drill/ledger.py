"""The books of a drill: what was sent and acknowledged, what was read, and whether they agree.

Invariant: sent = acknowledged + failed + waiting, for each stream. Nothing here does I/O;
memory grows with the gaps in the sequence numbers, not with the messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from headrace.kafka.drill.message import Stream
from headrace.kafka.drill.ranges import Ranges

MAX_EXAMPLES = 10  # enough to go and look; a report is read by people


class Account:
    """What one publisher has sent on one stream. Belongs to the publisher's thread."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.sent = 0
        self.acknowledged = Ranges()
        self.failed = Ranges()

    def settle_the_rest(self) -> None:
        """Nothing is on its way any more, and failures were reported: the rest is acknowledged."""
        self.acknowledged = Ranges.of(0, self.sent).minus(self.failed)


class Reading:
    """What one reader has read, record by record in each partition's order."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._partitions = [stream.partition for stream in streams]
        self._highest = [-1] * len(streams)
        self.seen = [Ranges() for _ in streams]
        self.duplicated = 0
        self.reordered = 0
        self.strays = 0

    @property
    def count(self) -> int:
        """Different messages read."""
        return sum(ranges.count for ranges in self.seen)

    def take(self, partition: int, stream: int, sequence: int) -> None:
        """Take in the next record of a partition."""
        if stream >= len(self.seen) or self._partitions[stream] != partition:
            self.strays += 1
        elif not self.seen[stream].add(sequence):
            self.duplicated += 1
        elif sequence < self._highest[stream]:
            self.reordered += 1
        else:
            self._highest[stream] = sequence


class Missing(NamedTuple):
    """Messages of one stream that are not where they should be: sequences [start, end)."""

    key: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Balance:
    """What the books say. Every figure counts messages.

    lost: acknowledged, and not in the topic. duplicated: stored more than once. reordered: stored
    behind a later message of the same key. stray: in the topic, but nobody's or in a partition
    that is not its key's. unasked: stored although the publisher was told that it failed.
    """

    sent: int
    acknowledged: int
    failed: int
    stored: int
    lost: int
    duplicated: int
    reordered: int
    stray: int
    unasked: int
    examples: tuple[Missing, ...] = ()

    @property
    def waiting(self) -> int:
        """Sent, and neither acknowledged nor failed."""
        return self.sent - self.acknowledged - self.failed

    def plus(self, other: "Balance") -> "Balance":
        """Both taken together."""
        return Balance(
            self.sent + other.sent,
            self.acknowledged + other.acknowledged,
            self.failed + other.failed,
            self.stored + other.stored,
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.reordered + other.reordered,
            self.stray + other.stray,
            self.unasked + other.unasked,
            (self.examples + other.examples)[:MAX_EXAMPLES],
        )


EMPTY = Balance(0, 0, 0, 0, 0, 0, 0, 0, 0)


def balance(accounts: Sequence[Account], reading: Reading) -> Balance:
    """Compare what was acknowledged with what the whole topic holds."""
    missing = list[Missing]()
    lost = unasked = 0
    for account in accounts:
        stream = account.stream
        seen = reading.seen[stream.number]
        gone = account.acknowledged.minus(seen)
        lost += gone.count
        wanted = MAX_EXAMPLES - len(missing)
        missing += [
            Missing(stream.key.decode(), stream.partition, *each) for each in islice(gone, wanted)
        ]
        unasked += seen.minus(account.acknowledged).count
    return Balance(
        sent=sum(account.sent for account in accounts),
        acknowledged=sum(account.acknowledged.count for account in accounts),
        failed=sum(account.failed.count for account in accounts),
        stored=reading.count,
        lost=lost,
        duplicated=reading.duplicated,
        reordered=reading.reordered,
        stray=reading.strays,
        unasked=unasked,
        examples=tuple(missing),
    )


@dataclass(frozen=True, slots=True)
class LiveReading:
    """What the consumers read while the cluster was hurt, against the reading at the end.

    missed: in the topic at the end and never read live. vanished: read live, and not in the topic
    at the end. read_again: records a consumer got a second time after a rebalance, by offset.
    """

    read: int
    missed: int
    vanished: int
    reordered: int
    read_again: int


def compare(live: Reading, final: Reading, *, read_again: int) -> LiveReading:
    """Hold the live reading against the final one."""
    pairs = list(zip(live.seen, final.seen, strict=True))
    return LiveReading(
        read=live.count,
        missed=sum(stored.minus(seen).count for seen, stored in pairs),
        vanished=sum(seen.minus(stored).count for seen, stored in pairs),
        reordered=live.reordered,
        read_again=read_again,
    )
