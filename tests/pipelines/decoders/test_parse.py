"""Decoders by name."""

import json

import pytest

from headrace.pipelines.decoders import Avro, Json, Raw, Text, Tsv, Xml, parse_decoder
from headrace.pipelines.errors import PipelineDefinitionError

SCHEMA = {"schema": "a int"}
AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})


@pytest.mark.parametrize(
    ("format_name", "options", "decoder"),
    [
        ("raw", {}, Raw()),
        ("text", {}, Text()),
        ("JSON", SCHEMA, Json("a int")),
        ("tsv", SCHEMA, Tsv("a int")),
        ("tsv", {**SCHEMA, "separator": "\\t"}, Tsv("a int")),
        ("tsv", {**SCHEMA, "separator": "|"}, Tsv("a int", "|")),
        ("csv", SCHEMA, Tsv("a int", ",", is_quoted=True)),
        ("xml", {**SCHEMA, "row-tag": "r"}, Xml("a int", "r")),
        ("avro", {"schema": AVRO, "avro-header": "confluent"}, Avro(AVRO, "confluent")),
        (
            "avro",
            {"schema": AVRO, "avro-header": "confluent", "avro-schema-id": "7"},
            Avro(AVRO, "confluent", 7),
        ),
    ],
)
def test_a_format_has_a_decoder(format_name: str, options: dict[str, str], decoder: object) -> None:
    assert parse_decoder(format_name, options) == decoder


@pytest.mark.parametrize(
    ("format_name", "options", "sentence"),
    [
        ("jason", {}, "format 'jason': there is no such format; write one of json, tsv"),
        ("json", {}, "format json needs a schema; write schema='sensor string"),
        ("avro", {}, "format avro needs a schema; write schema='the Avro schema"),
        ("json", {"schema": "a itn"}, "schema 'a itn': 'itn' at character 3: wanted a type"),
        ("avro", {"schema": AVRO, "avro-header": "x"}, "avro-header 'x': write one of none, conf"),
        ("avro", {"schema": AVRO, "avro-schema-id": "x"}, "avro-schema-id 'x': wanted a number"),
    ],
)
def test_what_makes_no_decoder_is_told(
    format_name: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PipelineDefinitionError) as caught:
        parse_decoder(format_name, options)

    assert sentence in str(caught.value)
