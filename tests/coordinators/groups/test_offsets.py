from collections.abc import Iterable
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.coordinators.groups.offsets import OffsetTable, OffsetToCommit
from headrace.coordinators.groups.records import OffsetCommit, Tombstone

GROUPS = st.sampled_from(["g", "h", ""])
TOPICS = st.sampled_from(["t", "u"])
PARTITIONS = st.integers(0, 2)
RETENTION_MS = 100


def apply_all(offsets: OffsetTable, records: Iterable[OffsetCommit | Tombstone]) -> None:
    for record in records:
        offsets.apply(record)


class OffsetsAgainstADict(RuleBasedStateMachine):
    """Whatever is committed, deleted and expired, a plain dict says the same."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = OffsetTable()
        self.model: dict[tuple[str, str, int], tuple[int, int, int]] = {}
        self.now_ms = 1_000
        self.written: list[OffsetCommit | Tombstone] = []

    def write(self, records: Iterable[OffsetCommit | Tombstone]) -> None:
        for record in records:
            self.written.append(record)
            self.offsets.apply(record)

    @rule(
        group=GROUPS,
        topic=TOPICS,
        partition=PARTITIONS,
        offset=st.integers(0, 9),
        retention_ms=st.sampled_from([-1, 0, 50]),
    )
    def commit(
        self, group: str, topic: str, partition: int, offset: int, retention_ms: int
    ) -> None:
        one = OffsetToCommit(topic, partition, offset)
        self.write(self.offsets.commit(group, [one], self.now_ms, retention_ms))
        expires_ms = self.now_ms + (RETENTION_MS if retention_ms < 0 else retention_ms)
        self.model[group, topic, partition] = (offset, self.now_ms, expires_ms)

    @rule(group=GROUPS, topic=TOPICS, partition=PARTITIONS)
    def delete(self, group: str, topic: str, partition: int) -> None:
        self.write(self.offsets.delete(group, [(topic, partition)] * 2))
        self.model.pop((group, topic, partition), None)

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.write(self.offsets.delete_all(group))
        self.model = {key: value for key, value in self.model.items() if key[0] != group}

    @rule(topic=TOPICS)
    def delete_topic(self, topic: str) -> None:
        for records in self.offsets.delete_topic(topic).values():
            self.write(records)
        self.model = {key: value for key, value in self.model.items() if key[1] != topic}

    @rule(ms=st.integers(1, 60))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(group=GROUPS, subscribed=st.sampled_from([None, "t"]))
    def expire(self, group: str, subscribed: str | None) -> None:
        records = self.offsets.expire(
            group,
            self.now_ms,
            RETENTION_MS,
            since_ms=lambda one: one.commit_timestamp_ms,
            is_subscribed_to=lambda topic: topic == subscribed,
        )
        self.write(records)
        self.model = {
            key: value
            for key, value in self.model.items()
            if key[0] != group or key[1] == subscribed or self.now_ms < value[2]
        }

    @invariant()
    def the_same_is_there(self) -> None:
        found = {
            (group, one.topic, one.partition): one.offset
            for group in ("g", "h", "")
            for partitions in self.offsets.of_group(group).values()
            for one in partitions.values()
        }
        assert found == {key: value[0] for key, value in self.model.items()}
        for group in ("g", "h", ""):
            count = sum(key[0] == group for key in self.model)
            assert self.offsets.count_of(group) == count
            assert self.offsets.has_any(group) == bool(count)

    @invariant()
    def what_was_written_says_it_all(self) -> None:
        replayed = OffsetTable()
        apply_all(replayed, self.written)
        for group in ("g", "h", ""):
            assert replayed.of_group(group) == self.offsets.of_group(group)


TestOffsetsAgainstADict = OffsetsAgainstADict.TestCase


def test_a_decision_changes_nothing_before_it_is_applied() -> None:
    offsets = OffsetTable()
    records = offsets.commit("g", [OffsetToCommit("t", 0, 5)], now_ms=10)

    assert offsets.get("g", "t", 0) is None
    apply_all(offsets, records)
    assert offsets.delete("g", [("t", 0)])
    assert offsets.get("g", "t", 0) == records[0]


def test_a_commit_keeps_all_that_the_client_says() -> None:
    topic_id = UUID(int=7)
    asked = OffsetToCommit("t", 2, 5, leader_epoch=3, metadata="why", topic_id=topic_id)

    (record,) = OffsetTable.commit("g", [asked], now_ms=10, retention_ms=90)

    assert record == OffsetCommit("g", "t", 2, 5, 3, "why", 10, 100, topic_id)


def test_no_metadata_is_an_empty_text() -> None:
    (record,) = OffsetTable.commit("g", [OffsetToCommit("t", 0, 5, metadata=None)], now_ms=10)

    assert record.metadata == ""
    assert record.expire_timestamp_ms == -1


def test_offsets_of_a_topic_that_is_another_one_by_now_are_told_apart() -> None:
    offsets = OffsetTable()
    old, new = UUID(int=1), UUID(int=2)
    for partition, topic_id in enumerate((old, new)):
        one = OffsetToCommit("t", partition, 5, topic_id=topic_id)
        apply_all(offsets, offsets.commit("g", [one], now_ms=10))

    records = offsets.delete_unless("g", lambda one: one.topic_id == new)

    assert records == [Tombstone(OffsetCommit, ("g", "t", 0))]
