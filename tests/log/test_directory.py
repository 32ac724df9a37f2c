import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from headrace.config import LogConfig
from headrace.errors import ConfigError
from headrace.log import checkpoints
from headrace.log.directory import LogDirectory
from headrace.log.errors import DirectoryInUseError, StorageError, StorageWriteError
from headrace.log.partition_log import PartitionLog
from headrace.model import TopicPartition
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record

NOW_MS = 1_700_000_000_000
ID = UUID(int=99)
CONFIG = LogConfig(retention_ms=None)


def opened(path: Path) -> LogDirectory:
    directory = LogDirectory(path, node_id=1)
    directory.open(NOW_MS)
    return directory


def append(log: PartitionLog, count: int = 1) -> None:
    batch = build_batch([Record(i, NOW_MS, None, b"value", []) for i in range(count)])
    header = peek_header(batch)
    assert header is not None
    log.stage(memoryview(batch), header, NOW_MS)
    log.commit(NOW_MS)


def crash(directory: LogDirectory) -> None:
    """Leave everything as a killed process would: only the lock goes."""
    directory._release()


def test_a_new_directory_gets_kafkas_files(tmp_path: Path) -> None:
    directory = opened(tmp_path / "data")
    append(directory.get("orders", 0, ID, CONFIG), 3)
    directory.close(NOW_MS)

    data = tmp_path / "data"
    properties = checkpoints.read_properties(data / "meta.properties")
    assert properties is not None
    assert (properties["version"], properties["node.id"]) == ("1", "1")
    assert properties["cluster.id"] == directory.cluster_id
    assert len(directory.cluster_id) == 22
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (data / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (data / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    assert (data / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
    assert (data / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    names = sorted(path.name for path in (data / "orders-0").iterdir())
    assert names == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    metadata = (data / "orders-0" / "partition.metadata").read_text()
    assert metadata == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAYw"


def test_a_clean_start_opens_no_partition(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in range(5):
        append(directory.get("t", number, ID, CONFIG))
    directory.close(NOW_MS)

    directory = LogDirectory(tmp_path, node_id=1)
    report = directory.open(NOW_MS)

    assert (report.was_clean, report.repairs, list(directory.loaded())) == (True, [], [])
    assert directory.get("t", 3, ID, CONFIG).log_end_offset == 1
    assert len(list(directory.loaded())) == 1
    directory.close(NOW_MS)


def test_the_clean_marker_is_gone_while_the_directory_is_open(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.close(NOW_MS)
    marker = tmp_path / ".kafka_cleanshutdown"
    assert marker.exists()

    directory = opened(tmp_path)

    assert directory.was_clean
    assert not marker.exists()
    directory.close(NOW_MS)


def test_an_unclean_start_recovers_every_partition_and_says_what_it_did(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in range(3):
        append(directory.get("t", number, ID, CONFIG), 2)
    crash(directory)
    torn = tmp_path / "t-1" / "00000000000000000000.log"
    with torn.open("ab") as file:
        file.write(b"torn")
    progress: list[tuple[int, int]] = []

    directory = LogDirectory(tmp_path, node_id=1)
    report = directory.open(NOW_MS, on_progress=lambda done, total: progress.append((done, total)))

    assert not report.was_clean
    assert report.recovered_partitions == 3
    assert len(report.repairs) == 1
    assert report.repairs[0].startswith(f"{torn}: cut 4 bytes at byte ")
    assert progress == [(1, 3), (2, 3), (3, 3)]
    assert {log.log_end_offset for log in directory.loaded()} == {2}
    directory.close(NOW_MS)


def test_partitions_that_were_not_opened_keep_their_checkpoints(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in range(2):
        append(directory.get("t", number, ID, CONFIG), 5)
    directory.get("t", 1, ID, CONFIG).delete_records(3)
    directory.close(NOW_MS)

    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG))
    directory.close(NOW_MS)

    points, _ = checkpoints.read_offsets(tmp_path / checkpoints.RECOVERY_POINTS)
    starts, _ = checkpoints.read_offsets(tmp_path / checkpoints.LOG_START_OFFSETS)
    assert points == {TopicPartition("t", 0): 6, TopicPartition("t", 1): 5}
    assert starts == {TopicPartition("t", 1): 3}
    directory = opened(tmp_path)
    assert directory.get("t", 1, ID, CONFIG).log_start_offset == 3
    directory.close(NOW_MS)


def test_a_second_broker_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    directory = opened(tmp_path)

    with pytest.raises(DirectoryInUseError, match=f"in use by process {os.getpid()}"):
        LogDirectory(tmp_path, node_id=1).open(NOW_MS)
    code = (
        "import sys, pathlib\n"
        "from headrace.log.directory import LogDirectory\n"
        "LogDirectory(pathlib.Path(sys.argv[1]), node_id=1).open(0)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert "DirectoryInUseError" in run.stderr

    directory.close(NOW_MS)
    opened(tmp_path).close(NOW_MS)


def test_another_cluster_or_node_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close(NOW_MS)

    with pytest.raises(ConfigError, match=r"cluster\.id=other"):
        LogDirectory(tmp_path, node_id=1, cluster_id="other").open(NOW_MS)
    with pytest.raises(ConfigError, match="belongs to node 1"):
        LogDirectory(tmp_path, node_id=2).open(NOW_MS)
    # A refused start leaves the marker: nothing was written.
    directory = opened(tmp_path)
    assert directory.was_clean
    directory.close(NOW_MS)


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")

    with pytest.raises(ConfigError, match="it is a file"):
        LogDirectory(tmp_path / "data", node_id=1).open(NOW_MS)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    parent = Path("/proc/headrace-test")

    with pytest.raises(StorageWriteError, match="cannot write /proc"):
        LogDirectory(parent, node_id=1).open(NOW_MS)


def test_deleting_a_partition_removes_its_directory(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)
    append(log, 4)
    (held,) = log.read(0, 100)

    directory.delete("t", 0)

    assert not list(tmp_path.glob("t-0*"))
    assert list(directory.loaded()) == []
    assert len(os.pread(held.file.fd, held.length, 0)) == held.length
    directory.delete("t", 0)
    assert directory.create("t", 0, UUID(int=3), CONFIG, NOW_MS).log_end_offset == 0
    directory.close(NOW_MS)


@pytest.mark.parametrize("is_recreated", [True, False])
def test_a_recreated_partition_does_not_inherit_offsets_after_a_crash(
    tmp_path: Path, is_recreated: bool
) -> None:
    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)
    append(log, 4)
    log.mark_synced(4)
    directory.checkpoint()
    directory.delete("t", 0)
    if is_recreated:
        directory.get("t", 0, UUID(int=3), CONFIG)
    crash(directory)

    directory = opened(tmp_path)

    assert directory.get("t", 0, UUID(int=3), CONFIG).log_end_offset == 0
    directory.close(NOW_MS)


def test_directories_on_their_way_out_go_at_the_next_start(tmp_path: Path) -> None:
    opened(tmp_path).close(NOW_MS)
    doomed = tmp_path / "t-0.0123456789abcdef0123456789abcdef-delete"
    doomed.mkdir()
    (doomed / "00000000000000000000.log").write_bytes(b"old")

    directory = opened(tmp_path)

    assert not doomed.exists()
    assert directory.partitions_on_disk() == {}
    directory.close(NOW_MS)


def test_a_directory_of_another_topic_is_not_served(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG))
    directory.close(NOW_MS)
    directory = opened(tmp_path)

    with pytest.raises(StorageError, match="belongs to topic id"):
        directory.get("t", 0, UUID(int=1), CONFIG)
    directory.close(NOW_MS)


def test_partitions_on_disk_are_found_by_name(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.get("with-dashes.and_dots", 12, ID, CONFIG)
    (tmp_path / "no-partition").mkdir()
    (tmp_path / "file-1").write_text("")

    assert directory.partitions_on_disk() == {TopicPartition("with-dashes.and_dots", 12): ID}
    directory.close(NOW_MS)


def test_many_changed_partitions_are_closed_with_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr("headrace.log.directory.sync_filesystem", lambda path: calls.append("sync"))
    directory = opened(tmp_path)
    for number in range(40):
        append(directory.get("t", number, ID, CONFIG))

    directory.close(NOW_MS)

    assert calls == ["sync"]
    directory = opened(tmp_path)
    assert directory.get("t", 39, ID, CONFIG).log_end_offset == 1
    directory.close(NOW_MS)


def test_a_damaged_checkpoint_is_reported_and_does_not_stop_the_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG), 2)
    directory.close(NOW_MS)
    (tmp_path / checkpoints.RECOVERY_POINTS).write_text("0\n7\nt 0 2\n")

    directory = LogDirectory(tmp_path, node_id=1)
    report = directory.open(NOW_MS)

    assert "it should have 7 lines and has 1" in report.repairs[0]
    assert directory.get("t", 0, ID, CONFIG).log_end_offset == 2
    directory.close(NOW_MS)


def test_a_changed_config_reaches_a_loaded_log(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.get("t", 0, ID, CONFIG)
    changed = LogConfig(segment_bytes=12345)

    assert directory.get("t", 0, ID, changed).config is changed
    directory.close(NOW_MS)


def test_a_first_start_is_a_clean_one(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, node_id=1)

    assert directory.open(NOW_MS).was_clean
    directory.close(NOW_MS)


def test_a_topic_id_that_a_crash_lost_comes_back_with_the_first_use(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG))
    crash(directory)
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"")

    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)

    assert (log.topic_id, log.log_end_offset) == (ID, 1)
    assert directory.partitions_on_disk() == {TopicPartition("t", 0): ID}
    with pytest.raises(StorageError, match="belongs to topic id"):
        directory.get("t", 0, UUID(int=5), CONFIG)
    directory.close(NOW_MS)


@pytest.mark.parametrize("others", [0, 40])
def test_after_a_failed_sync_a_stop_is_not_clean_and_the_recovery_point_stays(
    tmp_path: Path, others: int
) -> None:
    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)
    append(log, 2)
    log.mark_synced(2)
    append(log, 3)
    log.sync_failure = StorageWriteError(log.directory, OSError(5, "Input/output error"))
    for partition in range(others):
        append(directory.get("other", partition, UUID(int=3), CONFIG))
    directory.close(NOW_MS)

    points, _ = checkpoints.read_offsets(tmp_path / checkpoints.RECOVERY_POINTS)
    assert points[TopicPartition("t", 0)] == 2
    assert all(points[TopicPartition("other", partition)] == 1 for partition in range(others))
    assert not (tmp_path / checkpoints.CLEAN_SHUTDOWN).exists()
    assert not opened(tmp_path).was_clean


@pytest.mark.parametrize("others", [0, 40])
def test_a_stop_whose_own_sync_fails_is_not_clean_but_leaves_all_else_in_order(
    tmp_path: Path, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG), 3)
    for partition in range(others):
        append(directory.get("other", partition, UUID(int=3), CONFIG))
    real = os.fdatasync

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("headrace.log.files.os.fdatasync", fail)
    monkeypatch.setattr("headrace.log.directory.sync_filesystem", fail)
    with pytest.raises(StorageWriteError):
        directory.close(NOW_MS)
    monkeypatch.setattr(os, "fdatasync", real)
    monkeypatch.undo()

    points, _ = checkpoints.read_offsets(tmp_path / checkpoints.RECOVERY_POINTS)
    assert set(points.values()) <= {0}
    assert not (tmp_path / checkpoints.CLEAN_SHUTDOWN).exists()
    # The kernel may take the lost pages for clean now: the next start must not believe them.
    assert "t-0" in checkpoints.read_failed_syncs(tmp_path)
    directory = opened(tmp_path)
    assert directory.get("t", 0, ID, CONFIG).log_end_offset == 3
    directory.close(NOW_MS)


