"""Takes partition directories the catalog does not know into it: what real Kafka wrote, or what
is left when the catalog had to be moved away.

What only the lost metadata knew is replaced by the choice that loses nothing: such topics keep
their messages until somebody sets a retention, and producer ids continue far above all that
those logs can have seen.
"""

import logging
import os
from pathlib import Path
from uuid import UUID

from headrace.broker.catalog import Catalog
from headrace.broker.internal_topics import topic_defaults
from headrace.broker.partition_limits import MAX_PARTITIONS_PER_TOPIC
from headrace.broker.topic_names import INTERNAL_TOPICS
from headrace.log.directory import LogDirectory
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.names import parse_partition_directory
from headrace.model import Topic, TopicPartition
from headrace.settings.broker_settings import BrokerSettings

KEEP_EVERYTHING = {"retention.bytes": "-1", "retention.ms": "-1"}

_NO_ID = UUID(int=0)
_log = logging.getLogger(__name__)


def partition_directories(data_dir: Path) -> set[TopicPartition]:
    """Return the partitions that have a directory, judged by name alone."""
    with os.scandir(data_dir) as entries:
        partitions = [parse_partition_directory(entry.name) for entry in entries if entry.is_dir()]
    return {partition for partition in partitions if partition is not None}


def adopt(catalog: Catalog, logs: LogDirectory, settings: BrokerSettings, now_ms: int) -> None:
    """Add topics found on disk to the catalog, with the ids their directories carry."""
    known = [*catalog.topics(), *catalog.topics(deleting=True)]
    names, ids = {topic.name for topic in known}, {topic.topic_id for topic in known}
    if all(partition.topic in names for partition in partition_directories(logs.path)):
        return
    found: dict[str, dict[int, UUID]] = {}
    for (name, partition), topic_id in logs.partitions_on_disk().items():
        if name not in names and topic_id != _NO_ID:
            found.setdefault(name, {})[partition] = topic_id
    topics = []
    for name, ids_by_partition in sorted(found.items()):
        topic = _topic(name, ids_by_partition, logs.path, settings)
        if topic.topic_id in ids or topic.partition_count > MAX_PARTITIONS_PER_TOPIC:
            reason = (
                "another topic has its id" if topic.topic_id in ids else "its number is too high"
            )
            _log.warning("left alone on disk: %s", reason, extra={"topic": name})
            continue
        ids.add(topic.topic_id)
        topics.append(topic)
    if not topics:
        return
    # Kafka counts producer ids up from 0; microseconds since 1970 are beyond any count, and
    # beyond what an earlier adoption started from.
    catalog.skip_producer_ids_below(now_ms * 1000)
    catalog.add_topics(topics)
    for topic in topics:
        facts = {"topic": topic.name, "partitions": topic.partition_count}
        _log.info("adopted from disk; configs unknown, messages are kept", extra=facts)


def _topic(name: str, ids: dict[int, UUID], data_dir: Path, settings: BrokerSettings) -> Topic:
    directories = [data_dir / f"{name}-{partition}" for partition in ids]
    is_internal = name in INTERNAL_TOPICS
    return Topic(
        name=name,
        topic_id=ids[min(ids)],
        partition_count=max(ids) + 1,
        configs=topic_defaults(name, settings.int).configs if is_internal else KEEP_EVERYTHING,
        is_internal=is_internal,
        leader_epoch=max(_newest_epoch(directory) for directory in directories),
    )


def _newest_epoch(directory: Path) -> int:
    epochs = LeaderEpochs(directory)
    epochs.load()
    return epochs.latest
