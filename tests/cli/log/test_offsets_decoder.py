"""`log dump --offsets-decoder`, held against what Kafka's own tool printed for the same files."""

import json
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from headrace.cli.log.dump import dump_file
from headrace.cli.log.dump_row import Row
from headrace.cli.log.offsets_decoder import decode_offsets
from headrace.coordinators.groups.codec import encode
from headrace.coordinators.groups.records import (
    ClassicMember,
    ClassicProtocols,
    ConsumerGroupMember,
    CurrentAssignment,
    GroupMetadata,
    GroupRecord,
    OffsetCommit,
    Tombstone,
)
from headrace.kafka.tools import dump_log_segments
from headrace.records.builder import build_batch
from headrace.records.record import Record

CAPTURES = Path(__file__).parents[2] / "data" / "kafka-4.3.1"
KAFKA_LOG = CAPTURES / "data" / "__consumer_offsets-0" / f"{0:020d}.log"


def dump(path: Path) -> list[Row]:
    return list(dump_file(path, is_deep=False, has_data=False, decodes_offsets=True))


def write_log(directory: Path, *pairs: tuple[bytes | None, bytes | None]) -> Path:
    path = directory / f"{0:020d}.log"
    records = [Record(offset, 17, key, value, []) for offset, (key, value) in enumerate(pairs)]
    path.write_bytes(build_batch(records))
    return path


def test_kafkas_file_reads_as_kafkas_own_tool_reads_it() -> None:
    printed = (CAPTURES / "dumps" / "consumer_offsets.txt").read_text().splitlines()[2:]

    assert [row.as_text() for row in dump(KAFKA_LOG)] == printed


def test_json_has_the_decoded_record_as_objects() -> None:
    rows = [json.loads(row.as_json(KAFKA_LOG)) for row in dump(KAFKA_LOG)]

    records = [row for row in rows if row["type"] == "record"]
    assert records[2]["key"]["data"] == {"group": "g-txn", "topic": "codec-gzip", "partition": 0}
    assert records[2]["payload"]["data"]["offset"] == 42
    assert records[17]["payload"] is None  # a tombstone


def test_what_cannot_be_read_is_told_where_its_key_would_be(tmp_path: Path) -> None:
    key, value = encode(OffsetCommit("g", "t", 0, 1))
    assert value is not None
    path = write_log(
        tmp_path,
        (b"\x00\x63", b"x"),
        (key, value[:9]),
        (key, b"\x00\x63"),
        (None, b"v"),
        (b"", None),
    )

    lines = [row.as_text().partition(" key: ")[2] for row in dump(path)[1:]]

    assert lines[0] == "Unknown record type 99 at offset 0, skipping."
    assert lines[1].startswith("Error at offset 1, skipping. ")
    assert lines[2] == "Error at offset 2, skipping. version 99 of an offset commit is unknown"
    assert lines[3].startswith("Error at offset 3, skipping. ")
    assert lines[4].startswith("Error at offset 4, skipping. ")


def test_a_subscription_that_is_no_consumers_stays_base64(tmp_path: Path) -> None:
    member = ClassicMember("m", None, "c", "/h", 1, 2, b"\x00", b"\x00\x09new")
    path = write_log(tmp_path, encode(GroupMetadata("g", "consumer", 1, "p", "m", 3, (member,))))

    text = dump(path)[1].as_text()

    assert '"subscription":"AA==","assignment":"AAluZXc="' in text


