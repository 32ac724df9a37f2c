import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.at_once import at_once

from headrace.broker import deletions as deletions_module
from headrace.broker import topics as topics_module
from headrace.broker.catalog import FILE_NAME, Catalog
from headrace.broker.topics import Topics
from headrace.errors import (
    ConfigError,
    InvalidPartitionsError,
    InvalidTopicError,
    RequestError,
    StorageError,
    StorageWriteError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from headrace.log.directory import LogDirectory
from headrace.model import Topic
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
    retain = type(broken).enforce_retention

    def fail_for_one(log: object, now_ms: int, *remove: Any) -> int:
        if log is broken:
            raise StorageError("no")
        return retain(topics.log("t", 1), now_ms, *remove)

    monkeypatch.setattr(type(broken), "enforce_retention", fail_for_one)

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
