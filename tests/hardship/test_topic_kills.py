"""The driver dies while it writes a batch to a topic, and each record is made into several.

What is on the target in the end is compared with what the log says, row by row as a multiset.
"""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.hardship.conftest import wait_until
from tests.hardship.pipelines.drivers import Driver
from tests.hardship.pipelines.feed import SCHEMA, TOPIC, Feed, bad_places, create_topic, read_log
from tests.pipelines.sinks.topics import records_on

from headrace.testing import broker_process

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = 4
RECORDS = 40_000
PARTS = ("a", "b", "b")  # two of the three rows that a record is made into are the same
TARGET = "parts"
Row = tuple[bytes | None, bytes | None]


def expected_rows(bootstrap: str) -> Counter[Row]:
    rows = Counter[Row]()
    records = read_log(bootstrap)
    bad = bad_places(records)
    for record in records:
        if (record.partition, record.offset) in bad:
            continue
        for part in PARTS:
            fields = json.loads(record.value) if record.value is not None else None
            row = None if fields is None else {"part": part, "reading": fields["reading"]}
            value = None if row is None else json.dumps(row, separators=(",", ":")).encode()
            rows[record.key, value] += 1
    return rows


def end_of_target(consumer: Any) -> int:
    return int(consumer.get_watermark_offsets(TopicPartition(TARGET, 0), timeout=60)[1])


def is_partly_written(driver: Driver, consumer: Any, end_at_start: int) -> bool:
    """Whether this life of the driver has written rows of a batch that is not done.

    The note alone may be one that the life before has left.
    """
    try:
        notes = sorted((driver.checkpoint / "topic-sink" / TARGET).glob("note-*.json"))
        note = json.loads(notes[-1].read_text())
    except (IndexError, FileNotFoundError, ValueError):
        return False
    noted = note["ends"].get(TARGET, {"offsets": {}})["offsets"].get("0", 0)
    return bool(note["is_begun"] and end_of_target(consumer) > max(noted, end_at_start))


def test_kills_within_a_batch_lose_and_repeat_no_row_on_the_topic(
    tmp_path: Path, port: int
) -> None:
    rng = random.Random(7)
    with broker_process(tmp_path / "data", port=port) as broker:
        create_topic(broker.bootstrap)
        with Feed(broker.bootstrap, seed=7, burst=5_000) as feed:
            wait_until(lambda: feed.acknowledged > RECORDS, "the log is filled", 300.0)
        create_topic(broker.bootstrap, TARGET, 1)
        listed = ", ".join(f"'{part}'" for part in PARTS)
        select = f"select=explode(array({listed})) as part, reading"
        driver = Driver(
            "transform",
            tmp_path,
            broker.bootstrap,
            [
                *("--topic", TOPIC, "--max-rows", "20000", "--to", f"topic:{TARGET}"),
                *("--option", f"schema={SCHEMA}", "--option", select),
            ],
        )
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "watcher"})
        try:
            for number in range(KILLS):
                # Else what the life before still writes would be taken for this one's.
                wait_until(lambda: driver.is_gone, "its workers have ended", 300.0)
                end = end_of_target(consumer)
                driver.start()
                wait_until(
                    lambda end=end: is_partly_written(driver, consumer, end),
                    f"rows are there; it said:\n{driver.told()}",
                    600.0,
                )
                time.sleep(rng.uniform(0, 0.2))  # the moment of the kill is random
                driver.kill(is_java_first=number % 2 == 1)
            driver.finish()
        finally:
            consumer.close()
            driver.close()
        seen = records_on(broker.bootstrap, TARGET)

        assert Counter((record.key, record.value) for record in seen) == expected_rows(
            broker.bootstrap
        )
        assert "records were on topic parts already" in driver.output.read_text()
