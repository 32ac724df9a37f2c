"""An encoder by the name of its format, for `--option to-format=…`."""

from collections.abc import Mapping

from headrace.pipelines.decoders.parse import FORMATS, parse_avro_header, parse_schema_id
from headrace.pipelines.decoders.tsv import TAB
from headrace.pipelines.decoders.xml import ROW_TAG
from headrace.pipelines.encoders.avro import AvroEncoder
from headrace.pipelines.encoders.encoder import Encoder
from headrace.pipelines.encoders.json import JsonEncoder
from headrace.pipelines.encoders.text import ColumnEncoder
from headrace.pipelines.encoders.tsv import TsvEncoder
from headrace.pipelines.encoders.xml import XmlEncoder
from headrace.pipelines.errors import PipelineDefinitionError

_NAMED_SEPARATORS = {"\\t": TAB, "tab": TAB}


def parse_encoder(format_name: str, options: Mapping[str, str]) -> Encoder:
    """Make an encoder from the options that begin with `to-`; ignores the rest."""
    match format_name.lower():
        case "raw" | "text":
            return ColumnEncoder(format_name.lower())
        case "json":
            return JsonEncoder()
        case "tsv":
            return TsvEncoder(_separator(options, TAB))
        case "csv":
            return TsvEncoder(_separator(options, ","), is_quoted=True)
        case "xml":
            return XmlEncoder(options.get("to-row-tag", ROW_TAG))
        case "avro":
            return AvroEncoder(
                parse_avro_header(options.get("to-avro-header", "none")),
                options.get("to-schema"),
                parse_schema_id("to-schema-id", options.get("to-schema-id", "0")),
            )
    raise PipelineDefinitionError(
        f"to-format {format_name!r}: there is no such format; write one of {', '.join(FORMATS)}"
    )


def _separator(options: Mapping[str, str], default: str) -> str:
    text = options.get("to-separator", default)
    return _NAMED_SEPARATORS.get(text, text)
