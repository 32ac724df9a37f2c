"""A group under test: its topic, its members, its journal, and what the broker says of it."""

import contextlib
import time
from collections.abc import Iterable
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from tests.interop.groups.journal import WAIT_S, Journal
from tests.interop.groups.kinds import Kind
from tests.interop.groups.member_process import MemberProcess
from tests.interop.groups.members.session import MemberConfig
from tests.interop.groups.numbers import Numbers
from tests.interop.wire import Engine

_ASK_S = 120
_COORDINATOR_IS_COMING = (
    ck.KafkaError.NOT_COORDINATOR,
    ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
    ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


class Group:
    """Every member started here is dead when the test is over."""

    def __init__(self, engine: Engine, topic: str, partitions: int, group_id: str) -> None:
        self.engine, self.topic, self.partitions, self.group_id = (
            engine,
            topic,
            partitions,
            group_id,
        )
        self.journal = Journal()
        self.numbers = Numbers(engine.bootstrap, topic, partitions)
        self.members: list[MemberProcess] = []
        self._admin = AdminClient({"bootstrap.servers": engine.bootstrap})

    def start(self, kind: Kind, **changes: Any) -> MemberProcess:
        """Start a member; it joins by itself."""
        config = MemberConfig(
            self.engine.bootstrap, self.group_id, self.topic, kind.assignor, kind.protocol
        )._replace(**changes)
        name = f"{len(self.members)}:{kind.name}"
        member = MemberProcess(name, kind.program(config), self.journal)
        self.members.append(member)
        return member

    def start_all(self, kinds: Iterable[Kind], **changes: Any) -> list[MemberProcess]:
        return [self.start(kind, **changes) for kind in kinds]

    def leave(self, *members: MemberProcess) -> None:
        """Let them commit and leave, all at once: they go while others are going."""
        with contextlib.ExitStack() as stack:
            if not all(member.finishes_on_leave for member in members):
                self.wait_for_numbers(stack.enter_context(self.numbers.held()))
            for member in members:
                member.ask_to_leave()
            for member in members:
                member.wait_left()

    def close(self) -> None:
        for member in self.members:
            member.kill()

    def wait_for_progress(self, *members: MemberProcess, messages: int = 1) -> None:
        """Wait until each of `members` has processed some more."""
        goals = {member: member.processed_count + messages for member in members}
        self.journal.wait_until(
            f"{[member.name for member in members]} process {messages} more",
            lambda: all(member.processed_count >= goal for member, goal in goals.items()),
        )

    def wait_for_numbers(self, count: int) -> None:
        """Wait until every number below `count` has been processed."""

        def all_there() -> bool:
            return len(self.journal.times_processed()) >= count

        self.journal.wait_until(f"{count} numbers are processed", all_there)

    def wait_settled(self, members: int) -> Any:
        """Wait until the broker says: stable, so many members, each partition with one owner."""
        deadline = time.monotonic() + WAIT_S
        everything = set(range(self.partitions))
        while True:
            described = self.describe()
            owned = [
                partition.partition
                for member in described.members
                for partition in member.assignment.topic_partitions
            ]
            is_stable = described.state == ck.ConsumerGroupState.STABLE
            if is_stable and len(described.members) == members and sorted(owned) == [*everything]:
                return described
            assert not self.journal.gone, self.journal.told()
            assert time.monotonic() < deadline, (
                f"not settled with {members} members: {described.state}, "
                f"{len(described.members)} members, owned {owned}\n{self.journal.told()}"
            )

    def wait_committed(self, offsets: dict[int, int]) -> None:
        deadline = time.monotonic() + WAIT_S
        while (committed := self.committed()) != offsets:
            assert time.monotonic() < deadline, f"{committed} is committed, not {offsets}"

    def wait_empty(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while (described := self.describe()).members:
            assert time.monotonic() < deadline, f"{described.members} are still there"

    def describe(self) -> Any:
        while True:
            asked = self._admin.describe_consumer_groups([self.group_id])[self.group_id]
            try:
                return asked.result(_ASK_S)
            except ck.KafkaException as failure:  # the first group on real Kafka comes too early
                if failure.args[0].code() not in _COORDINATOR_IS_COMING:
                    raise

    def type(self) -> str:
        """What ListGroups calls it: CLASSIC or CONSUMER."""
        listed = self._admin.list_consumer_groups().result(_ASK_S)
        assert not listed.errors
        return next(each.type.name for each in listed.valid if each.group_id == self.group_id)

    def committed(self) -> dict[int, int]:
        asked = [ck.ConsumerGroupTopicPartitions(self.group_id)]
        answer = self._admin.list_consumer_group_offsets(asked)[self.group_id].result(_ASK_S)
        return {each.partition: each.offset for each in answer.topic_partitions}

    def expected_commits(self) -> dict[int, int]:
        """Where the group stands when it has processed every number."""
        count, width = self.numbers.count, self.partitions
        return {partition: len(range(partition, count, width)) for partition in range(width)}

    def assert_each_number_once(self, but_for: MemberProcess | None = None) -> None:
        """None is skipped; none is done twice, but for members that cannot do better."""
        self.assert_no_number_skipped()
        excused = {member.name for member in self.members if member.may_repeat}
        excused |= {but_for.name} if but_for else set()
        assert self.journal.had_to_be_repeated() <= excused, self.journal.told()

    def assert_no_number_skipped(self) -> None:
        times = self.journal.times_processed()
        skipped = [number for number in range(self.numbers.count) if str(number) not in times]
        assert skipped == [], self.journal.told()
        assert len(times) == self.numbers.count
