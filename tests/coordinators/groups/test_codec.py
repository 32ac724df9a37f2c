"""Records of `__consumer_offsets` as bytes: Kafka's own files are the reference."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordinators.groups.codec import decode, encode
from headrace.coordinators.groups.records import (
    ClassicMember,
    ClassicProtocols,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    ResolvedRegex,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
    Tombstone,
)
from headrace.kafka.tools import dump_log_segments
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.errors import InvalidRecordError
from headrace.records.record import Record, iter_records

KAFKA_LOG = (
    Path(__file__).parents[2]
    / "data/kafka-4.3.1/data/__consumer_offsets-0/00000000000000000000.log"
)
TOPIC_ID = UUID("66949a8f-11aa-4c55-b9b8-e5a193bec084")
OTHER_ID = UUID(int=9)
SHARE_GROUP_KEYS = range(10, 16)

ONE_OF_EACH: list[GroupRecord] = [
    OffsetCommit("g", "orders", 3, 42, 7, "seen by höme", 1_794_793_384_411, -1, TOPIC_ID),
    OffsetCommit("g", "orders", 4, 42),
    OffsetCommit("g", "orders", 5, 43, metadata="x" * 300, topic_id=TOPIC_ID),
    OffsetCommit("g", "orders", 6, 44, commit_timestamp_ms=5, expire_timestamp_ms=6),
    GroupMetadata("g", "", 0, None, None, 17, ()),
    GroupMetadata(
        "g",
        "consumer",
        3,
        "range",
        "a-1",
        17,
        (
            ClassicMember("a-1", None, "a", "/127.0.0.1", 300_000, 45_000, b"\x00\x01sub", b""),
            ClassicMember("b-1", "static-b", "b", "/::1", 1, 2, b"", b"assigned"),
        ),
    ),
    ConsumerGroupMetadata("g", 2, 3_605_347_000_827_772_203),
    ConsumerGroupMetadata("g", 3),
    ConsumerGroupMember("g", "m", None, None, "c", "/h", ("orders", "bills"), "", 5, None),
    ConsumerGroupMember(
        "g",
        "m2",
        "i",
        "r",
        "c",
        "/h",
        (),
        "or.*",
        5,
        "uniform",
        ClassicProtocols(9, (("p", b"m"),)),
    ),
    TargetAssignmentEpoch("g", 4, 99),
    TargetAssignmentEpoch("g", 5),
    TargetAssignmentMember("g", "m", {TOPIC_ID: (0, 1, 200), OTHER_ID: ()}),
    CurrentAssignment("g", "m", 4, 3, 1, {TOPIC_ID: (0, 1)}, {OTHER_ID: (2,)}),
    CurrentAssignment(
        "g",
        "m",
        4,
        -1,
        0,
        {TOPIC_ID: (0, 1), OTHER_ID: (2,)},
        {OTHER_ID: (3,)},
        {TOPIC_ID: (4, 3)},
        {OTHER_ID: (1,)},
    ),
    ResolvedRegex("g", "or.*", ("orders",), 12, 34),
    Tombstone(OffsetCommit, ("g", "orders", 3)),
    Tombstone(GroupMetadata, ("g",)),
    Tombstone(ConsumerGroupMetadata, ("g",)),
    Tombstone(ConsumerGroupMember, ("g", "m")),
    Tombstone(TargetAssignmentEpoch, ("g",)),
    Tombstone(TargetAssignmentMember, ("g", "m")),
    Tombstone(CurrentAssignment, ("g", "m")),
    Tombstone(ResolvedRegex, ("g", "or.*")),
]


def records_of_kafka() -> list[tuple[bytes, bytes | None]]:
    data = KAFKA_LOG.read_bytes()
    found: list[tuple[bytes, bytes | None]] = []
    position = 0
    while header := peek_header(data, position):
        if not header.is_control:
            for record in iter_records(data[position : position + header.size]):
                assert record.key is not None
                found.append((record.key, record.value))
        position += header.size
    return found


def test_every_record_that_kafka_wrote_decodes_and_encodes_to_the_same_bytes() -> None:
    kept = 0
    for key, value in records_of_kafka():
        record = decode(key, value)
        if int.from_bytes(key[:2], "big") in SHARE_GROUP_KEYS:
            assert record is None
            continue
        assert record is not None
        assert encode(record) == (key, value)
        kept += 1

    assert kept == 20


def test_what_kafka_wrote_means_what_its_own_tool_says() -> None:
    found = [decode(key, value) for key, value in records_of_kafka()]

    assert (
        OffsetCommit(
            "g-classic",
            "codec-none",
            0,
            50,
            -1,
            "meta-classic\x00",
            1_794_793_384_411,
            -1,
            UUID("669b69e8-ffd5-4129-b9b8-e5a193bec084"),
        )
        in found
    )
    assert ConsumerGroupMetadata("g-848", 2, 3_605_347_000_827_772_203) in found
    assert Tombstone(CurrentAssignment, ("g-848", "FwU087VUTrWZ/49XUt4usQ")) in found
    member = next(record for record in found if isinstance(record, ConsumerGroupMember))
    assert (member.topic_names, member.topic_regex, member.classic) == (("codec-zstd",), "", None)


@pytest.mark.parametrize("record", ONE_OF_EACH, ids=lambda record: type(record).__name__)
def test_a_record_survives_the_way_there_and_back(record: GroupRecord) -> None:
    assert decode(*encode(record)) == record


@given(
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=200),
    st.integers(-1, 2**63 - 1),
    st.uuids() | st.none(),
)
def test_any_offset_commit_survives(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    time_ms: int,
    topic_id: UUID | None,
) -> None:
    commit = OffsetCommit(
        group, topic, partition, offset, leader_epoch, metadata, time_ms, -1, topic_id
    )

    assert decode(*encode(commit)) == commit


COMMIT_KEY = encode(OffsetCommit("g", "t", 0, 1))[0]
GROUP_KEY = encode(GroupMetadata("g", "", 0, None, None, 0, ()))[0]
OFFSET, TIME, EXPIRY = bytes(7) + b"\x05", bytes(7) + b"\x06", bytes(7) + b"\x07"
NEWEST_COMMIT = b"\x00\x04" + OFFSET + b"\x00\x00\x00\x02" + b"\x02m" + TIME


@pytest.mark.parametrize(
    ("value", "leader_epoch", "expiry"),
    [
        (b"\x00\x00" + OFFSET + b"\x00\x01m" + TIME, -1, -1),
        (b"\x00\x01" + OFFSET + b"\x00\x01m" + TIME + EXPIRY, -1, 7),
        (b"\x00\x02" + OFFSET + b"\x00\x01m" + TIME, -1, -1),
        (b"\x00\x03" + OFFSET + b"\x00\x00\x00\x02" + b"\x00\x01m" + TIME, 2, -1),
        (NEWEST_COMMIT + b"\x00", 2, -1),
    ],
    ids=["v0", "v1", "v2", "v3", "v4"],
)
def test_every_version_of_an_offset_commit_is_read(
    value: bytes, leader_epoch: int, expiry: int
) -> None:
    expected = OffsetCommit("g", "t", 0, 5, leader_epoch, "m", 6, expiry)

    assert decode(COMMIT_KEY, value) == expected
    assert decode(b"\x00\x00" + COMMIT_KEY[2:], value) == expected  # the key before 0.9


def test_every_version_of_a_classic_group_is_read() -> None:
    text, nothing, four = b"\x00\x01", b"\xff\xff", b"\x00\x00\x00"
    head = text + b"c" + four + b"\x05" + nothing + nothing
    member = text + b"m"
    client = text + b"a" + text + b"h"
    session, rebalance = four + b"\x08", four + b"\x09"
    blobs = four + b"\x01s" + four + b"\x00"
    timed = rebalance + session + blobs
    one = four + b"\x01"
    values = {
        0: b"\x00\x00" + head + one + member + client + session + blobs,
        1: b"\x00\x01" + head + one + member + client + timed,
        2: b"\x00\x02" + head + TIME + one + member + client + timed,
        3: b"\x00\x03"
        + head
        + TIME
        + one
        + member
        + nothing
        + client
        + rebalance
        + session
        + blobs,
        4: b"\x00\x04\x02c" + four + b"\x05\x00\x00" + TIME + b"\x02"
        b"\x02m\x00\x02a\x02h" + rebalance + session + b"\x02s\x01\x00" + b"\x00",
    }
    for version, value in values.items():
        expected = GroupMetadata(
            "g",
            "c",
            5,
            None,
            None,
            6 if version >= 2 else -1,
            (ClassicMember("m", None, "a", "h", 9 if version else 8, 8, b"s", b""),),
        )
        assert decode(GROUP_KEY, value) == expected, f"version {version}"


def test_tagged_fields_of_a_newer_kafka_are_skipped() -> None:
    commit = decode(COMMIT_KEY, NEWEST_COMMIT + b"\x02\x00\x10" + TOPIC_ID.bytes + b"\x09\x03new")
    unknown = decode(COMMIT_KEY, NEWEST_COMMIT + b"\x01\x09\x03new")
    epoch_key, epoch_value = encode(ConsumerGroupMetadata("g", 3))
    assert epoch_value is not None

    assert commit == OffsetCommit("g", "t", 0, 5, 2, "m", 6, -1, TOPIC_ID)
    assert unknown == OffsetCommit("g", "t", 0, 5, 2, "m", 6)
    assert decode(epoch_key, epoch_value[:-1] + b"\x01\x05\x01x") == ConsumerGroupMetadata("g", 3)


@pytest.mark.parametrize("number", [4, 9, 10, 15, 17, 23, 99, -1])
def test_kinds_that_are_not_kept_are_none(number: int) -> None:
    key = number.to_bytes(2, "big", signed=True) + b"\x00\x01g"

    assert decode(key, b"\x00\x00anything") is None
    assert decode(key, None) is None


@pytest.mark.parametrize("version", [-1, 5, 99])
@pytest.mark.parametrize("record", ONE_OF_EACH[:16], ids=lambda record: type(record).__name__)
def test_an_unknown_version_of_a_known_kind_is_refused(record: GroupRecord, version: int) -> None:
    key, value = encode(record)
    assert value is not None

    with pytest.raises(InvalidRecordError, match=f"version {version} of"):
        decode(key, version.to_bytes(2, "big", signed=True) + value[2:])


@pytest.mark.parametrize("record", ONE_OF_EACH, ids=lambda record: type(record).__name__)
def test_a_record_cut_anywhere_is_refused(record: GroupRecord) -> None:
    key, value = encode(record)
    for end in range(len(key)):
        with pytest.raises(InvalidRecordError):
            decode(key[:end], value)
    for end in range(len(value or b"")):
        with pytest.raises(InvalidRecordError):
            decode(key, (value or b"")[:end])


@given(st.binary(max_size=80), st.integers(0, 16))
def test_garbage_is_refused_and_nothing_else(value: bytes, number: int) -> None:
    key = number.to_bytes(2, "big") + b"\x00\x01g\x00\x01m\x00\x00\x00\x01"
    for version in range(5):
        try:
            decode(key, version.to_bytes(2, "big") + value)
        except InvalidRecordError:
            continue


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="UTF-8"):
        decode(COMMIT_KEY, NEWEST_COMMIT.replace(b"\x02m", b"\x02\xff") + b"\x00")
    with pytest.raises(InvalidRecordError, match="UTF-8"):
        decode(b"\x00\x02\x00\x01\xff", None)


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(InvalidRecordError):
        decode(b"", None)


@pytest.mark.java
def test_kafkas_own_tool_reads_every_kind_of_record(tmp_path: Path) -> None:
    records = [Record(i, 17, *encode(record), []) for i, record in enumerate(ONE_OF_EACH)]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch(records))

    answer = dump_log_segments([path], "--offsets-decoder")

    assert (answer.return_code, answer.stderr) == (0, "")
    lines = [line for line in answer.stdout.splitlines() if line.startswith("| offset")]
    assert len(lines) == len(ONE_OF_EACH)
    assert not [line for line in lines if "data" not in line.partition("key: ")[2]]
    assert sum("payload: <DELETE>" in line for line in lines) == 8
    everything = "\n".join(lines)
    for piece in (
        '"offset":42,"leaderEpoch":7,"metadata":"seen by höme","commitTimestamp":1794793384411,'
        '"topicId":"ZpSajxGqTFW5uOWhk77AhA"',
        '"offset":44,"metadata":"","commitTimestamp":5,"expireTimestamp":6',
        '"groupInstanceId":"static-b"',
        '"epoch":2,"metadataHash":3605347000827772203',
        '"classicMemberMetadata":null',
        '"sessionTimeoutMs":9,"supportedProtocols":[{"name":"p","metadata":"bQ=="}]',
        '"assignmentEpoch":4,"assignmentTimestamp":99',
        '"partitions":[0,1],"assignmentEpochs":[4,3]',
        '"topics":["orders"],"version":12,"timestamp":34',
    ):
        assert piece in everything
