"""The position of a run as a consumer group's, so that every tool for lag shows it.

Spark keeps its own position in the checkpoint; this is a copy for people. A commit that fails is
told once and tried again with the next batch. Each commit carries a mark, and a group that holds
others without it, or that has members, is an application's: it is left alone, also if the
application comes while the run runs.

It goes by a consumer that never joins the group: librdkafka 2.16's admin client ends the whole
process (`rd_kafka_enq_once_del_source_return: Assertion`) when the broker dies at a bad moment of
`alter_consumer_group_offsets`. `tests/hardship/test_pipeline_kills.py` met that.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace.client.bus import Bus
from headrace.client.error_table import ErrorKind
from headrace.client.errors import BusError, PropertyError
from headrace.client.librdkafka import bus_errors, error_of, make_consumer, places
from headrace.patience import Patience
from headrace.pipelines.errors import SourceError
from headrace.pipelines.running.java_bus import GroupUsage

MARK = "headrace pipeline"  # the metadata of our commits
_FINISH_TIMEOUT_S = 10.0
_POLL_S = 0.05
# Asked once a batch by the thread that draws the view; a bus that is away is not waited for.
_LOOK_TIMEOUT_S = 2.0
_LOOK_PAUSE_S = 2.0


class GroupPositions:
    """Commits without waiting; while one commit is under way only the newest next one is kept.

    Used by one thread, and it has to be called now and then: the answer comes in `go_on`.
    """

    def __init__(
        self,
        bus: Bus,
        group: str,
        tell: Callable[[str], None],
        ask: Callable[[str], GroupUsage],
    ) -> None:
        self._bus = bus
        self._group = group
        self._tell = tell
        self._ask = ask
        self._is_ours = False
        self._may_be_unmarked = False  # a former version's commits had no mark
        self._consumer: Any = None
        self._is_pending = False
        self._next: Mapping[str, Mapping[str, int]] | None = None
        self._is_failing = False
        self._look_again_at = 0.0

    def claim(self, *, is_former: bool = False) -> None:
        """See that the group is new, or this run's; an application's is left alone.

        `is_former`: the run was begun by a version whose commits had no mark.
        """
        try:
            facts = self._ask(self._group)
        except SourceError as error:
            self._tell(
                f"consumer group {self._group} cannot be looked at, so it does not show this "
                f"run's position: {error}"
            )
            return
        is_marked = facts.notes <= {MARK} or (is_former and facts.notes <= {MARK, ""})
        self._is_ours = not facts.members and is_marked
        self._may_be_unmarked = is_former
        if not self._is_ours:
            self._tell(
                f"consumer group {self._group} belongs to an application, so it is left alone "
                "and does not show this run's position; a new run can have another --name"
            )

    def commit(self, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Commit these next offsets, {topic: {partition: offset}}, as soon as it can be."""
        self._next = offsets
        self.go_on()

    def go_on(self, wait_s: float = 0) -> None:
        """Take note of a commit that is done and start the next."""
        if self._consumer is not None:
            self._consumer.poll(wait_s)
        if not self._is_pending and self._next is not None:
            self._start(self._next)

    def finish(self, timeout_s: float = _FINISH_TIMEOUT_S) -> None:
        """Wait for what is under way and for the last commit, then let go of the connection."""
        patience = Patience(timeout_s)
        while (self._is_pending or self._next is not None) and not patience.is_over:
            self.go_on(_POLL_S)
        if self._is_pending or self._next is not None:
            self._failed("no answer")
            self._is_pending, self._next = False, None
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            consumer.close()

    def _start(self, offsets: Mapping[str, Mapping[str, int]]) -> None:
        wanted = {
            (topic, int(partition)): offset
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        }
        if not wanted or not self._is_ours:
            self._next = None
            return
        if time.monotonic() < self._look_again_at:
            return
        commits = places(wanted, MARK)
        try:
            with bus_errors():
                if self._consumer is None:
                    self._consumer = self._connect()
                is_ours = self._is_still_ours(commits)
                self._next = None
                if not is_ours:
                    return
                self._consumer.commit(offsets=commits, asynchronous=True)
        except (BusError, PropertyError) as error:
            is_silent = isinstance(error, BusError) and error.kind is ErrorKind.SILENT
            if self._next is not None and is_silent:
                # The run tells that the bus is away; the newest position is committed afterwards.
                self._look_again_at = time.monotonic() + _LOOK_PAUSE_S
                return
            self._next = None
            self._failed(str(error))
            return
        self._is_pending = True

    def _is_still_ours(self, commits: list[Any]) -> bool:
        """Look at what is committed: an application may have taken the group since."""
        found = self._consumer.committed(commits, _LOOK_TIMEOUT_S)
        notes = {(each.metadata or "").rstrip("\0") for each in found if each.offset >= 0}
        self._is_ours = notes <= ({MARK, ""} if self._may_be_unmarked else {MARK})
        self._may_be_unmarked = False
        if not self._is_ours:
            self._tell(
                f"an application has committed to consumer group {self._group}, so it is left "
                "alone from here on and no longer shows this run's position"
            )
        return self._is_ours

    def _connect(self) -> Any:
        # Over the user's properties, which may name a group of their own.
        own = {"group.id": self._group, "enable.auto.commit": "false"}
        bus = Bus(self._bus.bootstrap, {**self._bus.properties, **own}, self._bus.sources)
        return make_consumer(bus, {"on_commit": self._on_commit})

    def _on_commit(self, error: Any, commits: Any) -> None:
        self._is_pending = False
        refused = error or next((each.error for each in commits if each.error), None)
        if refused:
            self._failed(str(error_of(refused)))
        else:
            self._is_failing = False

    def _failed(self, reason: str) -> None:
        if self._is_failing:
            return
        self._is_failing = True
        self._tell(
            f"position not committed to group {self._group}: {reason}; the pipeline goes on, "
            "its lag is not shown until that works again"
        )
