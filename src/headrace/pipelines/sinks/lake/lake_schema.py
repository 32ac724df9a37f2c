"""What columns a Parquet lake has, so that nobody has to open all its files to know.

Every schema that rows came with is noted below `_headrace/schemas` before the first of them is in
the lake; the lake's own is all of them together (`widening`). A lake from before there were such
notes, or one whose notes are gone, is looked through once, file by file.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.pipelines.hadoop_files import HadoopFiles, TakenError
from headrace.pipelines.sinks.lake.layout import all_data_files
from headrace.pipelines.sinks.lake.names import sees_case
from headrace.pipelines.sinks.lake.notes import HOME
from headrace.pipelines.sinks.lake.widening import ClashError, SameNameError, united

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SCHEMAS = f"{HOME}/schemas"
_ENDING = ".json"
_MS_DIGITS = 14  # so that names sort by time
# Reading the end of a file, where Parquet keeps its schema, is waiting for the file system.
_THREADS = 16
# So many ends are held in Java's memory at once.
_AT_ONCE = 1_000
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


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
            except SameNameError as clash:
                raise _unreadable(self._files.root, clash, file) from clash
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
        """The different schemas of these files, each with one file that has it."""
        from pyspark.sql.types import StructType

        found = dict[str, tuple[StructType, str]]()
        for start in range(0, len(names), _AT_ONCE):
            for path, own, physical in self._footers(names[start : start + _AT_ONCE]):
                if (key := own or physical) in found:
                    continue
                if own is None:  # another than Spark wrote it
                    schema = self._spark.read.parquet(path).schema
                else:
                    schema = StructType.fromJson(json.loads(own))
                found[key] = schema, path
        return list(found.values())

    def _footers(self, names: Sequence[str]) -> Iterator[tuple[str, str | None, str]]:
        """Of each file its path, the schema Spark noted, and where it noted none Parquet's own."""
        jvm: Any = self._spark._jvm
        conf = self._files.configuration({"parquet.metadata.read.parallelism": str(_THREADS)})
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader
        for footer in reader.readAllFootersInParallel(conf, self._files.statuses(names), True):
            meta = footer.getParquetMetadata().getFileMetaData()
            own = meta.getKeyValueMetaData().get(_SPARK_SCHEMA)
            physical = "" if own is not None else meta.getSchema().toString()
            yield footer.getFile().toString(), own, physical

    def _united(self, schemas: "Sequence[StructType]") -> "StructType":
        return united(schemas, is_case_sensitive=self.is_case_sensitive)


def _mixed(root: str, clash: ClashError, found: "Sequence[tuple[StructType, str]]") -> ClashError:
    sentence = (
        f"the files of lake {root} cannot be read as one: column {clash.column} is {clash.has} in "
        f"some and {clash.comes} in others, as in {found[-1][1]}; read them by themselves, "
        "and write what comes from now on to a new lake"
    )
    return ClashError(clash.column, clash.has, clash.comes, sentence)


def _unreadable(root: str, clash: SameNameError, file: str) -> ClashError:
    sentence = (
        f"lake {root} has a file with {clash.column} and {clash.other}, names that are one to "
        f"Spark: {file}; read it with spark.sql.caseSensitive=true"
    )
    return ClashError(clash.column, clash.has, clash.comes, sentence)


def _digest(schema: "StructType") -> str:
    return hashlib.sha256(schema.json().encode()).hexdigest()[:16]
