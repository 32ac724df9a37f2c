"""The data pipelines: topics to lake, tables and back, on Spark through PySpark.

What a pipeline's module imports is here, and what runs one. Each name is loaded when it is first
used, so that neither a driver nor pyspark comes along with another.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.client.bus import Bus
    from headrace.pipelines.decoders import Avro, Json, Raw, Text, Tsv, Xml
    from headrace.pipelines.definition import Decoder, OpenSink, Option, Pipeline, Run, Sink, Source
    from headrace.pipelines.registry import load_pipeline
    from headrace.pipelines.running.runner import RunReport, run_pipeline
    from headrace.pipelines.running.settings import RunSettings, Trigger
    from headrace.pipelines.sinks.console import Console
    from headrace.pipelines.sinks.lake import LakeSink, compact_lake, read_lake
    from headrace.pipelines.sinks.sql import SqlTable
    from headrace.pipelines.sinks.topic import TopicSink
    from headrace.pipelines.sinks.uri import parse_sink
    from headrace.pipelines.source import TopicSource
    from headrace.pipelines.spark.session import close_session, open_session
    from headrace.pipelines.topic_view import read_topic, stream_topic

_MODULES = {
    "Avro": "headrace.pipelines.decoders",
    "Bus": "headrace.client.bus",
    "Console": "headrace.pipelines.sinks.console",
    "Decoder": "headrace.pipelines.definition",
    "Json": "headrace.pipelines.decoders",
    "LakeSink": "headrace.pipelines.sinks.lake",
    "OpenSink": "headrace.pipelines.definition",
    "Option": "headrace.pipelines.definition",
    "Pipeline": "headrace.pipelines.definition",
    "Raw": "headrace.pipelines.decoders",
    "Run": "headrace.pipelines.definition",
    "RunReport": "headrace.pipelines.running.runner",
    "RunSettings": "headrace.pipelines.running.settings",
    "Sink": "headrace.pipelines.definition",
    "Source": "headrace.pipelines.definition",
    "SqlTable": "headrace.pipelines.sinks.sql",
    "Text": "headrace.pipelines.decoders",
    "TopicSink": "headrace.pipelines.sinks.topic",
    "TopicSource": "headrace.pipelines.source",
    "Trigger": "headrace.pipelines.running.settings",
    "Tsv": "headrace.pipelines.decoders",
    "Xml": "headrace.pipelines.decoders",
    "close_session": "headrace.pipelines.spark.session",
    "compact_lake": "headrace.pipelines.sinks.lake",
    "load_pipeline": "headrace.pipelines.registry",
    "open_session": "headrace.pipelines.spark.session",
    "parse_sink": "headrace.pipelines.sinks.uri",
    "read_lake": "headrace.pipelines.sinks.lake",
    "read_topic": "headrace.pipelines.topic_view",
    "run_pipeline": "headrace.pipelines.running.runner",
    "stream_topic": "headrace.pipelines.topic_view",
}

__all__ = [
    "Avro",
    "Bus",
    "Console",
    "Decoder",
    "Json",
    "LakeSink",
    "OpenSink",
    "Option",
    "Pipeline",
    "Raw",
    "Run",
    "RunReport",
    "RunSettings",
    "Sink",
    "Source",
    "SqlTable",
    "Text",
    "TopicSink",
    "TopicSource",
    "Trigger",
    "Tsv",
    "Xml",
    "close_session",
    "compact_lake",
    "load_pipeline",
    "open_session",
    "parse_sink",
    "read_lake",
    "read_topic",
    "run_pipeline",
    "stream_topic",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
