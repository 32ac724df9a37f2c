"""What `headrace pipeline init` writes: a pipeline that works, and the test that shows it.

The example counts hot readings of sensors; whoever starts from it changes three things: INPUT,
transform and SINKS.
"""

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.pipelines.errors import PipelineDefinitionError

_NAME = re.compile(r"[a-z][a-z0-9_]*")

_MODULE = '''"""Hot sensors of {name}: readings above {limit} degrees.

headrace pipeline run {file} --topic readings --to console: --trigger available-now
"""

from typing import TYPE_CHECKING

from headrace.pipelines import Json, SqlTable, TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A record without a field that is `not null` goes to the dead letters.
INPUT = "sensor string not null, celsius double not null, at timestamp"
HOT_CELSIUS = {limit}

SOURCE = TopicSource(topics=("readings",))
DECODER = Json(INPUT)
SINKS = (SqlTable("sqlite:{name}.db", table="{name}", key=("sensor",)),)


def transform(readings: "DataFrame") -> "DataFrame":
    """Keep what is hot; `_record` says where a row came from, and orders the upserts."""
    return readings.where(readings.celsius > HOT_CELSIUS)
'''

_TEST = '''"""The transform on rows by hand, and the whole pipeline over a broker of its own."""

from pathlib import Path

import pytest
from pyspark.testing import assertDataFrameEqual

from headrace import Bus, Producer
from headrace.pipelines import Run, load_pipeline, open_session

FILE = Path(__file__).with_name("{file}")


@pytest.fixture(scope="session")
def spark():
    return open_session("tests of {name}", is_quick=True)


def test_only_hot_readings_are_kept(spark):
    pipeline = load_pipeline(FILE)
    readings = spark.createDataFrame(
        [("cellar", 11.5), ("oven", 180.0)], "sensor string, celsius double"
    )

    hot = pipeline.transform(readings)

    expected = spark.createDataFrame([("oven", 180.0)], "sensor string, celsius double")
    assertDataFrameEqual(hot, expected)


def test_a_record_on_the_bus_becomes_a_row(spark, headrace_bootstrap):
    bus = Bus(headrace_bootstrap)
    with Producer(bus) as producer:
        producer.send("readings", b'{{"sensor": "oven", "celsius": 180.0}}')
    pipeline = load_pipeline(FILE, source="readings")
    run = Run(spark=spark, bus=bus, name="{name}", app_id="test")

    rows = pipeline.transform(pipeline.decoder.decode(pipeline.source.batch(run)))

    assert [(row.sensor, row.celsius) for row in rows.collect()] == [("oven", 180.0)]
'''

_YAML = """\
# headrace pipeline run {file} --to console: --trigger available-now
name: {name}
summary: Hot sensors, readings above {limit} degrees
source:
  topics: [readings]
  from: oldest
format: json
# A record without a field that is `not null` goes to the dead letters.
schema: sensor string not null, celsius double not null, at timestamp
# `input` has the fields and `_record`: key, topic, partition, offset, timestamp, headers.
sql: |
  select *
  from input
  where celsius > {limit}
sinks:
  - uri: sqlite:{name}.db
    table: {name}
    key: sensor
"""

_LIMIT_CELSIUS = 60
# What gives the example something to read, for a shell.
EXAMPLE_FEED = """echo '{"sensor": "oven", "celsius": 180}' | headrace produce readings"""


@dataclass(frozen=True)
class Skeleton:
    """Files by path, and how to go on."""

    files: dict[Path, str]
    pipeline: Path


def skeleton(name: str, directory: Path, *, is_yaml: bool) -> Skeleton:
    """The files of a new pipeline; PipelineDefinitionError for a name Python cannot import."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise PipelineDefinitionError(
            f"{name!r} is no name for a pipeline's file; "
            "write small letters, digits and underscores, such as hot_sensors"
        )
    file = f"{name}.yaml" if is_yaml else f"{name}.py"
    words = {"name": name, "file": file, "limit": _LIMIT_CELSIUS}
    return Skeleton(
        {
            directory / file: (_YAML if is_yaml else _MODULE).format(**words),
            directory / f"test_{name}.py": _TEST.format(**words),
        },
        directory / file,
    )


def write_skeleton(made: Skeleton) -> None:
    """Write all files; PipelineDefinitionError, and nothing written, if one is there already."""
    for path in made.files:
        if path.exists():
            raise PipelineDefinitionError(
                f"{path} is there already; choose another name or --dir, or remove it"
            )
    try:
        for path, text in made.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise PipelineDefinitionError(f"cannot write {path}: {error.strerror}") from error
