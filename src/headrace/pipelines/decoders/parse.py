"""A decoder by the name of its format, for YAML and `--option format=…`."""

from collections.abc import Mapping

from headrace.pipelines.decoders.avro import Avro
from headrace.pipelines.decoders.avro_header import HEADERS, AvroHeader
from headrace.pipelines.decoders.json import Json
from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.decoders.text import Text
from headrace.pipelines.decoders.tsv import TAB, Tsv
from headrace.pipelines.decoders.xml import ROW_TAG, Xml
from headrace.pipelines.definition import Decoder
from headrace.pipelines.errors import PipelineDefinitionError

FORMATS = ("json", "tsv", "csv", "text", "raw", "avro", "xml")
_MAX_SCHEMA_ID = (1 << 31) - 1  # four bytes, and registries count from 1
_NAMED_SEPARATORS = {"\\t": TAB, "tab": TAB}


def parse_decoder(format_name: str, options: Mapping[str, str]) -> Decoder:
    """Make a decoder from `schema` and what its format has besides; ignores the rest."""
    match format_name.lower():
        case "raw":
            return Raw()
        case "text":
            return Text()
        case "json":
            return Json(_schema(format_name, options))
        case "tsv":
            return Tsv(_schema(format_name, options), parse_separator(options, TAB))
        case "csv":
            return Tsv(_schema(format_name, options), parse_separator(options, ","), True)
        case "xml":
            return Xml(_schema(format_name, options), options.get("row-tag", ROW_TAG))
        case "avro":
            number = options.get("avro-schema-id")
            return Avro(
                _schema(format_name, options),
                parse_avro_header(options.get("avro-header", "none")),
                None if number is None else parse_schema_id("avro-schema-id", number),
            )
    raise PipelineDefinitionError(
        f"format {format_name!r}: there is no such format; write one of {', '.join(FORMATS)}"
    )


def parse_separator(options: Mapping[str, str], default: str) -> str:
    r"""The option `separator`; shells make a tab hard to write, so `\t` and `tab` are one."""
    text = options.get("separator", default)
    return _NAMED_SEPARATORS.get(text, text)


def parse_avro_header(text: str) -> AvroHeader:
    """What stands before each Avro value."""
    for known in HEADERS:
        if text == known:
            return known
    raise PipelineDefinitionError(f"avro-header {text!r}: write one of {', '.join(HEADERS)}")


def parse_schema_id(option: str, text: str) -> int:
    """The number that a registry gave a schema."""
    if not text.isdecimal() or int(text) > _MAX_SCHEMA_ID:
        raise PipelineDefinitionError(f"{option} {text!r}: wanted a number, as a registry gives")
    return int(text)


def _schema(format_name: str, options: Mapping[str, str]) -> str:
    schema = options.get("schema", "").strip()
    if not schema:
        example = (
            "the Avro schema as JSON, or the name of its file"
            if format_name == "avro"
            else "sensor string not null, celsius double"
        )
        raise PipelineDefinitionError(
            f"format {format_name} needs a schema; write schema={example!r}"
        )
    return schema
