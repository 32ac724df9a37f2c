"""What columns a Parquet lake has, so that nobody has to open all its files to know.

Every schema that rows came with is noted below `_headrace/schemas` before the first of them is in
the lake; the lake's own is all of them together (`widening`). A lake from before there were such
notes, or one whose notes are gone, is looked through once, file by file.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.pipelines.hadoop_files import HadoopFiles, TakenError
from headrace.pipelines.sinks.lake.footers import schemas_of
from headrace.pipelines.sinks.lake.layout import all_data_files
from headrace.pipelines.sinks.lake.names import sees_case
from headrace.pipelines.sinks.lake.notes import HOME
from headrace.pipelines.sinks.lake.widening import ClashError, TwinsError, united

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SCHEMAS = f"{HOME}/schemas"
_ENDING = ".json"
_MS_DIGITS = 14  # so that names sort by time


class LakeSchema:
    """The columns of one lake. Used by one thread; other apps may add to them as well."""

    def __init__(self, spark: "SparkSession", files: HadoopFiles) -> None:
        self._spark = spark
        self._files = files
        self.is_case_sensitive = sees_case(spark)
        self._whole: StructType | None = None
        self._admitted = set[str]()

    def read(self) -> "StructType":
        """All columns, in the types they are read in; ClashError where files do not go together."""
        return self._united(self._noted() or self._found())

    def with_rows(self, schema: "StructType") -> "StructType":
        """The whole schema once rows like these are in; ClashError if they do not fit the lake."""
        digest = _digest(schema)
        if self._whole is None or digest not in self._admitted:
            self._whole = self._united([*(self._noted() or self._survey()), schema])
        return self._whole

    def admit(self, schema: "StructType") -> None:
        """Note what rows bring, before they are in the lake; ClashError if they do not fit."""
        digest = _digest(schema)
        if digest in self._admitted:
            return
        plain = self._united([schema])
        noted = self._noted() or self._survey()
        self._united([*noted, plain])
        if plain not in noted:
            self._note(plain)
        self._admitted.add(digest)

    def admit_files(self, names: Sequence[str]) -> "StructType":
        """Note what these files have, whoever wrote them; the whole schema, or ClashError."""
        for schema, _ in self._schemas_of(names):
            self.admit(schema)
        return self._united(self._noted())

    def _note(self, schema: "StructType") -> None:
        name = f"{SCHEMAS}/{int(time.time() * 1000):0{_MS_DIGITS}}-{_digest(schema)}{_ENDING}"
        try:
            self._files.write_whole(name, schema.json())
        except TakenError:
            return  # by the same, at the same moment
        try:
            self._united(self._noted())
        except ClashError:
            # Another added what does not go with it, in this very moment.
            self._files.delete(name)
            raise

    def _survey(self) -> "list[StructType]":
        """Look through a lake that has no notes of its schemas, and make them."""
        found = self._found()
        for schema in found:
            self._note(schema)
        return found

    def _found(self) -> "list[StructType]":
        """The schemas of all files there are, each once."""
        found = self._schemas_of(all_data_files(self._files))
        for schema, file in found:
            try:
                self._united([schema])
            except TwinsError as twins:
                raise _unreadable(self._files.root, twins, file) from twins
        try:
            self._united([schema for schema, _ in found])
        except ClashError as clash:
            raise _mixed(self._files.root, clash, found) from clash
        plain = [self._united([schema]) for schema, _ in found]
        return [schema for number, schema in enumerate(plain) if schema not in plain[:number]]

    def _noted(self) -> "list[StructType]":
        """All schemas that were noted, the oldest first."""
        from pyspark.sql.types import StructType

        return [
            StructType.fromJson(json.loads(self._files.read(f"{SCHEMAS}/{entry.name}")))
            for entry in self._files.list(SCHEMAS)
            if entry.name.endswith(_ENDING) and not entry.name.startswith("_")
        ]

    def _schemas_of(self, names: Sequence[str]) -> "list[tuple[StructType, str]]":
        return schemas_of(self._spark, [self._files.path(name) for name in names])

    def _united(self, schemas: "Sequence[StructType]") -> "StructType":
        return united(schemas, is_case_sensitive=self.is_case_sensitive)


def _mixed(root: str, clash: ClashError, found: "Sequence[tuple[StructType, str]]") -> ClashError:
    sentence = (
        f"the files of lake {root} cannot be read as one: column {clash.column} is {clash.has} in "
        f"some and {clash.comes} in others, as in {found[-1][1]}; read them by themselves, "
        "and write what comes from now on to a new lake"
    )
    return ClashError(clash.column, clash.has, clash.comes, sentence)


def _unreadable(root: str, twins: TwinsError, file: str) -> ClashError:
    sentence = (
        f"lake {root} has a file with {twins.column} and {twins.other}, names that are one to "
        f"Spark: {file}; read it with spark.sql.caseSensitive=true"
    )
    return ClashError(twins.column, twins.has, twins.comes, sentence)


def _digest(schema: "StructType") -> str:
    return hashlib.sha256(schema.json().encode()).hexdigest()[:16]