@pytest.mark.java
def test_every_kind_reads_as_kafkas_own_tool_reads_it(tmp_path: Path) -> None:
    member = ClassicMember("m", "i", "c", "/h", 1, 2, b"\x00\x01" + bytes(8) + bytes(4), b"\x00")
    ours: list[GroupRecord] = [
        OffsetCommit("g", "t", 0, 1, expire_timestamp_ms=5),
        OffsetCommit("g", "t", 0, 1, metadata='"quoted" ünd\t'),
        GroupMetadata("g", "consumer", 1, "p", "m", 3, (member,)),
        GroupMetadata("g", "connect", 1, "p", "m", 3, (member,)),
        ConsumerGroupMember(
            "g", "m", "i", None, "c", "/h", (), None, 5, None, ClassicProtocols(9, (("p", b"m"),))
        ),
        CurrentAssignment("g", "m", 4, 3, 1, {UUID(int=1): (0, 1)}, {UUID(int=2): (2,)}),
        Tombstone(OffsetCommit, ("g", "t", 0)),
    ]
    path = write_log(tmp_path, *map(encode, ours), *streams_and_share_records())

    answer = dump_log_segments([path], "--offsets-decoder")

    assert answer.return_code == 0
    assert [row.as_text() for row in dump(path)] == answer.stdout.splitlines()[2:]


def streams_and_share_records() -> list[tuple[bytes, bytes]]:
    """Each kind of share and streams group record and the retired one, with a little in it."""
    group, member = b"\x00\x01g", b"\x00\x01g\x00\x01m"
    topic, numbers = bytes(15) + b"\x05", b"\x03\x00\x00\x00\x00\x00\x00\x00\x07"
    named = topic + b"\x02t"
    tasks = b"\x02\x021" + numbers + b"\x00"
    tasks_with_epochs = b"\x02\x021" + numbers + b"\x01\x00\x09" + numbers
    pair = b"\x02k\x02v\x00"
    internal = b"\x02\x02t\x00\x00\x00\x01\x00\x03\x02" + pair + b"\x00"
    four, eight = b"\x00\x00\x00\x04", bytes(7) + b"\x08"
    values = {
        4: b"\x02" + topic + b"\x02t" + four + b"\x02" + four + b"\x02\x02r\x00\x00\x00",
        10: b"\x00\x02c\x02h\x02\x02t\x00",
        11: four + eight + b"\x00",
        12: four + b"\x01\x00\x08" + eight,
        13: b"\x02" + topic + numbers + b"\x00\x00",
        14: four + four + b"\x02" + b"\x02" + topic + numbers + b"\x00\x00",
        15: (b"\x02" + named + numbers + b"\x00") * 2 + b"\x02" + named + b"\x00\x00",
        17: four + eight + b"\x02\x00\x04" + four + b"\x01\x06\x02" + pair,
        19: b"\x00\x02r\x02c\x02h" + four + four + b"\x02p\x01\x02h\xff\xfe\x00\x02" + pair
        + b"\x00",
        20: four + b"\x00",
        21: tasks * 3 + b"\x00",
        22: four + four + b"\x01" + tasks_with_epochs * 6 + b"\x00",
        23: four + b"\x02\x021\x02\x02a\x01" + internal + b"\x02\x02b" + internal
        + b"\x02\x02\x00\x01\x02\x00\x02\x01\x00\x00\x00",
    }  # fmt: skip
    one_name = {4, 11, 12, 15, 17, 20, 23}
    return [
        (number.to_bytes(2, "big") + (group if number in one_name else member), b"\x00\x00" + value)
        for number, value in values.items()
    ]


def test_every_kind_that_kafka_has_is_known() -> None:
    def is_known(number: int) -> bool:
        key = number.to_bytes(2, "big") + b"\x00\x01g\x00\x01m\x00\x00\x00\x00"
        return isinstance(decode_offsets(Record(0, 17, key, None, []))["key"], dict)

    assert [*filter(is_known, range(40))] == [*range(9), *range(10, 18), *range(19, 24)]


def test_the_command_has_the_option(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "headrace", "log", "dump", "--offsets-decoder", str(KAFKA_LOG)],
        capture_output=True,
        text=True,
    )

    assert answer.returncode == 0
    assert 'key: {"type":"2","data":{"group":"g-txn"}} payload: {"version":"3"' in answer.stdout
