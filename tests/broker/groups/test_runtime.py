import asyncio
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from tests.at_once import at_once
from tests.broker.groups.conftest import FakeSync, Node

from headrace.broker.catalog import Catalog
from headrace.broker.handlers import offset_fetch
from headrace.broker.state import RequestContext
from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    GroupError,
    UnknownMemberError,
)
from headrace.coordinators.groups.messages import (
    CommitTime,
    JoinReply,
    JoinRequest,
    OffsetCommitter,
    SyncReply,
    SyncRequest,
)
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.log.errors import CorruptBatchError, StorageWriteError
from headrace.log.partition_log import PartitionLog

SESSION_MS = 10_000
DAY_MS = 86_400_000


async def commit(node: Node, group_id: str = "g", offset: int = 5, topic: str = "t") -> None:
    groups = node.groups
    await groups.writable(group_id)
    one = OffsetToCommit(topic, 0, offset, topic_id=node.topics.get(topic).topic_id)
    when = CommitTime(node.clock.steady_ms(), node.clock.now_ms())
    await groups.carry_out(
        groups.coordinator.commit_offsets(
            OffsetCommitter(group_id), [one], when, max_metadata_bytes=4096
        )
    )


async def committed(node: Node, group_id: str = "g", topic: str = "t") -> int | None:
    await node.groups.ready(group_id)
    await node.groups.on_disk(group_id)
    found = node.groups.coordinator.registry.offsets.get(group_id, topic, 0)
    return None if found is None else found.offset


async def join(node: Node, member_id: str = "", group_id: str = "g") -> JoinReply:
    return await node.groups.join(
        JoinRequest(
            group_id,
            member_id,
            None,
            "client",
            "/127.0.0.1",
            SESSION_MS,
            SESSION_MS,
            "consumer",
            (("range", b""),),
            must_know_its_id=False,
        )
    )


async def sync(node: Node, joined: JoinReply, group_id: str = "g") -> SyncReply:
    assignments = tuple((member.member_id, b"mine") for member in joined.members)
    return await node.groups.sync(
        SyncRequest(group_id, joined.generation_id, joined.member_id, None, assignments=assignments)
    )


async def refusal(reply: Awaitable[JoinReply | SyncReply]) -> GroupError | None:
    """Why not: raised when nothing was decided, in the reply when it could not be written."""
    try:
        return (await reply).error
    except GroupError as error:
        return error


def refuse_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(log: PartitionLog, now_ms: int) -> int:
        log.discard()
        raise StorageWriteError(log.directory, OSError(28, "No space left on device"))

    monkeypatch.setattr(PartitionLog, "commit", refuse)


# --- what is written


def test_what_was_committed_is_there_after_a_restart(node: Node) -> None:
    node.run(commit(node, offset=5))
    node.run(commit(node, offset=6))

    node.restart()

    assert not node.groups.is_ready("g")
    assert node.run(committed(node)) == 6
    assert node.groups.is_ready("g")


def test_a_stable_group_is_stable_after_a_restart_and_its_member_goes_on(node: Node) -> None:
    joined = node.run(join(node))
    assert node.run(sync(node, joined)).assignment == b"mine"

    node.restart()
    node.run(node.groups.load())

    node.groups.heartbeat("g", joined.member_id, None, joined.generation_id)
    assert node.groups.coordinator.describe_classic("g").state == "Stable"


