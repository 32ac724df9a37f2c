"""One run of `headrace consume`: which partitions, from where to where, what is committed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.cli.connection import Connection
from headrace.cli.consume.committed_offsets import CommittedOffsets
from headrace.cli.consume.group_start import GroupStart, reset_command
from headrace.cli.consume.membership import GroupMember
from headrace.cli.consume.read_range import ReadRange
from headrace.cli.consume.reading import Reader
from headrace.cli.consume.record_filter import Condition
from headrace.cli.consume.record_format import Format
from headrace.cli.endings import tell
from headrace.cli.interruption import Interruption
from headrace.cli.outage import Outage
from headrace.client.librdkafka import Partition, bus_errors, places
from headrace.client.positions import LATEST, OLDEST, Position

_TUNING: Mapping[str, object] = {"queued.max.messages.kbytes": 16 * 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for; None: it does not say."""

    topics: list[str]
    partitions: list[int] | None
    start: Position | None
    end: Position | None
    group: str | None
    count: int | None
    is_following: bool
    form: Format
    condition: Condition | None

    @property
    def start_or_default(self) -> Position:
        """Where to begin without an offset of the group's."""
        if self.start is not None:
            return self.start
        return LATEST if self.is_following else OLDEST


class Consumption:
    """Reads until the end, the count, a signal or a closed pipe; then commits and closes."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._outage = Outage(connection)
        # Asked here, where a signal still ends it at once: a silent broker holds nobody up.
        self._partitions = connection.partitions(request.topics, request.partitions)

    def run(self, interruption: Interruption) -> bool:
        """Return whether all that was printed for a group is committed."""
        consumer = self._connection.consumer(self._consumer_config(), _TUNING)
        try:
            with bus_errors(self._connection.admin().failure):
                return self._read(consumer, interruption)
        finally:
            consumer.close()

    def _read(self, consumer: Any, interruption: Interruption) -> bool:
        request = self._request
        offsets = None
        if request.group is not None:
            offsets = CommittedOffsets(consumer, self._connection.timeout_s)
        try:
            reader, has_read_all = self._begin(consumer, offsets)
            while not interruption and reader.left > 0 and not has_read_all():
                positions = reader.read()
                if offsets is not None:
                    offsets.written(positions)
                    offsets.commit_if_due()
            if not reader.has_printed:
                tell(self._why_nothing(reader, offsets))
        finally:
            is_committed = offsets is None or offsets.finish()
        return is_committed

    def _why_nothing(self, reader: Reader, offsets: CommittedOffsets | None) -> str:
        """Why nothing was printed, and what would be."""
        request = self._request
        if reader.has_read:
            reason, advice = "no record matched", ""
        elif offsets is not None and not offsets.has_share:
            return "nothing printed: others in the group have all partitions"
        elif offsets is not None and offsets.has_stood:
            reason, advice = f"group {request.group} has no more to read here", ""
        elif request.is_following:
            reason = "nothing came"
            advice = "; --from oldest begins with what was there before"
        else:
            reason, advice = "there is no record to read, or none from there on", ""
        if request.group is not None:  # it stands at the end now, where --from changes nothing
            command = reset_command(request.group, request.topics, request.partitions)
            advice = f"; {command} lets it begin anew"
        return f"nothing printed: {reason}{advice}"

    def _begin(
        self, consumer: Any, offsets: CommittedOffsets | None
    ) -> tuple[Reader, Callable[[], bool]]:
        """Get partitions to read; return the reader and the question whether it is done."""
        request, connection = self._request, self._connection
        known = ReadRange(connection.admin(), self._partitions)
        ends = known.ends(request.end, is_following=request.is_following)
        reader = Reader(
            consumer,
            self._outage,
            request.form,
            request.condition,
            count=request.count,
            until_ms=ends.until_ms,
            is_following=request.is_following,
            timeout_s=connection.timeout_s,
            group=request.group,
        )
        if offsets is None or request.group is None:
            _assign(consumer, reader, known.starts(request.start_or_default), ends.offsets)
            return reader, lambda: not reader.open
        begin = GroupStart(
            connection,
            request.group,
            offsets,
            known,
            start=request.start_or_default,
            is_start_given=request.start is not None,
        )
        if request.partitions is None:
            member = GroupMember(
                consumer,
                reader,
                offsets,
                starts=begin,
                ends=ends.offsets,
                is_following=request.is_following,
                is_incremental=self._is_incremental,
            )
            member.subscribe(request.topics)
            return reader, member.has_read_all
        starts = begin(self._partitions)
        offsets.written(starts)
        _assign(consumer, reader, starts, ends.offsets)
        return reader, lambda: not reader.open

    def _consumer_config(self) -> dict[str, object]:
        group = self._request.group
        return {
            # librdkafka wants a name even from who joins no group; this one is never used.
            "group.id": f"headrace-consume-{uuid4()}" if group is None else group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": not self._request.is_following,
            "auto.offset.reset": "error",
            "error_cb": self._outage.on_error,
        }

    @property
    def _is_incremental(self) -> bool:
        """Whether rebalances of the group take and give single partitions."""
        config = self._connection.config()
        strategy = str(config.get("partition.assignment.strategy", ""))
        return config.get("group.protocol") == "consumer" or "cooperative" in strategy


def _assign(
    consumer: Any,
    reader: Reader,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
) -> None:
    reader.open = {each: ends[each] for each, start in starts.items() if start < ends[each]}
    consumer.assign(places({each: starts[each] for each in reader.open}))
