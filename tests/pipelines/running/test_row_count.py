"""What is counted in the pass that writes, on real Spark."""

from typing import TYPE_CHECKING

import pytest
from tests.pipelines.decoders.records import records_of

from headrace.pipelines.decoders import Json
from headrace.pipelines.running.row_count import RowCount, RowCounter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DECODER = Json("n bigint not null")


def test_the_bad_ones_are_all_among_the_suspects_and_hardly_anyone_else(
    spark: "SparkSession",
) -> None:
    bad = {7, 300, 1999}
    values = [b"{" if n in bad else b'{"n":%d}' % n for n in range(2000)]
    records = records_of(spark, values).repartition(3).persist()
    counter = RowCounter(can_fail=True)

    counter.of(DECODER.decode(records)).where("_error is null").write.format("noop").mode(
        "overwrite"
    ).save()

    counted = counter.take()
    assert counted
    assert (counted.rows, counted.bad) == (2000, 3)
    suspects = {row.offset for row in counted.suspects(records).select("offset").collect()}
    assert bad <= suspects
    assert len(suspects) < 20


def test_of_a_pass_that_needed_no_row_nothing_is_known(spark: "SparkSession") -> None:
    counter = RowCounter(can_fail=True)

    counter.of(DECODER.decode(records_of(spark, [b"{"]))).where("false").collect()

    assert counter.take() is None


@pytest.mark.parametrize("first", [0x01, 0x80])
def test_a_bitmap_of_small_words_has_all_its_bits(spark: "SparkSession", first: int) -> None:
    bits = bytes([first]) + bytes(4095)

    suspects = RowCount(500, 1, bits).suspects(records_of(spark, [b"{"] * 500))

    assert suspects.count() < 10
