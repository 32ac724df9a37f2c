"""Where a group begins in its partitions: where it stands, else where the command line says.

A place that is no longer in the log, or was never in this one, is told with the way out of it.
"""

import shlex
from collections.abc import Iterable, Mapping

from headrace.cli.connection import Connection
from headrace.cli.consume.committed_offsets import CommittedOffsets
from headrace.cli.consume.read_range import ReadRange
from headrace.cli.endings import CommandError, tell
from headrace.client.librdkafka import Partition
from headrace.client.positions import Position


def reset_command(group: str, topics: Iterable[str], numbers: Iterable[int] | None = None) -> str:
    """The command that lets a group begin anew in the topics, or in these partitions of each."""
    only = "" if numbers is None else ":" + ",".join(map(str, numbers))
    options = " ".join(f"--topic {shlex.quote(topic)}{only}" for topic in dict.fromkeys(topics))
    return f"'headrace groups reset {shlex.quote(group)} {options} --to oldest'"


def not_there(partition: Partition, offset: int, oldest: int, end: int) -> str | None:
    """Why a partition has no such offset to read from; None when it has."""
    topic, number = partition
    where = f"offset {offset} of partition {number} of {topic}"
    if offset < oldest:
        return (
            f"{where} is no longer there: retention or a deletion took it, "
            f"and the oldest is {oldest} now"
        )
    if offset > end:
        return (
            f"{where} is not there: the partition ends at {end}, "
            "as when a topic was made again under its name"
        )
    return None


class GroupStart:
    """Called with partitions as they come; of a `--from` that does not apply it tells once."""

    def __init__(
        self,
        connection: Connection,
        group: str,
        offsets: CommittedOffsets,
        known: ReadRange,
        *,
        start: Position,
        is_start_given: bool,
    ) -> None:
        self._connection = connection
        self._group = group
        self._offsets = offsets
        self._known = known
        self._start = start
        self._has_to_tell = is_start_given

    def __call__(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset to read of each; CommandError where the group stands at none."""
        wanted = list(partitions)
        committed = self._offsets.fetch(wanted)
        self._check(committed)
        if wanted and self._has_to_tell:
            self._has_to_tell = False  # what it commits from here on is not worth a word
            self._tell_of(committed)
        # What nobody begins at need not be there.
        new = [each for each in wanted if each not in committed]
        return committed | self._known.starts(self._start, new)

    def _check(self, committed: Mapping[Partition, int]) -> None:
        if not committed:
            return
        # Asked anew: another member may have read on since `known` was made.
        admin = self._connection.admin()
        oldest = admin.oldest_offsets(committed, is_partial=True)
        end = admin.end_offsets(committed, is_partial=True)
        bad = {
            each: reason
            for each, offset in committed.items()
            if each in oldest
            and each in end
            and (reason := not_there(each, offset, oldest[each], end[each]))
        }
        for (topic, _), reason in bad.items():
            numbers = sorted(number for name, number in bad if name == topic)
            raise CommandError(
                f"group {self._group} cannot go on: {reason}; "
                f"{reset_command(self._group, [topic], numbers)} lets it begin with what there is"
            )

    def _tell_of(self, committed: Mapping[Partition, int]) -> None:
        if committed:
            topics = sorted({topic for topic, _ in committed})
            tell(
                f"--from does not apply where group {self._group} has a committed offset: it goes "
                f"on from there; {reset_command(self._group, topics)} moves it"
            )
