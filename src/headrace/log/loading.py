"""Open one partition's directory as a `PartitionLog`: after a clean stop or any other."""

import os
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from headrace.config import LONG_MAX, LogConfig
from headrace.log import leader_epochs, offset_index, recovery
from headrace.log.checkpoints import PARTITION_METADATA, write_partition_metadata
from headrace.log.files import FileCache
from headrace.log.index_cache import IndexCache
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.leftovers import clear_leftovers
from headrace.log.names import LOG_SUFFIX, parse_segment_file
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_rebuild import forget_silent, load_producers
from headrace.log.producer_snapshot import ProducerSnapshots
from headrace.log.producer_state import ProducerStates
from headrace.log.scanner import scan_file
from headrace.log.segment import Segment
from headrace.log.segment_check import examine_all
from headrace.log.segments import Segments
from headrace.log.unsynced_files import UnsyncedFiles
from headrace.records.batch import Buffer


@dataclass(slots=True, kw_only=True)
class Opening:
    """What opening a partition needs to know besides its name and config."""

    files: FileCache
    indexes: IndexCache
    now_ms: int
    producer_expiration_ms: int = 86_400_000
    recovery_point: int = 0
    log_start_offset: int = 0
    cleaner_offset: int = 0
    was_clean: bool = True
    syncs: bool = True  # False: the caller syncs everything after recovery
    rewrites: bool = False  # what is read must be written again: its last sync failed
    repairs: list[str] = field(default_factory=list)  # one sentence each; filled here


def create_partition(
    directory: Path,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    opening: Opening,
) -> PartitionLog:
    """A new empty partition. The first sync of its data makes the directory durable too."""
    directory.mkdir(parents=True, exist_ok=True)
    write_partition_metadata(directory, topic_id)
    epochs = LeaderEpochs(directory)
    base_offset = max(opening.log_start_offset, opening.recovery_point)
    epochs.assign(0, base_offset)
    epochs.write()
    segment = Segment.create(
        directory,
        base_offset,
        opening.files,
        opening.indexes,
        config.index_interval_bytes,
        opening.now_ms,
    )
    unsynced_files = UnsyncedFiles()
    small_files = (directory / PARTITION_METADATA, directory / leader_epochs.FILE_NAME)
    unsynced_files.note(base_offset, directory.parent, *small_files, directory)
    return _build(
        directory,
        topic,
        partition,
        topic_id,
        config,
        [segment],
        ProducerStates(),
        ProducerSnapshots(directory),
        epochs,
        unsynced_files,
        opening,
    )


def open_partition(
    directory: Path,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    opening: Opening,
) -> PartitionLog:
    """Open what is there; nothing that can be read is lost by it."""
    repairs = opening.repairs
    clear_leftovers(directory, repairs)
    segments = _find_segments(directory, config, opening)
    if not segments:
        return create_partition(directory, topic, partition, topic_id, config, opening)
    epochs = LeaderEpochs(directory)
    if fault := epochs.load():
        repairs.append(f"{directory / 'leader-epoch-checkpoint'}: ignored, {fault}")
    had_epochs = list(epochs.entries)
    snapshots = ProducerSnapshots(directory)
    # Settings that were changed at run time are not known yet during a recovery: then nobody is
    # forgotten before the first look at retention.
    forget_after_ms = LONG_MAX
    first = recovery.first_to_recover(segments, opening.recovery_point)
    checked = segments[:-1] if opening.was_clean else segments[:first]
    for segment in checked:
        _open_closed(segment, repairs)
    if opening.was_clean and _open_last(segments, opening):
        producers = load_producers(
            snapshots,
            segments,
            segments[-1].end_offset,
            opening.now_ms,
            repairs,
        )
        forget_after_ms = opening.producer_expiration_ms
    else:
        producers = recovery.recover(
            directory,
            segments,
            snapshots,
            opening.recovery_point,
            epochs,
            is_compacted=config.is_compacted,
            now_ms=opening.now_ms,
            syncs=opening.syncs,
            rewrites=opening.rewrites,
            repairs=repairs,
        )
        opening.recovery_point = segments[-1].end_offset
    snapshots.remove_strays({s.base_offset for s in segments}, segments[-1].end_offset)
    epochs.cut_end(max(segments[-1].end_offset, 1))
    if epochs.assign(0, segments[0].base_offset) or epochs.entries != had_epochs:
        epochs.write()
    return _build(
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments,
        producers,
        snapshots,
        epochs,
        UnsyncedFiles(),
        opening,
        forget_after_ms,
    )


