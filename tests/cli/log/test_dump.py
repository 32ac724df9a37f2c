import json
from pathlib import Path

import pytest

from headrace.cli.log.dump import dump_file
from headrace.cli.log.dump_row import Row
from headrace.records.builder import build_batch
from headrace.records.record import Record

LOG = "00000000000000000000.log"


def a_batch(base_offset: int = 0, count: int = 1, **options: int) -> bytes:
    records = [
        Record(base_offset + index, 1000 + index, b"k", b"value-%d" % index, [("h", b"1")])
        for index in range(count)
    ]
    return bytes(build_batch(records, base_offset=base_offset, **options))


def rows_of(path: Path, *, is_deep: bool = False, has_data: bool = False) -> list[Row]:
    return list(dump_file(path, is_deep=is_deep, has_data=has_data))


def test_a_batch_is_one_line_in_kafkas_words(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(a_batch(count=2))

    (row,) = rows_of(tmp_path / LOG)

    text = row.as_text()
    assert text.startswith("baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 ")
    assert " deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1001 size: " in text
    assert text.endswith(" isvalid: true")


def test_deep_shows_records_without_their_data(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(a_batch())

    _, record = rows_of(tmp_path / LOG, is_deep=True)

    assert record.as_text() == (
        "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 7 sequence: -1 headerKeys: [h]"
    )


def test_data_comes_with_keys_values_and_headers(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(a_batch())

    _, record = rows_of(tmp_path / LOG, has_data=True)

    assert record.as_text().endswith(" headerKeys: [h] key: k payload: value-0")
    entry = json.loads(record.as_json(tmp_path / LOG))
    assert (entry["key"], entry["payload"]) == ("k", "value-0")
    assert entry["headers"] == [{"key": "h", "value": "1"}]


def test_bytes_that_are_not_text_survive_in_json(tmp_path: Path) -> None:
    batch = build_batch([Record(0, 0, None, b"\xff\x00", [])])
    (tmp_path / LOG).write_bytes(bytes(batch))

    _, record = rows_of(tmp_path / LOG, has_data=True)

    entry = json.loads(record.as_json(tmp_path / LOG))
    assert entry["payloadBase64"] == "/wA="
    assert entry["key"] is None


def test_sequences_count_up_and_wrap(tmp_path: Path) -> None:
    batch = a_batch(count=2, producer_id=7, producer_epoch=0, base_sequence=2**31 - 1)
    (tmp_path / LOG).write_bytes(batch)

    header, first, second = rows_of(tmp_path / LOG, is_deep=True)

    assert header.fields["lastSequence"] == 0
    assert (first.fields["sequence"], second.fields["sequence"]) == (2**31 - 1, 0)


def test_a_flipped_bit_makes_the_batch_invalid_and_the_next_is_still_shown(tmp_path: Path) -> None:
    damaged = bytearray(a_batch())
    damaged[-1] ^= 1
    (tmp_path / LOG).write_bytes(bytes(damaged) + a_batch(1))

    first, second = rows_of(tmp_path / LOG)

    assert (first.is_damage, first.fields["isvalid"]) == (True, False)
    assert (second.is_damage, second.fields["baseOffset"]) == (False, 1)


def test_garbage_in_the_middle_is_named_and_passed_over(tmp_path: Path) -> None:
    first, second = a_batch(0), a_batch(1)
    (tmp_path / LOG).write_bytes(first + b"\x00" * 77 + second)

    rows = rows_of(tmp_path / LOG)

    assert [row.type for row in rows] == ["batch", "damage", "batch"]
    assert (rows[1].fields["position"], rows[1].fields["bytes"]) == (len(first), 77)


def test_a_torn_tail_is_damage_at_its_position(tmp_path: Path) -> None:
    first = a_batch(0)
    (tmp_path / LOG).write_bytes(first + a_batch(1)[:-5])

    _, damage = rows_of(tmp_path / LOG)

    assert damage.is_damage
    assert damage.fields["position"] == len(first)


def test_an_empty_log_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(b"")

    assert rows_of(tmp_path / LOG) == []


def test_index_entries_count_from_the_base_offset(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000060.index"
    path.write_bytes((19).to_bytes(4) + (981).to_bytes(4))

    assert [row.as_text() for row in rows_of(path)] == ["offset: 79 position: 981"]


def test_time_index_entries_count_from_the_base_offset(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000060.timeindex"
    path.write_bytes((1700).to_bytes(8) + (19).to_bytes(4))

    assert [row.as_text() for row in rows_of(path)] == ["timestamp: 1700 offset: 79"]


def test_half_an_index_entry_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(bytes(11))

    entry, damage = rows_of(path)

    assert not entry.is_damage
    assert (damage.fields["position"], damage.fields["bytes"]) == (8, 3)


def test_a_snapshot_with_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.snapshot"
    path.write_bytes(bytes(10))

    (damage,) = rows_of(path)

    assert damage.is_damage


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("leader-epoch-checkpoint", "0\n1\n0 5\n", "epoch: 0 startOffset: 5"),
        ("recovery-point-offset-checkpoint", "0\n1\na 2 9\n", "topic: a partition: 2 offset: 9"),
        ("meta.properties", "#x\nnode.id=1\n", "node.id: 1"),
        ("partition.metadata", "version: 0\n", "version: 0"),
    ],
)
def test_text_files_are_read_too(tmp_path: Path, name: str, text: str, line: str) -> None:
    (tmp_path / name).write_text(text)

    assert [row.as_text() for row in rows_of(tmp_path / name)] == [line]


def test_a_checkpoint_with_a_wrong_count_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "log-start-offset-checkpoint"
    path.write_text("0\n2\na 0 5\n")

    assert [row.is_damage for row in rows_of(path)] == [True, False]


def test_a_name_that_means_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"notes\.txt is not the name of a log"):
        dump_file(tmp_path / "notes.txt", is_deep=False, has_data=False)


GOLDEN = Path(__file__).parents[2] / "data" / "kafka-4.3.1"


@pytest.mark.parametrize(
    "name",
    [
        "codec-all_batches",
        "codec-none_indexes",
        "compacted",
        "idem",
        "java-codecs",
        "txn",
        "txn-open",
    ],
)
def test_kafkas_files_read_as_kafkas_own_tool_reads_them(name: str) -> None:
    expected = (GOLDEN / "dumps" / f"{name}.txt").read_text().splitlines()
    has_records = any(line.startswith("|") for line in expected)

    lines: list[str] = []
    for line in expected:
        if line.startswith("Dumping "):
            path = GOLDEN / "data" / line.removeprefix("Dumping ")
            lines.append(line)
            if path.suffix == ".log":
                lines.append(f"Log starting offset: {int(path.stem)}")
            lines += [row.as_text() for row in rows_of(path, has_data=has_records)]

    assert lines == expected
