import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from headrace.broker.catalog import FILE_NAME, PRODUCER_ID_BLOCK, Catalog
from headrace.log.errors import StorageError, StorageWriteError
from headrace.model import Topic


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with closing(Catalog(tmp_path)) as catalog:
        yield catalog


def a_topic(name: str = "t", number: int = 1, partition_count: int = 3) -> Topic:
    return Topic(name, UUID(int=number), partition_count, {"retention.ms": "5"})


def test_topics_survive_closing_and_opening(tmp_path: Path) -> None:
    internal = Topic("__consumer_offsets", UUID(int=7), 50, {}, is_internal=True, leader_epoch=4)
    with closing(Catalog(tmp_path)) as catalog:
        catalog.add_topics([a_topic(), internal])

    with closing(Catalog(tmp_path)) as reopened:
        assert reopened.topics() == [internal, a_topic()]


def test_topics_survive_a_crash_right_after_the_commit(tmp_path: Path, catalog: Catalog) -> None:
    catalog.add_topics([a_topic()])

    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob(f"{FILE_NAME}*"):
        (copy / path.name).write_bytes(path.read_bytes())

    with closing(Catalog(copy)) as after_crash:
        assert after_crash.topics() == [a_topic()]


def test_adding_topics_is_all_or_nothing(catalog: Catalog) -> None:
    with pytest.raises(StorageError):
        catalog.add_topics([a_topic("a", 1), a_topic("b", 1)])

    assert catalog.topics() == []


def test_a_partition_count_can_be_changed(catalog: Catalog) -> None:
    catalog.add_topics([a_topic("a", 1), a_topic("b", 2)])

    catalog.set_partition_counts({"a": 9})

    assert [topic.partition_count for topic in catalog.topics()] == [9, 3]


def test_setting_topic_configs_replaces_all_of_them(catalog: Catalog) -> None:
    catalog.add_topics([a_topic()])

    catalog.set_topic_configs("t", {"segment.ms": "7"})

    assert catalog.topics()[0].configs == {"segment.ms": "7"}


def test_a_topic_marked_deleting_is_listed_apart_until_it_is_removed(catalog: Catalog) -> None:
    catalog.add_topics([a_topic("a", 1), a_topic("b", 2)])

    catalog.mark_deleting(["a"])
    listed = [topic.name for topic in catalog.topics()]
    deleting = [topic.name for topic in catalog.topics(deleting=True)]
    catalog.remove_topics(["a"])

    assert (listed, deleting) == (["b"], ["a"])
    assert catalog.topics(deleting=True) == []


def test_a_removed_topic_leaves_no_configs_to_its_successor(catalog: Catalog) -> None:
    catalog.add_topics([a_topic()])
    catalog.remove_topics(["t"])

    catalog.add_topics([Topic("t", UUID(int=2), 1, {})])

    assert catalog.topics()[0].configs == {}


def test_broker_configs_are_replaced_and_survive(tmp_path: Path) -> None:
    with closing(Catalog(tmp_path)) as catalog:
        catalog.set_broker_configs({"log.retention.ms": "1"})
        catalog.set_broker_configs({"log.segment.bytes": "2", "a": "3"})

    with closing(Catalog(tmp_path)) as reopened:
        assert reopened.broker_configs() == {"a": "3", "log.segment.bytes": "2"}


def test_producer_ids_are_reserved_in_blocks_that_follow_each_other(catalog: Catalog) -> None:
    blocks = [catalog.reserve_producer_ids() for _ in range(2)]

    assert [len(block) for block in blocks] == [PRODUCER_ID_BLOCK] * 2
    assert [*blocks[0], *blocks[1]] == list(range(2 * PRODUCER_ID_BLOCK))


def test_a_restart_skips_producer_ids_and_repeats_none(tmp_path: Path) -> None:
    with closing(Catalog(tmp_path)) as catalog:
        assert catalog.reserve_producer_ids()[0] == 0

    with closing(Catalog(tmp_path)) as reopened:
        assert reopened.reserve_producer_ids()[0] == PRODUCER_ID_BLOCK


def test_producer_ids_can_be_skipped_but_never_go_back(catalog: Catalog) -> None:
    catalog.skip_producer_ids_below(5_000_000)
    catalog.skip_producer_ids_below(10)

    assert catalog.reserve_producer_ids()[0] == 5_000_000


@pytest.mark.parametrize(
    "damage", [b"this is not a database at all" * 100, b"SQLite format 3\0" * 9]
)
def test_a_damaged_file_is_named_together_with_the_fix(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(damage)

    with pytest.raises(StorageError, match=rf"{FILE_NAME} is damaged .* move it away"):
        Catalog(tmp_path)


def test_a_damaged_page_inside_is_found_on_open(tmp_path: Path) -> None:
    with closing(Catalog(tmp_path)) as catalog:
        catalog.add_topics([a_topic(f"topic-{number}", number) for number in range(500)])
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xa5" * 8192
    path.write_bytes(content)

    with pytest.raises(StorageError, match="move it away"):
        Catalog(tmp_path)


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Catalog(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database:
        database.execute("PRAGMA user_version = 99")

    with pytest.raises(StorageError, match="newer headrace"):
        Catalog(tmp_path)


def test_a_full_disk_changes_nothing_and_the_catalog_goes_on(catalog: Catalog) -> None:
    catalog.add_topics([a_topic()])
    # SQLite's own limit on the file's size gives the same error as a full disk.
    (page_count,) = catalog._db.execute("PRAGMA page_count").fetchone()
    catalog._db.execute(f"PRAGMA max_page_count = {page_count}")
    many = [a_topic(f"{number:0200d}", number + 10) for number in range(500)]

    with pytest.raises(StorageWriteError, match="cannot write"):
        catalog.add_topics(many)

    assert catalog.topics() == [a_topic()]
    catalog._db.execute("PRAGMA max_page_count = 1000000")
    catalog.add_topics(many)
    assert len(catalog.topics()) == 501


def test_a_producer_id_is_not_given_out_when_its_block_cannot_be_written(
    catalog: Catalog,
) -> None:
    catalog._db.execute("PRAGMA query_only = ON")
    with pytest.raises(StorageWriteError):
        catalog.reserve_producer_ids()
    catalog._db.execute("PRAGMA query_only = OFF")

    assert catalog.reserve_producer_ids()[0] == 0


def test_a_directory_that_is_not_there_is_a_write_error(tmp_path: Path) -> None:
    with pytest.raises(StorageWriteError):
        Catalog(tmp_path / "missing")