def test_what_a_failed_sync_left_behind_is_written_again_before_it_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)
    append(log, 3)
    size = log.size_bytes
    checkpoints.note_failed_syncs([log.directory])
    directory.close(NOW_MS)
    rewritten: list[int] = []
    real = os.pwrite

    def pwrite(fd: int, data: bytes, position: int) -> int:
        if Path(f"/proc/self/fd/{fd}").readlink().name == f"{0:020d}.log":
            rewritten.append(len(data))
        return real(fd, data, position)

    monkeypatch.setattr(os, "pwrite", pwrite)

    directory = opened(tmp_path)

    assert not directory.was_clean
    assert sum(rewritten) == size
    assert checkpoints.read_failed_syncs(tmp_path) == set()
    assert directory.get("t", 0, ID, CONFIG).log_end_offset == 3


def test_a_partition_made_again_after_a_deletion_that_a_crash_cut_short_inherits_nothing(
    tmp_path: Path,
) -> None:
    directory = opened(tmp_path)
    log = directory.get("t", 0, ID, CONFIG)
    append(log, 5)
    log.delete_records(3)
    directory.checkpoint()
    (tmp_path / "t-0").rename(tmp_path / "t-0.0123-delete")
    crash(directory)
    restarted = opened(tmp_path)
    append(restarted.get("t", 0, UUID(int=100), CONFIG), 1)
    crash(restarted)

    again = opened(tmp_path)

    (log,) = again.loaded()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 1, 1)
    again.close(NOW_MS)


def test_a_checkpoint_that_was_written_since_makes_a_name_free(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    name = TopicPartition("t", 0)
    append(directory.get("t", 0, ID, CONFIG), 5)
    directory.checkpoint()
    directory.delete("t", 0)
    assert directory.is_remembered(name)
    assert directory.remembered_topics() == {"t"}

    write = directory.prepare_noted()
    assert directory.is_remembered(name), "it is not written yet"
    write()

    assert not directory.is_remembered(name)
    directory.close(NOW_MS)


@pytest.mark.parametrize("others", [0, 40])
def test_a_recovery_whose_sync_fails_is_noted_for_the_next_one(
    tmp_path: Path, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = opened(tmp_path)
    append(directory.get("t", 0, ID, CONFIG), 3)
    for partition in range(others):
        append(directory.get("other", partition, UUID(int=3), CONFIG))
    crash(directory)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr("headrace.log.directory.sync_filesystem", fail)
        with pytest.raises(StorageWriteError):
            opened(tmp_path)

    assert len(checkpoints.read_failed_syncs(tmp_path)) >= 1 + others
    directory = opened(tmp_path)
    assert directory.get("t", 0, ID, CONFIG).log_end_offset == 3
    directory.close(NOW_MS)
