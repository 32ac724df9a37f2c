"""`headrace sql` as a command: what it prints and how it ends. One Spark start for all of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.cli.sql import command as sql
from headrace.cli.sql.output import (
    print_csv,
    print_json_lines,
    print_pretty,
    unique_names,
    with_times_as_text,
)
from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASE_MS = 1_794_816_000_000  # 2026-11-16T08:00Z


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(7):
            value = json.dumps({"id": number, "tags": ["a", "b"], "name": None})
            producer.produce("orders", value, timestamp=BASE_MS + number)
        assert producer.flush(120) == 0
        yield broker.bootstrap


@pytest.fixture
def ask(
    spark: "SparkSession",
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Run the command in this process, on the session that is open."""

    @contextmanager
    def session(_settings: dict[str, str]) -> Iterator["SparkSession"]:
        yield spark

    monkeypatch.setattr(sql, "_session", session)

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, ["sql", *words, "--bootstrap", bootstrap], input=stdin)

    return run


@pytest.mark.spark
def test_a_table_ends_at_its_limit_and_says_so(ask: Any) -> None:
    answer = ask("select id, timestamp, tags, name from orders order by id", "--limit", "2")

    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        'ID  TIMESTAMP                    TAGS        NAME',
        ' 0  2026-11-16T08:00:00Z         ["a", "b"]  -',
        ' 1  2026-11-16T08:00:00.001000Z  ["a", "b"]  -',
    ]  # fmt: skip
    assert "more than these 2 rows; --limit 0 shows all" in answer.stderr


@pytest.mark.spark
def test_programs_get_json_or_csv_from_a_file_or_stdin(ask: Any, tmp_path: Path) -> None:
    query = "select id, tags from orders where offset < 2;\n"
    (tmp_path / "q.sql").write_text(query)

    as_json = ask("--file", str(tmp_path / "q.sql"), "--json")
    as_csv = ask("-", "--csv", stdin=query)

    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"id": 0, "tags": ["a", "b"]},
        {"id": 1, "tags": ["a", "b"]},
    ]
    assert as_csv.stdout.splitlines() == ["id,tags", '0,"[""a"", ""b""]"', '1,"[""a"", ""b""]"']


@pytest.mark.spark
def test_explain_shows_the_offsets_and_reads_none(ask: Any) -> None:
    answer = ask("select * from orders where offset >= 5", "--explain")
    objects = ask("select * from orders where offset >= 5", "--explain", "--json")

    assert answer.stdout.splitlines()[0].startswith("orders: 2 of 7 offsets; json with `id` bigint")
    assert json.loads(objects.stdout)["reads"] == [
        {"partition": 0, "from": 5, "to": 7, "oldest": 0, "end": 7}
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["selec 1"], 2, "Syntax error at or near"),
        (["select * from ordrs"], 1, "did you mean orders?"),
        (["select nope from orders"], 2, "there is no column nope"),
        (["select 1 / (id - id) from orders"], 1, "Division by zero"),
        (["select * from orders", "--format", "jsn"], 2, "format 'jsn': write auto, json"),
    ],
)
def test_a_mistake_is_one_sentence(ask: Any, words: list[str], code: int, complaint: str) -> None:
    answer = ask(*words)

    assert (answer.exit_code, answer.stdout) == (code, "")
    assert complaint in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "give a query, or --file"),
        (["select 1", "--file", "q.sql"], "give a query, or --file"),
        (["--file", "nowhere.sql"], "nowhere.sql: No such file"),
        ([" ; "], "the query is empty"),
        (["select 1", "--json", "--csv"], "not both"),
        (["select 1", "--schema", "orders"], "--schema orders: write TOPIC=DDL"),
        (["select 1", "--conf", "x"], "--conf x: write NAME=VALUE"),
        (["select 1", "--conf", "x=\udcff"], "--conf x: write its name and value in UTF-8"),
    ],
)
def test_wrong_usage_is_told_before_spark_starts(words: list[str], complaint: str) -> None:
    answer = CliRunner().invoke(app, ["sql", *words])

    assert answer.exit_code == 2
    assert complaint in answer.stderr


