"""What a condition leaves of a topic, on expressions as Spark makes them."""

from typing import TYPE_CHECKING, Any

import pytest

from headrace.pipelines.sql_query.bounds import (
    EVERYTHING,
    NOTHING,
    Alternatives,
    RecordBounds,
    alternatives_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EIGHT_MS = 1_794_816_000_000  # 2026-11-16T08:00Z


def condition(spark: "SparkSession", text: str) -> Any:
    """The condition as it stands in the optimised plan."""
    columns = "timestamp timestamp, offset bigint, partition int, n int"
    frame = spark.createDataFrame([], columns).where(text)
    plan = frame._jdf.queryExecution().optimizedPlan()
    return plan.condition()


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("offset > 5", (RecordBounds(from_offset=6),)),
        ("offset >= 5", (RecordBounds(from_offset=5),)),
        ("5 > offset", (RecordBounds(to_offset=4),)),
        ("offset = 5", (RecordBounds(from_offset=5, to_offset=5),)),
        ("offset between 5 and 9", (RecordBounds(from_offset=5, to_offset=9),)),
        ("`offset` in (7, 3, 5)", (RecordBounds(from_offset=3, to_offset=7),)),
        ("partition = 1", (RecordBounds(partitions=frozenset({1})),)),
        ("partition in (1, 3)", (RecordBounds(partitions=frozenset({1, 3})),)),
        (f"partition in ({', '.join(map(str, range(20)))})",
         (RecordBounds(partitions=frozenset(range(20))),)),
        ("timestamp >= '2026-11-16T08:00:00Z'", (RecordBounds(from_ms=EIGHT_MS),)),
        ("timestamp > timestamp'2026-11-16 09:00:00' - interval 1 hour",
         (RecordBounds(from_ms=EIGHT_MS),)),
        ("date(timestamp) = '1970-01-02'", (RecordBounds(from_ms=86_400_000, to_ms=172_800_000),)),
        ("timestamp < '1970-01-01T00:00:01.0015Z'", (RecordBounds(to_ms=1001),)),
        ("offset > 5 and n > 3", (RecordBounds(from_offset=6),)),
        ("offset > 5 or n > 3", EVERYTHING),
        ("offset < 5 or offset > 9", (RecordBounds(to_offset=4), RecordBounds(from_offset=10))),
        ("partition = 0 and offset < 5 or partition = 1 and offset > 7",
         (RecordBounds(to_offset=4, partitions=frozenset({0})),
          RecordBounds(from_offset=8, partitions=frozenset({1})))),
        ("not (offset > 5)", (RecordBounds(to_offset=5),)),
        ("offset % 2 = 0", EVERYTHING),
        ("offset > n", EVERYTHING),
        ("offset > rand()", EVERYTHING),
        ("offset is not null", EVERYTHING),
        ("timestamp <=> null", EVERYTHING),
    ],
)  # fmt: skip
def test_a_condition_leaves_bounds(
    spark: "SparkSession", text: str, alternatives: Alternatives
) -> None:
    assert alternatives_of(condition(spark, text)) == alternatives


def test_bounds_meet() -> None:
    one = RecordBounds(from_offset=3, partitions=frozenset({0, 1}))
    other = RecordBounds(from_offset=5, to_offset=9, partitions=frozenset({1, 2}))

    assert one.meet(other) == RecordBounds(from_offset=5, to_offset=9, partitions=frozenset({1}))
    assert RecordBounds(from_offset=6, to_offset=8).is_inside(
        RecordBounds(from_offset=5), margin_ms=0
    )
    assert not RecordBounds().is_inside(one, margin_ms=0)
    assert RecordBounds(to_ms=1100).is_inside(RecordBounds(to_ms=1000), margin_ms=100)
    assert not RecordBounds(to_ms=1101).is_inside(RecordBounds(to_ms=1000), margin_ms=100)
    assert NOTHING == ()
