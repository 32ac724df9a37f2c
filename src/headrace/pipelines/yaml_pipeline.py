"""A pipeline as a YAML file: a source, a format, one SQL query over `input`, and sinks.

Values are taken as they are written (a start of 2026-11-16 is no date object), and every
complaint names the line.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.installing import how_to_install
from headrace.pipelines.definition import Decoder, Pipeline, Sink, Transform, unchanged
from headrace.pipelines.definition_module import PipelineModule, check_name, suggestion
from headrace.pipelines.errors import PipelineDefinitionError, PipelineError
from headrace.pipelines.source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NULL = "tag:yaml.org,2002:null"
VIEW = "input"  # what the query reads from

_SOURCE_KEYS = {
    "topics": "topics",
    "pattern": "pattern",
    "from": "start",
    "until": "end",
    "max_rows_per_batch": "max_rows_per_batch",
    "min_partitions": "min_partitions",
    "on_data_loss": "on_data_loss",
}
_NUMBERS = {"max_rows_per_batch", "min_partitions"}
# The decoder's options have dashes on the command line and underscores here.
_FORMAT_KEYS = ("schema", "separator", "avro_header", "avro_schema_id", "row_tag")
_KEYS = ("name", "summary", "source", "format", *_FORMAT_KEYS, "sql", "sinks", "dead_letter_topic")


def load_yaml(path: Path) -> PipelineModule:
    """Read the file; PipelineDefinitionError names the line."""
    file = _File(path)
    top = file.mapping(file.root(), _KEYS, "a pipeline")
    texts = {key: file.text(top[key]) for key in top if key not in ("source", "sinks")}
    name = texts.get("name", path.stem)
    check_name(name, str(path))
    summary = texts.get("summary", f"SQL over a topic ({path.name})").strip().partition("\n")[0]
    source = _read_source(file, top["source"]) if "source" in top else TopicSource()
    decoder_node = top.get("format", top.get("schema"))
    decoder = file.located(decoder_node, lambda: _read_decoder(texts))
    sinks = tuple(_read_sinks(file, top["sinks"])) if "sinks" in top else ()
    transform: Transform = unchanged
    if "sql" in top:
        transform = sql_transform(texts["sql"], file.where(top["sql"]))

    def make(options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]) -> Pipeline:
        return Pipeline(
            name=name,
            summary=summary,
            source=source,
            decoder=decoder,
            sinks=sinks,
            transform=transform,
            dead_letter_topic=texts.get("dead_letter_topic"),
        )

    return PipelineModule(
        name=name, summary=summary, origin=str(path), source=source, sinks=sinks, make=make
    )


def sql_transform(query: str, where: str) -> Transform:
    """The query as a function of frames: its view lives only while it is looked at."""
    is_known_to_read = False

    def transform(rows: "DataFrame") -> "DataFrame":
        from pyspark.errors import AnalysisException

        from headrace.pipelines.spark.session import silence_query_loggers
        from headrace.pipelines.sql_query.failures import sentence_of
        from headrace.pipelines.sql_query.statements import refuse_statements

        nonlocal is_known_to_read
        silence_query_loggers()
        try:
            if not is_known_to_read:  # Spark runs a statement at once, and with each batch
                refuse_statements(rows.sparkSession, query)
        except PipelineDefinitionError as error:
            raise PipelineDefinitionError(f"{where}: {error}") from error
        is_known_to_read = True
        rows.createOrReplaceTempView(VIEW)
        try:
            return rows.sparkSession.sql(query)  # resolved here, so the view may go again
        except AnalysisException as error:
            raise PipelineDefinitionError(f"{where}: {sentence_of(error)}") from error
        finally:
            rows.sparkSession.catalog.dropTempView(VIEW)

    return transform


class _File:
    """A YAML file as a tree that knows its lines."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def root(self) -> Any:
        try:
            import yaml
        except ImportError:
            raise PipelineDefinitionError(
                f"{self._path}: YAML needs pyyaml: {how_to_install('spark', 'pyyaml')}"
            ) from None
        try:
            text = self._path.read_text("utf-8")
            node = yaml.compose(text, yaml.SafeLoader)
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineDefinitionError(f"cannot read {self._path}: {error}") from error
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise PipelineDefinitionError(f"{self._path} line {line}: {error.problem}") from error
        except yaml.YAMLError as error:
            raise PipelineDefinitionError(f"{self._path}: {error}".splitlines()[0]) from error
        if node is None:
            raise PipelineDefinitionError(f"{self._path} is empty")
        return node

    def where(self, node: Any) -> str:
        return (
            f"{self._path} line {node.start_mark.line + 1}" if node is not None else str(self._path)
        )

    def mapping(self, node: Any, known: Iterable[str] | None, what: str) -> dict[str, Any]:
        """The values by key; without `known`, any key will do."""
        if node.id != "mapping":
            raise PipelineDefinitionError(f"{self.where(node)}: {what} is made of `name: value`")
        found = dict[str, Any]()
        for key, value in node.value:
            name = self.text(key)
            if name in found:
                raise PipelineDefinitionError(f"{self.where(key)}: {name} is there twice")
            if known is not None and name not in known:
                raise PipelineDefinitionError(
                    f"{self.where(key)}: {what} has no {name}{suggestion(name, known)}"
                )
            found[name] = value
        return found

    def text(self, node: Any) -> str:
        if node.id != "scalar" or node.tag == _NULL:
            raise PipelineDefinitionError(f"{self.where(node)}: a text is wanted here")
        return str(node.value)

    def texts(self, node: Any) -> list[str]:
        """A list of texts; one alone needs no list."""
        if node.id == "sequence":
            return [self.text(each) for each in node.value]
        return [self.text(node)]

    def located(self, node: Any, make: Callable[[], Any]) -> Any:
        """What `make` makes; its complaint gets the line."""
        try:
            return make()
        except PipelineError as error:
            raise PipelineDefinitionError(f"{self.where(node)}: {error}") from error