def test_without_a_broker_spark_is_not_started() -> None:
    answer = CliRunner().invoke(
        app, ["sql", "select * from orders", "--bootstrap", "127.0.0.1:1", "--timeout", "1"]
    )

    assert answer.exit_code == 1
    assert "no broker answers at 127.0.0.1:1" in answer.stderr


def test_names_are_made_unique() -> None:
    assert unique_names(["id", "id", "id_2", "id"]) == ["id", "id_2", "id_2_2", "id_3"]


def test_every_type_has_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(
        "b binary, d decimal(5,2), n double, m map<string, struct<x: boolean>>, null_ int"
    )
    row = (
        bytearray(b"\x00\xff"),
        Decimal("1.50"),
        float("nan"),
        {"k": (True,)},
        None,
    )

    print_json_lines(schema, [row])
    print_csv(schema, [row])
    print_pretty(schema, [row])

    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0]) == {
        "b": "0x00FF",
        "d": "1.50",
        "n": "nan",
        "m": {"k": {"x": True}},
        "null_": None,
    }
    assert lines[2].startswith("0x00FF,1.50,nan,")
    assert lines[4].endswith("-")


@pytest.mark.spark
def test_times_are_shown_in_utc_whatever_their_year_and_wherever_they_are(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.sql(
        "select at, at as at, timestamp'2026-11-16 08:00:00.25Z' as part, "
        "timestamp_ntz'2026-11-16 08:00' as local, date'10000-01-01' as day, 1 as n, "
        "named_struct('at', at, 'none', cast(null as timestamp)) as st, "
        "cast(null as struct<at: timestamp>) as no_st, array(at, null) as list, "
        "map(date'2026-01-01', at) as m from values (timestamp_millis(253402300800000)) as t(at)"
    )

    texts = with_times_as_text(frame)
    print_json_lines(texts.schema, texts.collect())

    beyond = "+10000-01-01T00:00:00Z"
    assert json.loads(capsys.readouterr().out) == {
        "at": beyond,
        "at_2": beyond,
        "part": "2026-11-16T08:00:00.250000Z",
        "local": "2026-11-16T08:00:00",
        "day": "+10000-01-01",
        "n": 1,
        "st": {"at": beyond, "none": None},
        "no_st": None,
        "list": [beyond, None],
        "m": {"2026-01-01": beyond},
    }


@pytest.mark.spark
def test_records_of_any_timestamp_are_read_as_far_as_spark_counts(ask: Any, bootstrap: str) -> None:
    settings = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    Admin(Bus(bootstrap), timeout_s=120).create_topic("odd", 1, configs=settings)
    producer = Producer({"bootstrap.servers": bootstrap})
    for timestamp in (-5, 253_402_300_800_000, 2**62):
        producer.produce("odd", b"{}", timestamp=timestamp)
    assert producer.flush(120) == 0

    read = ask("select timestamp from odd where offset < 2 order by offset", "--csv")
    beyond = ask("select timestamp from odd")

    lines = ["timestamp", "1969-12-31T23:59:59.995000Z", "+10000-01-01T00:00:00Z"]
    assert read.stdout.splitlines() == lines
    assert beyond.exit_code == 1
    assert "odd has a record at offset 2 with the timestamp 4611686018427387904" in beyond.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_starts_spark_and_leaves_nothing_behind(bootstrap: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    answer = subprocess.run(
        [sys.executable, "-m", "headrace", "sql", "select sum(id) as total from orders", "--json"],
        cwd=here,
        env={
            **os.environ,
            "HEADRACE_BOOTSTRAP": bootstrap,
            "HEADRACE_STATE_DIR": str(tmp_path),
            "TZ": "Asia/Tokyo",
        },
        capture_output=True,
        text=True,
    )

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, '{"total": 21}\n', "")
    assert list(here.iterdir()) == []
