"""What is told of values that left their schema."""

from typing import TYPE_CHECKING

import pytest
from tests.pipelines.decoders.records import records_of

from headrace.pipelines.decoders import Json, Raw, report_drift

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECODER = Json("sensor string not null, celsius double")
FINE = b'{"sensor":"a","celsius":1.5}'


def test_values_as_the_schema_says_are_no_drift() -> None:
    assert DECODER.drift([FINE] * 30) == []


def test_a_new_field_is_told_with_its_type() -> None:
    sample = [FINE, b'{"sensor":"a","celsius":1,"humidity":0.5}', b'{"sensor":"a","tags":[1]}']

    assert DECODER.drift(sample) == [
        "field humidity (double) is in the values and not in the schema",
        "field tags (array) is in the values and not in the schema",
    ]


def test_values_with_keys_of_their_own_do_not_flood() -> None:
    sample: list[bytes | None] = [b'{"host%d":1}' % number for number in range(15)]

    sentences = DECODER.drift(sample)

    assert len(sentences) == 11
    assert sentences[-1] == "many more fields are in the values and not in the schema"


def test_a_field_that_went_away_is_told() -> None:
    assert DECODER.drift([b'{"sensor":"a"}'] * 20) == [
        "field celsius of the schema is in no value any more"
    ]
    assert DECODER.drift([b'{"sensor":"a"}'] * 19) == []


def test_a_required_field_that_became_rare_is_told() -> None:
    sample = [FINE] * 9 + [b'{"celsius":1}'] * 11

    assert DECODER.drift(sample) == [
        "field sensor is required and missing in more than half of the values"
    ]


def test_what_is_no_object_says_nothing() -> None:
    assert DECODER.drift([None, b"", b"[1]", b"x", b"\xff", b"[" * 100_000]) == []


@pytest.mark.spark
def test_a_batch_is_looked_at_through_a_sample(spark: "SparkSession") -> None:
    records = records_of(spark, [b'{"sensor":"a","new":true}'] * 3)

    assert report_drift(DECODER, records) == [
        "field new (boolean) is in the values and not in the schema"
    ]
    assert report_drift(Raw(), records) == []