def _read_source(file: _File, node: Any) -> TopicSource:
    values = dict[str, Any]()
    for key, value in file.mapping(node, _SOURCE_KEYS, "source").items():
        if key == "topics":
            values["topics"] = tuple(file.texts(value))
            continue
        text = file.text(value)
        if key in _NUMBERS and not text.isdecimal():
            raise PipelineDefinitionError(f"{file.where(value)}: {key} is a number, not {text}")
        values[_SOURCE_KEYS[key]] = int(text) if key in _NUMBERS else text
    source = file.located(node, lambda: TopicSource(**values))
    assert isinstance(source, TopicSource)
    return source


def _read_decoder(texts: Mapping[str, str]) -> Decoder:
    from headrace.pipelines.decoders.parse import parse_decoder

    options = {key.replace("_", "-"): texts[key] for key in _FORMAT_KEYS if key in texts}
    if "format" not in texts and options:
        raise PipelineDefinitionError(f"{', '.join(options)} needs a format, such as format: json")
    return parse_decoder(texts.get("format", "raw"), options)


def _read_sinks(file: _File, node: Any) -> Iterable[Sink]:
    from headrace.pipelines.sinks.uri import parse_sink

    for each in node.value if node.id == "sequence" else [node]:
        if each.id == "scalar":
            uri, options = file.text(each), dict[str, str]()
        elif len(each.value) == 1 and each.value[0][1].tag == _NULL:
            uri, options = f"{file.text(each.value[0][0])}:", {}  # `console:` without quotes
        else:
            values = file.mapping(each, None, "a sink")
            if "uri" not in values:
                raise PipelineDefinitionError(f"{file.where(each)}: a sink needs its uri")
            options = {key: ",".join(file.texts(value)) for key, value in values.items()}
            uri = options.pop("uri")
        yield file.located(each, partial(parse_sink, uri, options))
