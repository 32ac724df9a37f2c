"""The same code on a Spark standalone master with two workers: executors are other processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.spark_cluster import spark_standalone

from headrace.testing import running_broker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDS = 500
# One Spark session a process: this one is not the session of the other tests.
DRIVER = """
import json, sys
from pathlib import Path
from headrace.pipelines.spark.session import close_session, open_session

def double(batches):
    import os
    import pyarrow
    import headrace.errors
    for batch in batches:
        values = [2 * int(value.as_py()) for value in batch.column(0)]
        place = [headrace.errors.__file__] * len(values)
        names = {"number": values, "place": place, "pid": [os.getppid()] * len(values)}
        yield pyarrow.RecordBatch.from_pydict(names)

if __name__ == "__main__":
    master, bootstrap, directory = sys.argv[1:]
    conf = {"spark.cores.max": "2", "spark.executor.memory": "512m"}
    spark = open_session(
        "test", master=master, is_quick=True, conf=conf, log_file=Path(directory, "driver.log")
    )
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "numbers"}
    schema = "number bigint, place string, pid bigint"
    batch = spark.read.format("kafka").options(**options).load()
    rows = batch.select("value").mapInArrow(double, schema).collect()
    seen = []

    def keep(frame, batch_id):
        seen.extend(row.number for row in frame.mapInArrow(double, schema).collect())
        frame.write.format("delta").mode("append").save(f"{directory}/delta")

    stream = spark.readStream.format("kafka").options(**options)
    stream = stream.option("startingOffsets", "earliest").load().select("value")
    query = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
    query.option("checkpointLocation", f"{directory}/checkpoint").start().awaitTermination()
    print(json.dumps({
        "batch": sorted(row.number for row in rows),
        "places": sorted({row.place for row in rows}),
        "executors": len({row.pid for row in rows}),
        "stream": sorted(seen),
        "delta": spark.read.format("delta").load(f"{directory}/delta").count(),
    }))
    close_session(spark)
"""


def test_batch_and_stream_run_on_two_workers(tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER, "utf-8")
    with (
        running_broker(num_partitions="4") as broker,
        spark_standalone(directory=tmp_path / "spark") as master,
    ):
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(RECORDS):
            producer.produce("numbers", str(number), partition=number % 4)
        producer.flush()

        answer = subprocess.run(
            [sys.executable, driver, master, broker.bootstrap, tmp_path],
            capture_output=True,
            text=True,
        )

    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    seen = json.loads(answer.stdout)
    doubled = [2 * number for number in range(RECORDS)]
    assert seen["batch"] == doubled
    assert seen["stream"] == doubled
    assert seen["delta"] == RECORDS
    assert seen["executors"] == 2
    # The workers import the zip that was sent to them, not what happens to be installed there.
    assert all(".zip/headrace/errors.py" in place for place in seen["places"])
