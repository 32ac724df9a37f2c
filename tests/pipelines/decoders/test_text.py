"""Text and raw bytes."""

from typing import TYPE_CHECKING

import pytest
from tests.pipelines.decoders.records import decode, records_of

from headrace.pipelines.decoders import Raw, Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_text_is_utf8_or_bad(spark: "SparkSession") -> None:
    good, empty, bad, tombstone = decode(spark, Text(), ["é".encode(), b"", b"a\xff", None])

    assert good == ({"text": "é"}, None, False)
    assert empty == ({"text": ""}, None, False)
    assert bad.error == "not UTF-8"
    assert tombstone == ({}, None, True)
    assert Text().explain(b"a\xff") == "not UTF-8: byte 0xff at position 1"


@pytest.mark.spark
def test_raw_gives_the_records_themselves(spark: "SparkSession") -> None:
    records = records_of(spark, [b"\xff"])

    assert not Raw().can_fail
    assert Raw().decode(records).collect() == records.collect()
