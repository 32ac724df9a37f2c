"""What `__consumer_offsets` holds after each step, on both engines: same records, same order."""

from collections.abc import Callable

import pytest
from tests.interop.consumer_wire import LEAVE_FOR_A_WHILE, Consumer
from tests.interop.group_wire import (
    DELETE_GROUPS,
    NONE,
    OFFSET_DELETE,
    SESSION_MS,
    Member,
    ask,
    form,
    settle,
    subscription,
)
from tests.interop.wire import FETCH, WireClient, fetch_fields

from headrace.broker.groups.offsets_topic import partition_for
from headrace.coordinators.groups.codec import decode, encode
from headrace.coordinators.groups.records import (
    CurrentAssignment,
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    Tombstone,
)
from headrace.records.batch import peek_header
from headrace.records.record import iter_records

_PARTITION_METADATA = b"\x00\x04"
JOINED_ALONE = [
    "ConsumerGroupMember",
    "ConsumerGroupMetadata",
    "TargetAssignmentMember",
    "TargetAssignmentEpoch",
    "CurrentAssignment",
]
MEMBER_GONE = ["-CurrentAssignment", "-TargetAssignmentMember", "-ConsumerGroupMember"]


class Pages:
    """The records of one group, as far as they have been written; `turn` returns the new ones."""

    def __init__(self, wire: WireClient, group_id: str) -> None:
        self._wire = wire
        self._group_id = group_id
        self._offset = 0
        self.records: list[GroupRecord] = []

    def turn(self) -> list[str]:
        """Read on, and name the new records by their kinds; `-` stands for a tombstone."""
        seen = len(self.records)
        while records := self._fetch():
            position = 0
            while (header := peek_header(records, position)) is not None:
                self._take(records[position : position + header.size])
                self._offset = header.base_offset + header.last_offset_delta + 1
                position += header.size
        return [_kind(record) for record in self.records[seen:]]

    def _fetch(self) -> bytes:
        fields = fetch_fields({"__consumer_offsets": self._offset}, partition_max_bytes=100_000_000)
        partition = fields["topics"][0]["partitions"][0]
        partition["partition"] = partition_for(self._group_id, 50)
        answer = self._wire.call(FETCH, 12, **fields).responses[0].partitions[0]
        assert answer.error_code == NONE
        return answer.records or b""

    def _take(self, batch: bytes) -> None:
        for record in iter_records(batch):
            assert record.key is not None
            decoded = decode(record.key, record.value)
            if decoded is None:
                # Kafka takes back what versions before 4.1 may have written of topics.
                assert (record.key[:2], record.value) == (_PARTITION_METADATA, None)
                continue
            # Byte by byte what Kafka 4.3.1 writes.
            assert encode(decoded) == (record.key, record.value)
            if decoded.group_id == self._group_id:
                self.records.append(decoded)


def _kind(record: GroupRecord) -> str:
    if isinstance(record, Tombstone):
        return f"-{record.kind.__name__}"
    return type(record).__name__


@pytest.fixture
def pages(wire: WireClient, group_id: str) -> Pages:
    return Pages(wire, group_id)


def test_a_classic_group_is_written_when_it_begins_when_it_is_stable_and_when_it_is_empty(
    new_member: Callable[..., Member], pages: Pages
) -> None:
    member = new_member()
    form([member])
    begun = pages.turn()
    member.sync({member.member_id: b"share"})
    stable = pages.turn()
    member.heartbeat()
    member.leave()
    empty = pages.turn()

    assert begun == stable == empty == ["GroupMetadata"]
    first, second, third = pages.records
    assert isinstance(first, GroupMetadata)
    assert isinstance(second, GroupMetadata)
    assert isinstance(third, GroupMetadata)
    assert (first.generation_id, first.protocol_type, first.members) == (0, "", ())
    assert (second.generation_id, second.protocol_type) == (1, "consumer")
    assert (second.protocol_name, second.leader) == ("range", member.member_id)
    (written,) = second.members
    assert (written.member_id, written.group_instance_id) == (member.member_id, None)
    assert (written.client_id, written.client_host) == ("interop", "/127.0.0.1")
    assert (written.session_timeout_ms, written.rebalance_timeout_ms) == (SESSION_MS, SESSION_MS)
    assert (written.subscription, written.assignment) == (subscription("wished"), b"share")
    assert (third.generation_id, third.protocol_type) == (2, "consumer")
    assert (third.protocol_name, third.leader, third.members) == (None, None, ())


def test_an_instance_that_starts_anew_is_written_with_its_new_id(
    new_member: Callable[..., Member], pages: Pages
) -> None:
    old, new = new_member(instance_id="mine"), new_member(instance_id="mine")
    settle([old])
    pages.turn()

    new.join()

    assert pages.turn() == ["GroupMetadata"]
    record = pages.records[-1]
    assert isinstance(record, GroupMetadata)
    assert (record.generation_id, record.leader) == (1, new.member_id)
    assert [member.member_id for member in record.members] == [new.member_id]