def _build(
    directory: Path,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    segments: list[Segment],
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    epochs: LeaderEpochs,
    unsynced_files: UnsyncedFiles,
    opening: Opening,
    forget_after_ms: int = LONG_MAX,
) -> PartitionLog:
    end_offset = segments[-1].end_offset
    snapshots.find_latest()
    forget_silent(producers, opening.now_ms, forget_after_ms)
    return PartitionLog(
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments=Segments(directory, segments, opening.files, opening.indexes, config),
        producers=producers,
        snapshots=snapshots,
        epochs=epochs,
        unsynced_files=unsynced_files,
        log_start_offset=min(max(opening.log_start_offset, segments[0].base_offset), end_offset),
        recovery_point=opening.recovery_point,
        producer_expiration_ms=opening.producer_expiration_ms,
        # The active segment is never compacted: a checkpoint inside it is another log's.
        cleaner_offset=(
            opening.cleaner_offset if opening.cleaner_offset <= segments[-1].base_offset else 0
        ),
    )


def _find_segments(directory: Path, config: LogConfig, opening: Opening) -> list[Segment]:
    sizes: dict[int, int] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            parsed = parse_segment_file(entry.name)
            if parsed is not None and parsed[1] == LOG_SUFFIX:
                sizes[parsed[0]] = entry.stat().st_size
    segments = [
        Segment(
            directory,
            base_offset,
            sizes[base_offset],
            opening.files,
            opening.indexes,
            config.index_interval_bytes,
            opening.now_ms,
        )
        for base_offset in sorted(sizes)
    ]
    for segment, successor in pairwise(segments):
        segment.end_offset = successor.base_offset
    return segments


def _open_closed(segment: Segment, repairs: list[str]) -> None:
    """Look at the indexes of a segment that is not walked now; rebuild what makes no sense."""
    fault = offset_index.find_file_fault(segment.index.path, segment.size)
    path = segment.index.path
    if fault is None:
        fault = segment.time_index.open()
        path = segment.time_index.path
    if fault is None and segment.time_index.last_offset >= max(
        segment.end_offset, segment.base_offset + 1
    ):
        fault = f"its last entry is offset {segment.time_index.last_offset}, behind the segment"
    if fault is not None:
        if segment.size:
            repairs.append(f"{path}: rebuilt from the log, {fault}")
        examine_all(segment)
        repairs += recovery.describe_damages(segment)
        segment.flush_indexes()
        segment.index.unload()
        return
    segment.believe_time_index()


def _open_last(segments: list[Segment], opening: Opening) -> bool:
    """Find the log's end behind the last index entry; False when anything is odd there."""
    last = segments[-1]
    index, time_index = last.index, last.time_index
    if index.load(last.size) is not None or time_index.open() is not None:
        return False
    position = index.positions[-1] if index.positions else 0
    last.indexed_position = position
    last.believe_time_index()
    first_seen: list[int] = []

    def visit(fields: tuple[int, ...], position: int, buffer: Buffer, at: int) -> None:
        last_offset = fields[0] + fields[6]
        first_seen.append(last_offset)
        if fields[8] > last.max_timestamp:
            last.max_timestamp, last.max_timestamp_offset = fields[8], last_offset

    scan = scan_file(
        last.file.get().fd, position, last.size, last.base_offset, visit, stops_at_damage=True
    )
    if scan.damages or scan.next_offset < opening.recovery_point:
        return False
    if position and first_seen[0] != index.offsets[-1] + last.base_offset:
        return False
    if time_index.count and time_index.last_offset >= scan.next_offset:
        return False
    last.end_offset = scan.next_offset
    last.is_active = True
    last.note_checked(position, last.size)
    return True
