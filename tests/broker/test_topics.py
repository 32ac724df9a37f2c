import asyncio
import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.at_once import at_once
from tests.broker.turn_counter import turns_during

from headrace.broker import deletions as deletions_module
from headrace.broker import topics as topics_module
from headrace.broker import turns as turns_module
from headrace.broker.catalog import FILE_NAME, Catalog
from headrace.broker.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from headrace.broker.topics import Topics
from headrace.errors import ConfigError, RequestError
from headrace.log import removal
from headrace.log.directory import LogDirectory
from headrace.log.errors import StorageError, StorageWriteError
from headrace.log.partition_log import PartitionLog
from headrace.log.retention import enforce_retention
from headrace.model import Topic, TopicPartition
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record
from headrace.settings.broker_settings import BrokerSettings

NOW_MS = 1_700_000_000_000
WEEK_MS = 7 * 24 * 3_600_000

Start = Callable[..., Topics]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start on the same directory as often as one likes; each stops the one before."""
    with ExitStack() as running:

        def start(*, after_crash: bool = False) -> Topics:
            running.close()
            if after_crash:
                (tmp_path / ".kafka_cleanshutdown").unlink()
            logs = LogDirectory(tmp_path, node_id=1)
            logs.open(NOW_MS)
            running.callback(logs.close, NOW_MS)
            catalog = Catalog(tmp_path)
            running.callback(catalog.close)
            return Topics(catalog, logs, BrokerSettings.load(), lambda: NOW_MS)

        yield start


@pytest.fixture
def topics(start: Start) -> Topics:
    return start()


def append(topics: Topics, name: str, partition: int = 0, timestamp: int = NOW_MS) -> None:
    log = topics.log(name, partition)
    batch = build_batch([Record(0, timestamp, b"k", b"v", [])])
    header = peek_header(batch)
    assert header is not None
    log.stage(memoryview(batch), header, timestamp)
    log.commit(timestamp)


def test_a_created_topic_is_found_by_name_and_id_after_a_restart(start: Start) -> None:
    created = at_once(start().create("t", 3, {"retention.ms": "5"}))

    restarted = start()

    assert restarted.get("t") == restarted.get_by_id(created.topic_id) == created
    assert restarted.all() == [created]


def test_messages_are_there_after_a_restart(start: Start) -> None:
    topics = start()
    at_once(topics.create("t", 2, {}))
    append(topics, "t", 1)

    restarted = start()

    assert restarted.log("t", 1).log_end_offset == 1
    assert restarted.log("t", 0).log_end_offset == 0


def test_what_is_not_there_is_unknown(topics: Topics) -> None:
    at_once(topics.create("t", 2, {}))

    with pytest.raises(UnknownTopicError):
        topics.get("nope")
    with pytest.raises(UnknownTopicIdError):
        topics.get_by_id(UUID(int=1))
    for partition in (-1, 2):
        with pytest.raises(UnknownTopicError):
            topics.log("t", partition)


def test_5000_partitions_make_no_directory_until_they_are_used(
    topics: Topics, tmp_path: Path
) -> None:
    at_once(topics.create("t", 5000, {}))
    topics.log("t", 4999)

    assert [path.name for path in tmp_path.glob("t-*")] == ["t-4999"]


def test_a_topic_that_cannot_be_is_refused(topics: Topics) -> None:
    at_once(topics.create("with.dot", 1, {}))
    refusals: list[tuple[str, int, dict[str, str], type[Exception]]] = [
        ("bad name", 1, {}, InvalidTopicError),
        ("with_dot", 1, {}, InvalidTopicError),
        ("with.dot", 1, {}, TopicExistsError),
        ("__cluster_metadata", 1, {}, RequestError),
        ("t", 0, {}, InvalidPartitionsError),
        ("t", 10_001, {}, InvalidPartitionsError),
        ("t", 1, {"no.such": "1"}, ConfigError),
        ("t", 1, {"retention.ms": "soon"}, ConfigError),
    ]

    for name, count, configs, error in refusals:
        with pytest.raises(error):
            at_once(topics.create(name, count, configs))

    assert [topic.name for topic in topics.all()] == ["with.dot"]


def test_a_colliding_name_is_free_again_after_the_deletion(topics: Topics) -> None:
    at_once(topics.create("a.b", 1, {}))
    at_once(topics.delete("a.b"))

    at_once(topics.create("a_b", 1, {}))

    assert topics.get("a_b").partition_count == 1


def test_every_change_moves_the_generation(topics: Topics) -> None:
    seen = [topics.generation]
    for change in (
        lambda: at_once(topics.create("t", 1, {})),
        lambda: at_once(topics.add_partitions({"t": 2})),
        lambda: at_once(topics.set_configs("t", {"retention.ms": "1"})),
        lambda: at_once(topics.store_settings({})),
        lambda: at_once(topics.delete("t")),
    ):
        change()
        seen.append(topics.generation)

    assert len(set(seen)) == len(seen)


def test_a_refused_write_changes_nothing(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(topics.create("t", 1, {}))
    before = topics.all()

    def refuse(*_: object) -> None:
        raise StorageWriteError(Path(FILE_NAME), OSError(28, "No space left on device"))

    for name in ("add_topics", "mark_deleting", "set_partition_counts", "set_topic_configs"):
        monkeypatch.setattr(Catalog, name, refuse)
    for change in (
        lambda: at_once(topics.create("u", 1, {})),
        lambda: at_once(topics.delete("t")),
        lambda: at_once(topics.add_partitions({"t": 2})),
        lambda: at_once(topics.set_configs("t", {"retention.ms": "1"})),
    ):
        with pytest.raises(StorageWriteError):
            change()

    assert topics.all() == before
    monkeypatch.undo()
    at_once(topics.create("u", 1, {}))


def test_a_deleted_topic_is_gone_with_its_messages(
    topics: Topics, start: Start, tmp_path: Path
) -> None:
    first = at_once(topics.create("t", 2, {}))
    append(topics, "t")
    told: list[Topic] = []
    topics.on_delete.append(told.append)

    at_once(topics.delete("t"))

    assert told == [first]
    assert list(tmp_path.glob("t-?")) == []
    second = at_once(topics.create("t", 1, {}))
    assert second.topic_id != first.topic_id
    assert topics.log("t", 0).log_end_offset == 0
    assert start().all() == [second]


def test_a_topic_with_the_longest_name_can_be_used_and_deleted(topics: Topics) -> None:
    name = "x" * 249
    at_once(topics.create(name, 1, {}))
    append(topics, name)

    at_once(topics.delete(name))

    assert topics.all() == []


def test_deleting_several_topics_deletes_none_when_one_is_unknown(topics: Topics) -> None:
    at_once(topics.create("t", 1, {}))

    with pytest.raises(UnknownTopicError):
        at_once(topics.delete("t", "nope"))

    assert topics.get("t")


@pytest.mark.parametrize("crash_after", ["mark_deleting", "directories"])
def test_a_deletion_cut_short_by_a_crash_is_finished_at_the_next_start(
    crash_after: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = start()
    at_once(topics.create("t", 2, {}))
    append(topics, "t")
    if crash_after == "mark_deleting":
        topics.catalog.mark_deleting(["t"])
    else:
        monkeypatch.setattr(Catalog, "remove_topics", lambda *_: crash())
        with pytest.raises(CrashError):
            at_once(topics.delete("t"))
        monkeypatch.undo()

    restarted = start()

    assert restarted.all() == []
    assert restarted.catalog.topics(deleting=True) == []
    assert list(tmp_path.glob("t-?")) == []


class CrashError(Exception):
    """The process died here."""


def crash() -> None:
    raise CrashError


def test_a_deletion_the_disk_refuses_is_finished_when_the_name_is_wanted_again(
    topics: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at_once(topics.create("t", 1, {}))
    append(topics, "t")

    def refuse(*_: object) -> None:
        raise StorageError("no")

    monkeypatch.setattr(deletions_module, "rename_away", refuse)
    with caplog.at_level(logging.WARNING):
        at_once(topics.delete("t"))
    assert "still on disk" in caplog.text
    assert topics.all() == []
    with pytest.raises(StorageError):
        at_once(topics.create("t", 1, {}))
    monkeypatch.undo()

    at_once(topics.create("t", 1, {}))

    assert topics.log("t", 0).log_end_offset == 0


def test_partitions_can_be_added_but_not_taken_away(topics: Topics, start: Start) -> None:
    at_once(topics.create("t", 2, {}))
    append(topics, "t", 1)

    at_once(topics.add_partitions({"t": 4}))

    assert topics.log("t", 3).log_end_offset == 0
    for count in (4, 3, 0):
        with pytest.raises(InvalidPartitionsError):
            topics.check_partition_increase("t", count)
    restarted = start()
    assert restarted.get("t").partition_count == 4
    assert restarted.log("t", 1).log_end_offset == 1


def test_open_logs_follow_their_topics_configs(topics: Topics, start: Start) -> None:
    at_once(topics.create("t", 1, {}))
    at_once(topics.create("other", 1, {}))
    log, other = topics.log("t", 0), topics.log("other", 0)

    at_once(topics.set_configs("t", {"retention.ms": "1234"}))

    assert log.config.retention_ms == 1234
    assert other.config.retention_ms == WEEK_MS
    with pytest.raises(ConfigError):
        at_once(topics.set_configs("t", {"no.such": "1"}))
    assert start().log("t", 0).config.retention_ms == 1234


def test_retention_after_a_crash_goes_by_the_topics_configs(start: Start) -> None:
    topics = start()
    at_once(topics.create("t", 1, {"retention.ms": "-1"}))
    append(topics, "t")

    recovered = start(after_crash=True)

    assert at_once(recovered.enforce_retention(NOW_MS + 2 * WEEK_MS)) == 0
    assert recovered.log("t", 0).log_start_offset == 0


def test_retention_reaches_logs_nobody_has_opened_a_few_at_a_time(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "LOGS_OPENED_AT_ONCE", 2)
    topics = start()
    at_once(topics.create("t", 10, {}))
    for partition in (1, 4, 8):
        append(topics, "t", partition, NOW_MS)
    restarted = start()
    later = NOW_MS + 2 * WEEK_MS

    deleted = []
    for _ in range(3):
        at_once(restarted.open_some())
        deleted.append(at_once(restarted.enforce_retention(later)))

    assert deleted == [2, 1, 0]
    assert len(list(tmp_path.glob("t-*"))) == 3


def test_one_log_that_fails_does_not_keep_retention_from_the_others(
    topics: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at_once(topics.create("t", 2, {}))
    for partition in (0, 1):
        append(topics, "t", partition)
    broken = topics.log("t", 0)

    def fail_for_one(log: PartitionLog, now_ms: int, *remove: Any) -> int:
        if log is broken:
            raise StorageError("no")
        return enforce_retention(log, now_ms, *remove)

    monkeypatch.setattr("headrace.broker.topics.enforce_retention", fail_for_one)

    assert at_once(topics.enforce_retention(NOW_MS + 2 * WEEK_MS)) == 1
    assert "retention failed" in caplog.text


def test_directories_without_a_catalog_are_adopted(start: Start, tmp_path: Path) -> None:
    topics = start()
    plain = at_once(topics.create("plain", 3, {"cleanup.policy": "compact"}))
    at_once(topics.create("__consumer_offsets", 1, {}))
    append(topics, "plain", 2)
    append(topics, "__consumer_offsets")
    used_id = at_once(topics.producer_ids.next())
    topics.catalog.close()
    for path in tmp_path.glob(f"{FILE_NAME}*"):
        path.unlink()

    adopted = start()

    assert adopted.get("plain").topic_id == plain.topic_id
    assert adopted.get("plain").partition_count == 3
    assert adopted.log("plain", 2).log_end_offset == 1
    assert adopted.get("__consumer_offsets").is_internal
    assert adopted.log("__consumer_offsets", 0).config.is_compacted
    assert at_once(adopted.producer_ids.next()) > used_id + 1_000_000
    assert start().all() == adopted.all()


def test_adopted_topics_keep_their_messages(start: Start, tmp_path: Path) -> None:
    topics = start()
    at_once(topics.create("t", 1, {}))
    append(topics, "t")
    topics.catalog.close()
    (tmp_path / FILE_NAME).unlink()

    adopted = start()
    at_once(adopted.enforce_retention(NOW_MS + 100 * WEEK_MS))

    assert adopted.log("t", 0).log_start_offset == 0


def test_a_directory_that_kafka_wrote_is_adopted(start: Start, tmp_path: Path) -> None:
    captures = Path(__file__).parents[1] / "data" / "kafka-4.3.1" / "data"
    shutil.copytree(captures, tmp_path, dirs_exist_ok=True)

    topics = start()

    names = [topic.name for topic in topics.all()]
    assert len(names) == 17
    assert "__cluster_metadata" not in names
    assert topics.get("multi").partition_count == 3
    assert topics.log("trimmed", 0).log_start_offset == 35
    assert topics.log("codec-zstd", 0).log_end_offset == 200


def test_all_partitions_of_a_topic_that_kafka_wrote_go_on_in_its_newest_epoch(
    start: Start, tmp_path: Path
) -> None:
    captures = Path(__file__).parents[1] / "data" / "kafka-4.3.1" / "data"
    shutil.copytree(captures, tmp_path, dirs_exist_ok=True)
    (tmp_path / "multi-1" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 10\n")

    topics = start()

    assert topics.get("multi").leader_epoch == 4
    logs = [topics.log("multi", partition) for partition in range(3)]
    assert [log.leader_epoch for log in logs] == [4, 4, 4]
    assert logs[0].end_offset_for_epoch(0) == (0, 15)
    assert logs[1].end_offset_for_epoch(0) == (0, 10)
    assert logs[0].end_offset_for_epoch(4) == (4, 15)


def test_a_directory_that_is_not_kafkas_is_left_alone(start: Start, tmp_path: Path) -> None:
    for name in ("backup-1", "lost+found", "t-0.3f-delete"):
        (tmp_path / name).mkdir()

    assert start().all() == []


def test_a_copied_directory_does_not_take_its_originals_id(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = start()
    original = at_once(topics.create("t", 1, {}))
    append(topics, "t")
    topics.catalog.close()
    shutil.copytree(tmp_path / "t-0", tmp_path / "copy-0")

    restarted = start(after_crash=True)

    assert restarted.all() == [original]
    assert "another topic has its id" in caplog.text
    at_once(restarted.enforce_retention(NOW_MS + 2 * WEEK_MS))
    assert (tmp_path / "copy-0" / f"{0:020d}.log").stat().st_size > 0
    assert restarted.log("t", 0).log_start_offset == 1


def test_a_producer_expiration_changed_earlier_acts_after_a_start(tmp_path: Path) -> None:
    settings = BrokerSettings.load()
    settings.set_dynamic({"default:producer.id.expiration.ms": "2000"})
    logs = LogDirectory(tmp_path, node_id=1)
    logs.open(NOW_MS)
    with closing(Catalog(tmp_path)) as catalog:
        topics = Topics(catalog, logs, settings, lambda: NOW_MS)
        at_once(topics.create("t", 1, {}))

        assert topics.log("t", 0).producer_expiration_ms == 2000
    logs.close(NOW_MS)


def test_every_commit_is_made_in_another_thread_than_the_loops(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    commit = Catalog._transaction

    def note(catalog: Catalog) -> Any:
        threads.append(threading.get_ident())
        return commit(catalog)

    monkeypatch.setattr(Catalog, "_transaction", note)

    async def scenario() -> None:
        await topics.create("t", 1, {})
        await topics.changes.make(lambda: topics.add_partitions({"t": 2}))
        await topics.set_configs("t", {"retention.ms": "1"})
        await topics.changes.make(lambda: topics.store_settings({"log.retention.ms": "5"}))
        await topics.producer_ids.next()
        await topics.delete("t")

    at_once(scenario())

    assert len(threads) == 7, "a deletion is two"
    assert threading.get_ident() not in threads


def test_the_directories_of_a_topic_are_renamed_and_removed_in_threads_with_one_sync(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 40, {}))
    for partition in range(40):
        append(topics, "t", partition)
    calls: list[tuple[str, int]] = []

    def noted(module: Any, name: str) -> None:
        original = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append((name, threading.get_ident()))
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    noted(removal, "sync_directory")
    noted(Path, "rename")
    noted(shutil, "rmtree")

    at_once(topics.delete("t"))

    assert Counter(name for name, _ in calls) == {"rename": 40, "sync_directory": 1, "rmtree": 40}
    assert threading.get_ident() not in {thread for _, thread in calls}
    assert list(tmp_path.glob("t-*")) == []


def test_a_deleted_topic_is_gone_before_its_files_are(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 1, {}))
    append(topics, "t")
    may_remove = threading.Event()
    remove = shutil.rmtree

    def wait_and_remove(*args: Any, **kwargs: Any) -> None:
        assert may_remove.wait(60)
        remove(*args, **kwargs)

    monkeypatch.setattr(shutil, "rmtree", wait_and_remove)

    async def scenario() -> None:
        await topics.delete("t")
        assert not topics.has("t")
        assert len(list(tmp_path.glob("t-0*-delete"))) == 1
        await topics.create("t", 1, {})
        assert topics.log("t", 0).log_end_offset == 0
        may_remove.set()
        await topics.drain()

    at_once(scenario())


def test_what_is_left_to_remove_when_the_broker_stops_goes_at_the_next_start(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = start()
    at_once(topics.create("t", 3, {}))
    for partition in range(3):
        append(topics, "t", partition)
    is_removing, may_remove = threading.Event(), threading.Event()
    remove = shutil.rmtree

    def wait_and_remove(*args: Any, **kwargs: Any) -> None:
        is_removing.set()
        assert may_remove.wait(60)
        remove(*args, **kwargs)

    monkeypatch.setattr(shutil, "rmtree", wait_and_remove)

    async def scenario() -> None:
        await topics.delete("t")
        assert await asyncio.to_thread(is_removing.wait, 60)
        stopping = asyncio.create_task(topics.drain())
        await asyncio.sleep(0)
        may_remove.set()
        await stopping

    at_once(scenario())
    assert len(list(tmp_path.glob("t-*"))) == 2
    monkeypatch.undo()

    start()

    assert list(tmp_path.glob("t-*")) == []


def test_a_topic_made_again_inherits_nothing_even_after_a_crash(
    topics: Topics, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at_once(topics.create("t", 1, {}))
    for _ in range(5):
        append(topics, "t")
    at_once(topics.checkpoint())

    at_once(topics.delete("t"))
    at_once(topics.create("t", 1, {}))
    append(topics, "t")

    crashed = tmp_path_factory.mktemp("crashed")
    shutil.copytree(tmp_path, crashed, dirs_exist_ok=True)
    logs = LogDirectory(crashed, node_id=1)
    logs.open(NOW_MS)
    (log,) = logs.loaded()
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)
    logs.close(NOW_MS)


def test_making_a_used_partition_again_writes_no_checkpoint_on_the_loop(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 1, {}))
    append(topics, "t")
    at_once(topics.checkpoint())
    at_once(topics.delete("t"))
    at_once(topics.create("t", 1, {}))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    topics.log("t", 0)

    assert synced == []


def test_a_deletion_is_carried_through_when_the_client_is_gone(topics: Topics) -> None:
    at_once(topics.create("t", 2, {}))
    append(topics, "t")

    async def scenario() -> None:
        asking = asyncio.create_task(topics.delete("t"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await topics.drain()

    at_once(scenario())

    assert not topics.has("t")
    assert topics.catalog.topics(deleting=True) == []


def test_two_who_make_the_same_topic_at_once_make_one(topics: Topics) -> None:
    async def scenario() -> list[Any]:
        return await asyncio.gather(
            topics.ensure("t"),
            topics.ensure("t"),
            topics.create("t", 9, {}),
            return_exceptions=True,
        )

    first, second, third = at_once(scenario())

    assert first == (topics.get("t"), True)
    assert second == (topics.get("t"), False)
    assert isinstance(third, TopicExistsError)


@pytest.mark.parametrize(
    "job",
    [
        lambda topics: topics.checkpoint(),
        lambda topics: topics.enforce_retention(NOW_MS),
        lambda topics: topics.changes.make(lambda: topics.store_settings({})),
        lambda topics: topics.delete("t"),
        lambda topics: topics.sizes_bytes([TopicPartition("t", at) for at in range(30)]),
    ],
    ids=["checkpoint", "retention", "settings", "deletion", "sizes"],
)
def test_what_goes_through_all_logs_gives_others_their_turns(
    job: Callable[[Topics], Any], topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 30, {}))
    for partition in range(30):
        append(topics, "t", partition)

    assert turns_during(job(topics), monkeypatch) >= 14


def test_logs_that_retention_has_not_seen_are_opened_with_turns_in_between(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = start()
    at_once(topics.create("t", 10, {}))
    for partition in range(10):
        append(topics, "t", partition)

    assert turns_during(start().open_some(), monkeypatch) >= 4


def test_files_that_retention_lets_go_are_unlinked_in_a_thread(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 1, {"file.delete.delay.ms": "0"}))
    append(topics, "t")
    threads: dict[str, int] = {}
    unlink = Path.unlink

    def note(path: Path, *args: Any, **kwargs: Any) -> None:
        threads[path.name] = threading.get_ident()
        unlink(path, *args, **kwargs)

    monkeypatch.setattr(Path, "unlink", note)

    assert at_once(topics.enforce_retention(NOW_MS + 2 * WEEK_MS)) == 1

    doomed = {name for name in threads if name.endswith(".deleted")}
    assert "00000000000000000000.log.deleted" in doomed
    assert threading.get_ident() not in {threads[name] for name in doomed}
    assert list((tmp_path / "t-0").glob("*.deleted")) == []


def test_a_checkpoint_does_not_bring_back_a_topic_deleted_meanwhile(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(topics.create("t", 30, {}))
    for partition in range(30):
        append(topics, "t", partition)

    async def scenario() -> None:
        monkeypatch.setattr(turns_module, "SLICE_SECONDS", 0.0)
        await asyncio.gather(topics.checkpoint(), topics.delete("t"))
        await topics.checkpoint()

    at_once(scenario())

    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert "t " not in (tmp_path / name).read_text()
