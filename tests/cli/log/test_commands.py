import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app

GOLDEN = Path(__file__).parents[2] / "data" / "kafka-4.3.1" / "data"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "idem-0", tmp_path / "idem-0"))


def damage(partition: Path) -> int:
    """Flip a bit of the first batch's last byte; return where that batch begins."""
    path = partition / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[11 + int.from_bytes(content[8:12])] ^= 1
    path.write_bytes(content)
    return 0


def test_a_dump_begins_with_its_file_and_base_offset(partition: Path) -> None:
    path = partition / "00000000000000000000.log"

    result = invoke("log", "dump", path)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 ")


def test_a_dump_in_json_is_one_object_a_line(partition: Path) -> None:
    files = sorted(partition.iterdir())

    result = invoke("log", "dump", "--json", "--deep", *files)

    assert result.exit_code == 0
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert sum(entry["type"] == "record" for entry in entries) == 120
    assert {entry["file"] for entry in entries} <= {str(path) for path in files}
    assert {"batch", "index", "timeindex", "producer", "checkpoint", "property"} <= {
        entry["type"] for entry in entries
    }


def test_a_damaged_file_is_dumped_with_exit_code_1(partition: Path) -> None:
    damage(partition)

    result = invoke("log", "dump", partition / "00000000000000000000.log")

    assert result.exit_code == 1
    assert "isvalid: false" in result.stdout
    assert "isvalid: true" in result.stdout


@pytest.mark.parametrize("name", ["absent.log", "notes.txt"])
def test_what_cannot_be_dumped_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("x")

    result = invoke("log", "dump", tmp_path / name)

    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert name in result.stderr


def test_kafkas_own_directory_is_whole() -> None:
    result = invoke("log", "verify", GOLDEN)

    assert result.exit_code == 0
    assert result.stdout == f"{GOLDEN}: every batch, index and snapshot is whole\n"


def test_damage_is_named_with_file_and_position(partition: Path) -> None:
    position = damage(partition)

    result = invoke("log", "verify", partition.parent)

    assert result.exit_code == 1
    path = partition / "00000000000000000000.log"
    assert f"{path}: damage at byte {position}: " in result.stdout


def test_findings_in_json_are_one_object_a_line(partition: Path) -> None:
    damage(partition)

    result = invoke("log", "verify", "--json", partition)

    first = json.loads(result.stdout.splitlines()[0])
    assert result.exit_code == 1
    assert first["kind"] == "damage"
    assert set(first) == {"path", "position", "kind", "reason"}


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = invoke("log", "verify", tmp_path / "absent")

    assert result.exit_code == 2
    assert "no such directory" in result.stderr


def test_the_version_is_printed() -> None:
    assert invoke("--version").stdout.startswith("headrace 0.")