def test_commits_are_written_with_the_id_of_their_topic(
    wire: WireClient, new_member: Callable[..., Member], topic: str, pages: Pages
) -> None:
    new_member().commit(topic, 5)

    assert pages.turn() == ["OffsetCommit"]
    (record,) = pages.records
    assert isinstance(record, OffsetCommit)
    assert (record.topic, record.partition, record.offset) == (topic, 0, 5)
    assert (record.leader_epoch, record.metadata, record.expire_timestamp_ms) == (-1, "", -1)
    assert record.topic_id == wire.topic_id(topic)


def test_a_deleted_group_and_deleted_offsets_leave_tombstones(
    wire: WireClient,
    new_member: Callable[..., Member],
    new_topic: Callable[..., str],
    group_id: str,
    pages: Pages,
) -> None:
    kept, dropped = new_topic(), new_topic()
    member = new_member()
    settle([member])
    member.commit(kept, 1)
    member.commit(dropped, 2)
    member.leave()
    pages.turn()

    topics = [{"name": dropped, "partitions": [{"partition_index": 0}]}]
    ask(wire, OFFSET_DELETE, 0, group_id=group_id, topics=topics)
    offsets_deleted = pages.turn()
    ask(wire, DELETE_GROUPS, 2, groups_names=[group_id])

    assert offsets_deleted == ["-OffsetCommit"]
    assert pages.turn() == ["-OffsetCommit", "-GroupMetadata"]


def test_members_of_the_new_protocol_are_written_step_by_step(
    new_topic: Callable[..., str], new_consumer: Callable[..., Consumer], pages: Pages
) -> None:
    four = new_topic(partitions=4)
    one, two = new_consumer("one", four), new_consumer("two", four)

    one.join()
    alone = pages.turn()
    one.beat()
    quiet = pages.turn()
    two.join()
    joined = pages.turn()
    one.beat()
    revoking = pages.turn()
    one.confirm()
    revoked = pages.turn()
    two.beat()
    given = pages.turn()

    assert (alone, quiet) == (JOINED_ALONE, [])
    assert sorted(joined) == sorted([*JOINED_ALONE, "TargetAssignmentMember"])
    assert revoking == revoked == given == ["CurrentAssignment"]
    states = [
        (record.member_id, record.member_epoch, record.previous_member_epoch, record.state)
        for record in pages.records
        if isinstance(record, CurrentAssignment)
    ]
    # 0 stable, 1 has to let go of partitions, 2 waits for partitions of others.
    assert states == [
        ("one", 2, 0, 0),
        ("two", 3, 0, 2),
        ("one", 2, 2, 1),
        ("one", 3, 2, 0),
        ("two", 3, 3, 0),
    ]


def test_a_group_of_the_new_protocol_leaves_tombstones(
    wire: WireClient,
    topic: str,
    group_id: str,
    new_consumer: Callable[..., Consumer],
    pages: Pages,
) -> None:
    member = new_consumer("one", topic).joined()
    pages.turn()

    member.leave()
    left = pages.turn()
    ask(wire, DELETE_GROUPS, 2, groups_names=[group_id])

    assert left == [*MEMBER_GONE, "ConsumerGroupMetadata"]
    assert pages.turn() == ["-TargetAssignmentEpoch", "-ConsumerGroupMetadata"]


def test_an_instance_that_pauses_and_comes_back_is_written_so(
    topic: str, new_consumer: Callable[..., Consumer], pages: Pages
) -> None:
    old = new_consumer("old", topic, instance_id="mine").joined()
    pages.turn()

    old.leave(LEAVE_FOR_A_WHILE)
    paused = pages.turn()
    new_consumer("new", topic, instance_id="mine").joined()

    assert paused == ["CurrentAssignment"]
    record = pages.records[-1]
    assert isinstance(record, CurrentAssignment)
    assert record.member_epoch == LEAVE_FOR_A_WHILE
    assert pages.turn() == [
        *MEMBER_GONE,
        "ConsumerGroupMember",
        "TargetAssignmentMember",
        "CurrentAssignment",
        "CurrentAssignment",
    ]


def test_a_group_that_changes_its_kind_takes_back_what_it_was(
    new_member: Callable[..., Member],
    topic: str,
    new_consumer: Callable[..., Consumer],
    pages: Pages,
) -> None:
    member = new_member(protocols=[{"name": "range", "metadata": subscription(topic)}])
    form([member])
    member.sync({})
    pages.turn()

    new = new_consumer("new", topic).joined()
    upgraded = pages.turn()
    new.leave()
    downgraded = pages.turn()

    assert upgraded[0] == "-GroupMetadata"
    assert upgraded.count("ConsumerGroupMember") == 2
    assert downgraded[-1] == "GroupMetadata"
    assert "-ConsumerGroupMetadata" in downgraded
    assert downgraded.count("-ConsumerGroupMember") == 2
    record = pages.records[-1]
    assert isinstance(record, GroupMetadata)
    assert [each.member_id for each in record.members] == [member.member_id]