def test_a_group_that_was_never_looked_for_has_its_topic_made_off_the_loop(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    add = Catalog.add_topics

    def note(catalog: Catalog, topics: Any) -> None:
        threads.append(threading.get_ident())
        add(catalog, topics)

    monkeypatch.setattr(Catalog, "add_topics", note)

    assert node.run(join(node)).generation_id == 1

    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_topic_of_groups_that_cannot_be_made_is_told(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageWriteError(Path("catalog"), OSError(28, "No space left on device"))

    monkeypatch.setattr(Catalog, "add_topics", refuse)

    with pytest.raises(CoordinatorNotAvailableError):
        node.run(join(node))

    monkeypatch.undo()
    assert node.run(join(node)).generation_id == 1


def test_an_answer_waits_for_the_disk(node: Node) -> None:
    disk = FakeSync()
    node.restart(disk)
    node.run(node.groups.offsets_topic.ensure())

    async def scenario() -> None:
        committing = asyncio.create_task(commit(node))
        asking = asyncio.create_task(committed(node))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(disk.waiting) == 2
        assert not committing.done()
        assert not asking.done(), "a crash could take this offset back"
        disk.finish()
        await committing
        assert await asking == 5

    node.run(scenario())


def test_what_is_committed_while_a_fetch_waits_is_not_shown_by_it(node: Node) -> None:
    disk = FakeSync()
    node.restart(disk)
    node.run(node.groups.offsets_topic.ensure())
    topic = OffsetFetchRequestTopics(name=TopicName("t"), partition_indexes=(i32(0),))
    group = OffsetFetchRequestGroup(
        group_id=GroupId("g"), member_id=None, member_epoch=i32(-1), topics=(topic,)
    )
    request = OffsetFetchRequest(groups=(group,), require_stable=False)
    context = RequestContext(9, 9, "client", "/127.0.0.1")

    async def scenario() -> int:
        committing = asyncio.create_task(commit(node, offset=5))
        await asyncio.sleep(0)
        asking = asyncio.create_task(offset_fetch.handle(request, node, context))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        disk.finish()
        later = commit(node, offset=6)
        with pytest.raises(asyncio.InvalidStateError):
            later.send(None).result()  # it is written, and waits for the disk
        answer = await asking
        later.close()
        await committing
        return answer.groups[0].topics[0].partitions[0].committed_offset

    assert node.run(scenario()) == 5


def test_a_failed_sync_is_told_to_all_who_wait(node: Node) -> None:
    disk = FakeSync()
    node.restart(disk)
    node.run(node.groups.offsets_topic.ensure())

    async def scenario() -> None:
        committing = asyncio.create_task(commit(node))
        joining = asyncio.create_task(join(node, group_id="g"))
        for _ in range(5):
            await asyncio.sleep(0)
        disk.fail()
        with pytest.raises(CoordinatorNotAvailableError):
            await committing
        assert isinstance(await refusal(joining), CoordinatorNotAvailableError)
        with pytest.raises(CoordinatorNotAvailableError):
            await committed(node)

    node.run(scenario())


def test_a_refused_write_is_told_and_changes_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.run(commit(node, offset=5))
    with monkeypatch.context() as full:
        refuse_writes(full)
        with pytest.raises(CoordinatorNotAvailableError):
            node.run(commit(node, offset=6))

    assert node.run(committed(node)) == 5
    node.run(commit(node, offset=7))
    assert node.run(committed(node)) == 7


def test_a_join_that_cannot_be_written_is_answered(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(node.groups.offsets_topic.ensure())
    with monkeypatch.context() as full:
        refuse_writes(full)
        error = node.run(refusal(join(node)))
    assert isinstance(error, CoordinatorNotAvailableError)

    joined = node.run(join(node))
    assert joined.error is None


def test_a_leader_whose_assignment_is_not_written_joins_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = node.run(join(node))
    with monkeypatch.context() as full:
        refuse_writes(full)
        error = node.run(refusal(sync(node, joined)))
    assert isinstance(error, CoordinatorNotAvailableError)

    again = node.run(join(node, joined.member_id))
    assert again.generation_id == joined.generation_id + 1
    assert node.run(sync(node, again)).assignment == b"mine"


# --- time


def test_a_member_that_is_not_heard_of_is_let_go(node: Node) -> None:
    async def scenario() -> None:
        joined = await join(node)
        await sync(node, joined)
        node.clock.advance(SESSION_MS - 1_000)
        node.groups.heartbeat("g", joined.member_id, None, joined.generation_id)
        node.clock.advance(SESSION_MS - 1_000)
        node.groups.heartbeat("g", joined.member_id, None, joined.generation_id)

        node.clock.advance(SESSION_MS + 1)

        with pytest.raises(UnknownMemberError):
            node.groups.heartbeat("g", joined.member_id, None, joined.generation_id)

    node.run(scenario())


def test_a_join_waits_no_longer_than_the_others_may_take(node: Node) -> None:
    async def scenario() -> None:
        first = await join(node)
        await sync(node, first)
        second = asyncio.create_task(join(node))
        await asyncio.sleep(0)
        assert not second.done()

        node.clock.advance(SESSION_MS + 1)

        joined = await second
        assert joined.leader == joined.member_id
        assert len(joined.members) == 1

    node.run(scenario())


def test_old_offsets_expire_and_stay_away(node: Node) -> None:
    async def scenario() -> None:
        await commit(node, "old")
        node.clock.advance(6 * DAY_MS)
        await commit(node, "young")
        node.clock.advance(1 * DAY_MS)
        await node.groups.expire()

    node.run(scenario())
    for _ in range(2):
        assert node.run(committed(node, "old")) is None
        assert node.run(committed(node, "young")) == 5
        node.restart()
        node.run(node.groups.load())
    assert [group.group_id for group in node.groups.coordinator.registry.groups()] == ["young"]


# --- topics


def test_a_deleted_topic_takes_its_offsets_along(node: Node) -> None:
    at_once(node.topics.create("u", 1, {}))
    node.run(commit(node, topic="t"))
    node.run(commit(node, topic="u", offset=6))

    at_once(node.topics.delete("t"))

    for _ in range(2):
        assert node.run(committed(node, topic="t")) is None
        assert node.run(committed(node, topic="u")) == 6
        node.restart()


def test_a_topic_deleted_before_its_groups_were_read_takes_its_offsets_along(node: Node) -> None:
    node.run(commit(node))
    node.restart()

    at_once(node.topics.delete("t"))
    at_once(node.topics.create("t", 3, {}))

    assert node.run(committed(node)) is None


def test_without_their_topic_there_are_no_groups_and_they_may_begin_anew(node: Node) -> None:
    async def scenario() -> None:
        await commit(node)
        joined = await join(node, group_id="h")
        await sync(node, joined, group_id="h")
        waiting = asyncio.create_task(join(node, group_id="h"))
        await asyncio.sleep(0)

        await node.topics.delete("__consumer_offsets")

        with pytest.raises(CoordinatorNotAvailableError):
            await waiting
        assert node.groups.coordinator.registry.groups() == []
        assert await committed(node) is None
        await commit(node, offset=9)
        assert await committed(node) == 9

    node.run(scenario())


# --- loading


def test_what_cannot_be_read_is_told_and_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.run(commit(node))
    node.restart()
    with monkeypatch.context() as broken:

        def refuse(log: PartitionLog, offset: int, max_bytes: int) -> None:
            raise CorruptBatchError(Path(log.directory), 0, "checksum")

        broken.setattr(PartitionLog, "read", refuse)
        with pytest.raises(CoordinatorNotAvailableError):
            node.run(committed(node))
        node.run(node.groups.load())
        with pytest.raises(CoordinatorNotAvailableError):
            node.run(node.groups.all_ready())

    assert node.run(committed(node)) == 5
    node.run(node.groups.all_ready())


def test_all_who_ask_at_once_share_one_load(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.run(commit(node))
    node.restart()
    reads: list[int] = []
    read = PartitionLog.read

    def count(log: PartitionLog, offset: int, max_bytes: int) -> object:
        reads.append(offset)
        return read(log, offset, max_bytes)

    monkeypatch.setattr(PartitionLog, "read", count)

    async def scenario() -> list[int | None]:
        return await asyncio.gather(*(committed(node) for _ in range(5)))

    assert node.run(scenario()) == [5] * 5
    assert reads == [0]


# --- the end


def test_a_stopping_broker_sends_those_who_wait_away(node: Node) -> None:
    async def scenario() -> None:
        joined = await join(node)
        await sync(node, joined)
        joining = asyncio.create_task(join(node))
        await asyncio.sleep(0)

        node.groups.drain()

        with pytest.raises(CoordinatorNotAvailableError):
            await joining
        with pytest.raises(CoordinatorNotAvailableError):
            await join(node)

    node.run(scenario())


# --- what is counted


def test_rebalances_heartbeats_and_commits_are_counted(node: Node) -> None:
    joined = node.run(join(node))
    node.run(sync(node, joined))
    node.groups.heartbeat("g", joined.member_id, None, joined.generation_id)
    node.run(commit(node, "h"))

    metrics = node.metrics
    assert metrics.group_rebalances.value == 1
    assert metrics.group_heartbeats.value == 1
    assert metrics.offset_commits.value == 1
