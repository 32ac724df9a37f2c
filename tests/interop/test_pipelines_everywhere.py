"""The shipped pipelines on both engines and on both kinds of Spark: the same results everywhere.

Everything runs through the command a user would type. What each run leaves behind is compared
with the log, so a difference between two places is a difference from the truth in one of them.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.spark_cluster import spark_standalone

from headrace.kafka.node import KafkaNode
from headrace.testing import running_broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

TOPIC, COPY, FAHRENHEIT = "readings", "readings-copy", "fahrenheit"
PARTITIONS = 3
SCHEMA = "sensor string not null, celsius double, seen bigint"
RECORDS = 3_000


@pytest.fixture(scope="module", params=["headrace", "kafka"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """An engine with the same messages in it, whichever it is."""
    with contextlib.ExitStack() as stack:
        if request.param == "headrace":
            engine = stack.enter_context(running_broker(in_memory=False))
        else:
            engine = stack.enter_context(KafkaNode(tmp_path_factory.mktemp("kafka")))
        write_readings(engine.bootstrap)
        yield engine.bootstrap


@pytest.fixture(scope="module", params=["local", "standalone"])
def master(request: pytest.FixtureRequest) -> Iterator[str]:
    """Spark in one JVM, and Spark with a master and two workers."""
    if request.param == "local":
        yield "local[2,4]"
    else:
        with spark_standalone(workers=2) as url:
            yield url


def write_readings(bootstrap: str) -> None:
    """Good records, records that are not JSON, deletions; a header and a time on each."""
    create(bootstrap, TOPIC)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        sensor = f"sensor-{number % 40}"
        fields = {"sensor": sensor, "celsius": number / 7, "seen": number}
        value = json.dumps(fields).encode()
        if number % 50 == 49:
            value = value[:9]
        producer.produce(
            TOPIC,
            None if number % 97 == 96 else value,
            key=sensor,
            partition=number % 40 % PARTITIONS,
            headers=[("number", str(number).encode())],
            timestamp=1_790_000_000_000 + number * 1000,
        )
    assert producer.flush(120) == 0


def create(bootstrap: str, topic: str) -> None:
    """Make a topic that keeps what it gets: the times of the records lie back."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(topic, PARTITIONS, -1, config={"retention.ms": "-1"})
    admin.create_topics([wanted])[topic].result(120)


def read(bootstrap: str, topic: str) -> list[tuple[object, ...]]:
    """Partition, offset, time, key, value and headers of each message, in order."""
    config = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer, rows, left = Consumer(config), list[tuple[object, ...]](), set(range(PARTITIONS))
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            for message in consumer.consume(1000, 1.0):
                if message.error() is not None:
                    left.discard(message.partition())
                    continue
                place = message.partition(), message.offset(), message.timestamp()[1]
                headers = tuple(message.headers() or ())
                rows.append((*place, message.key(), message.value(), headers))
    finally:
        consumer.close()
    return sorted(rows)


def run(bootstrap: str, master: str, state_dir: Path, name: str, *arguments: object) -> None:
    command = [sys.executable, "-m", "headrace", "pipeline", "run", name, "--master", master]
    shared = ["--bootstrap", bootstrap, "--state-dir", state_dir, "--trigger", "available-now"]
    answer = subprocess.run(
        [*command, *map(str, [*shared, *arguments])],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def good(records: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [each for each in records if each[4] is None or each[4].endswith(b"}")]


def test_archive_keeps_every_record_and_replay_brings_them_back(
    bootstrap: str, master: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    copy = f"{COPY}-{tmp_path.name}"
    create(bootstrap, copy)
    records = read(bootstrap, TOPIC)
    assert len(records) == RECORDS

    run(bootstrap, master, tmp_path, "archive", "--topic", TOPIC, "--to", f"parquet:{lake}")
    run(
        *(bootstrap, master, tmp_path, "replay", "--option", f"from={lake}"),
        *("--to", f"topic:{copy}"),
    )

    dataset = pyarrow.dataset.dataset(lake, format="parquet", partitioning="hive")
    archived = dataset.to_table(columns=["partition", "offset", "key", "value"])
    rows = zip(*(archived[name].to_pylist() for name in archived.column_names), strict=True)
    assert sorted(rows) == [(each[0], each[1], each[3], each[4]) for each in records]
    replayed = read(bootstrap, copy)
    assert [each[:5] for each in replayed] == [each[:5] for each in records]
    for was, now in zip(records, replayed, strict=True):
        assert set(was[5]) <= set(now[5])


def test_table_holds_the_last_good_record_of_each_key(
    bootstrap: str, master: str, tmp_path: Path
) -> None:
    expected = dict[str, float]()
    for _, _, _, key, value, _ in good(read(bootstrap, TOPIC)):
        if value is None:
            expected.pop(key.decode(), None)
        else:
            expected[key.decode()] = json.loads(value)["celsius"]
    assert expected

    run(
        *(bootstrap, master, tmp_path, "table", "--topic", TOPIC),
        *("--to", f"sqlite:{tmp_path / 'r.db'}", "--option", "key=sensor"),
        *("--option", f"schema={SCHEMA}", "--option", "table=readings", "--max-rows", 700),
    )

    with contextlib.closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        assert dict(connection.execute("select sensor, celsius from readings")) == expected


def test_transform_maps_fields_from_topic_to_topic(
    bootstrap: str, master: str, tmp_path: Path
) -> None:
    output = f"{FAHRENHEIT}-{tmp_path.name}"
    create(bootstrap, output)

    run(
        *(bootstrap, master, tmp_path, "transform", "--topic", TOPIC, "--to", f"topic:{output}"),
        *("--option", "format=json", "--option", f"schema={SCHEMA}", "--option", "to-format=json"),
        *("--option", "select=sensor, celsius * 1.8 + 32 as fahrenheit"),
    )

    def wanted(value: bytes | None) -> object:
        if value is None:
            return None
        fields = json.loads(value)
        return fields["sensor"], pytest.approx(fields["celsius"] * 1.8 + 32)

    answers = [
        None if each[4] is None else tuple(json.loads(each[4]).values())
        for each in sorted(read(bootstrap, output), key=lambda each: (each[3], each[2]))
    ]
    assert answers
    truth = sorted(good(read(bootstrap, TOPIC)), key=lambda each: (each[3], each[2]))
    assert answers == [wanted(each[4]) for each in truth]
