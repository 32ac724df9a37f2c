"""How bytes become fields: one module a format.

Importing this starts nothing: pyspark and fastavro are imported when a frame is decoded.
"""

from headrace.pipelines.decoders.avro import Avro
from headrace.pipelines.decoders.drift import report_drift
from headrace.pipelines.decoders.json import Json
from headrace.pipelines.decoders.parse import parse_decoder
from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.decoders.text import Text
from headrace.pipelines.decoders.tsv import Tsv
from headrace.pipelines.decoders.xml import Xml

__all__ = ["Avro", "Json", "Raw", "Text", "Tsv", "Xml", "parse_decoder", "report_drift"]
