"""The table of loads: what each is called, what it runs with, what its culprit may be told."""

from bench.stalls import administering, reading, writing
from bench.stalls.load import StallLoad

# A bomb may be taken, if it is within all limits, or refused as too large, bad or too costly.
_OF_BOMBS = frozenset(
    {"NONE", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "CORRUPT_MESSAGE", "INVALID_RECORD"}
    | {"THROTTLING_QUOTA_EXCEEDED", "UNSUPPORTED_COMPRESSION_TYPE"}
)
_OF_ABSURD_COUNTS = frozenset({"NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST"})
_OFFSETS_IN_ONE_PARTITION = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(32 * 1024 * 1024),
    "log.cleaner.backoff.ms": "500",
    # Never on its own: compaction begins when the clock runs.
    "log.cleaner.min.cleanable.ratio": "1",
}

LOADS = (
    StallLoad(name="quiet", title="nothing", prepare=administering.nothing),
    StallLoad(
        name="times",
        title="offsets by time, 50 partitions of 1 MB batches, 4 connections",
        prepare=reading.offsets_by_time,
    ),
    StallLoad(
        name="million",
        title="a Fetch of a million partitions, then ten in its session",
        prepare=reading.million_partitions,
        answers=_OF_ABSURD_COUNTS | {"FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"},
        may_be_closed=True,
    ),
    StallLoad(
        name="bombs",
        title="40 compressed bombs, 8 connections",
        prepare=writing.bombs,
        answers=_OF_BOMBS,
        may_be_closed=True,
    ),
    StallLoad(
        name="tiny-bombs",
        title="2,000 compressed bombs under 200 B, in one go",
        prepare=writing.tiny_bombs,
        answers=_OF_BOMBS,
        may_be_closed=True,
    ),
    StallLoad(
        name="delete",
        title="500 used partitions deleted in one request",
        prepare=administering.delete_used_topics,
    ),
    StallLoad(
        name="compaction",
        title="compaction of a million commits",
        prepare=administering.compaction,
        settings=_OFFSETS_IN_ONE_PARTITION,
    ),
    StallLoad(
        name="wide",
        title="a consumer of 5,000 partitions, writes, config changes, checkpoints",
        prepare=reading.wide_consumer,
        settings={"log.flush.offset.checkpoint.interval.ms": "1000"},
    ),
    StallLoad(
        name="metadata",
        title="Metadata of 10,000 topics, 2 connections and librdkafka",
        prepare=administering.metadata_of_all,
    ),
    StallLoad(name="cold", title="1 GB cold replay after a restart", prepare=reading.cold_replay),
    StallLoad(
        name="huge",
        title="Produce requests of 100 MB, 100 partitions",
        prepare=writing.huge_produce,
        answers=frozenset({"NONE", "INVALID_REQUEST"}),
        may_be_closed=True,
    ),
    StallLoad(
        name="absurd",
        title="Produce requests of 100,000 tiny batches",
        prepare=writing.absurd_produce,
        answers=_OF_ABSURD_COUNTS,
        may_be_closed=True,
    ),
    StallLoad(
        name="create", title="2,000 topics in one CreateTopics", prepare=administering.create_many
    ),
    StallLoad(
        name="describe",
        title="DescribeLogDirs and DescribeConfigs of 10,000 partitions",
        prepare=administering.describe_all,
    ),
    StallLoad(
        name="offsets",
        title="OffsetFetch of 30,000 partitions, ListGroups of 5,000",
        prepare=administering.offsets_of_all,
    ),
    StallLoad(
        name="hoarders",
        title="500 hoarders of 100 MB frames beside 5 MB requests",
        prepare=writing.hoarders,
        # Both close idle connections after ten minutes; nobody waits for that here.
        settings={"connections.max.idle.ms": "10000"},
    ),
    StallLoad(
        name="slow-disk",
        title="acks=all and new topics while each sync takes 16 ms",
        prepare=writing.slow_disk,
        slow_sync_ms=16,
    ),
)
