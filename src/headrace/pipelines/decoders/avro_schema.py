"""An Avro schema as the types of a frame, and the other way round.

A union is a nullable type or refused: a frame has no column that is now a number, now a text.
Logical types that a frame has no type for (times of day, durations) stay the number they are.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.pipelines.decoders.ddl import Array, Atom, Decimal, Map, SchemaField, Struct, Type
from headrace.pipelines.errors import PipelineDefinitionError

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
_KEPT_LOGICAL = {*_LOGICAL, "decimal"}
_AVRO_OF: dict[str, Any] = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def read_avro_schema(text_or_file: str) -> Any:
    """The schema from JSON text or from the file of that name; PipelineDefinitionError."""
    text = text_or_file.strip()
    where = "Avro schema"
    if not text.startswith(("{", "[", '"')):
        where = f"Avro schema {text}"
        try:
            text = Path(text).read_text("utf-8")
        except OSError as error:
            raise PipelineDefinitionError(f"{where}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise PipelineDefinitionError(f"{where}: the file is not UTF-8") from error
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise PipelineDefinitionError(f"{where} is not JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise PipelineDefinitionError(f"{where}: wanted a record at the top")
    return schema


def fields_of(schema: Any) -> tuple[SchemaField, ...]:
    """The fields of a record as columns."""
    return _Reader().record(schema, "").fields


def readable(schema: Any) -> Any:
    """The schema without the logical types that a frame has no type for."""
    if isinstance(schema, list):
        return [readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: [readable(each) for each in value]
        if name == "fields"
        else readable(value)
        if name in ("type", "items", "values")
        else value
        for name, value in schema.items()
        if name != "logicalType" or value in _KEPT_LOGICAL
    }


def avro_of(fields: Sequence[SchemaField], name: str = "row") -> dict[str, Any]:
    """The schema that rows are written with: every field may be null."""
    entries = []
    for each in fields:
        kind = _avro_type(each.type, f"{name}_{each.name}")
        entries.append({"name": each.name, "type": ["null", kind], "default": None})
    return {"type": "record", "name": name, "fields": entries}


def _avro_type(kind: Type, name: str) -> Any:
    match kind:
        case Decimal(precision, scale):
            logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
            return {"type": "bytes", **logical}
        case Array(element):
            return {"type": "array", "items": ["null", _avro_type(element, name)]}
        case Map(Atom("string"), value):
            return {"type": "map", "values": ["null", _avro_type(value, name)]}
        case Map(key, _):
            raise PipelineDefinitionError(
                f"field {name}: keys of a map in Avro are text, not {key.ddl}"
            )
        case Struct(fields):
            return avro_of(fields, name)
    return _AVRO_OF[kind.ddl]


class _Reader:
    def __init__(self) -> None:
        self._named = dict[str, Type]()
        self._open = set[str]()

    def record(self, schema: Any, namespace: str) -> Struct:
        name, namespace = _full_name(schema, namespace)
        self._open.add(name)
        fields = tuple(
            SchemaField(each["name"], self._type(each["type"], namespace, each["name"]))
            for each in schema.get("fields", ())
        )
        if not fields:
            raise PipelineDefinitionError(f"Avro schema: record {name} has no fields")
        self._open.discard(name)
        self._named[name] = Struct(fields)
        return Struct(fields)

    def _type(self, schema: Any, namespace: str, where: str) -> Type:
        if isinstance(schema, list):
            kinds = [each for each in schema if each != "null"]
            if len(kinds) != 1:
                raise PipelineDefinitionError(
                    f"Avro schema, field {where}: a union other than of null and one type "
                    "has no column type"
                )
            return self._type(kinds[0], namespace, where)
        if isinstance(schema, str):
            return self._by_name(schema, namespace, where)
        return self._complex(schema, namespace, where)

    def _by_name(self, name: str, namespace: str, where: str) -> Type:
        if name in _PRIMITIVES:
            return Atom(_PRIMITIVES[name])
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                return self._named[full]
            if full in self._open:
                raise PipelineDefinitionError(
                    f"Avro schema, field {where}: {name} holds itself; no column type does"
                )
        raise PipelineDefinitionError(f"Avro schema, field {where}: there is no type {name}")

    def _complex(self, schema: Any, namespace: str, where: str) -> Type:
        kind, logical = schema.get("type"), schema.get("logicalType")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return Decimal(schema["precision"], schema.get("scale", 0))
        if logical in _LOGICAL and kind in ("int", "long"):
            return Atom(_LOGICAL[logical])
        if kind == "record":
            return self.record(schema, namespace)
        if kind == "array":
            return Array(self._type(schema["items"], namespace, where))
        if kind == "map":
            return Map(Atom("string"), self._type(schema["values"], namespace, where))
        if kind in ("enum", "fixed"):
            name, _ = _full_name(schema, namespace)
            self._named[name] = Atom("string" if kind == "enum" else "binary")
            return self._named[name]
        return self._type(kind, namespace, where)


def _full_name(schema: Any, namespace: str) -> tuple[str, str]:
    name: str = schema.get("name", "")
    if "." in name:
        return name, name.rpartition(".")[0]
    namespace = schema.get("namespace", namespace)
    return (f"{namespace}.{name}" if namespace else name), namespace
