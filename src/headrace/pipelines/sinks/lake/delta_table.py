"""A Delta table as its log has it: version, schema, and the versions that apps have committed."""

import json
from typing import TYPE_CHECKING, Any

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.lake.hours import is_hour_column
from headrace.pipelines.sinks.lake.widening import TypeChange, changes, leaf_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_NTZ = "timestamp_ntz"


class DeltaTable:
    """One look at the table. `open_table` takes it."""

    def __init__(self, spark: "SparkSession", path: str, snapshot: Any) -> None:
        self._spark = spark
        self._path = path
        self._snapshot = snapshot
        self.version = int(snapshot.version())
        self.table_id = str(snapshot.metadata().id())

    def version_of(self, app_id: str) -> int:
        """The last version that this app committed, or -1."""
        found = self._snapshot.transactions().get(app_id)
        return int(found.get()) if found.isDefined() else -1

    @property
    def schema(self) -> "StructType":
        """Its columns, without those of the directories."""
        from pyspark.sql.types import StructType

        whole = StructType.fromJson(json.loads(self._snapshot.metadata().schemaString()))
        return StructType([field for field in whole if not is_hour_column(field.name)])

    def widen(self, whole: "StructType") -> list[TypeChange]:
        """Make it take rows of such a schema; which columns have a wider type now.

        Columns that are missing are left to the write. The files stay as they are: readers widen
        what they read.
        """
        columns = changes(self.schema, whole)
        properties = dict[str, str]()
        if columns:
            properties["delta.enableTypeWidening"] = "true"
        if _NTZ in leaf_types(whole) and _NTZ not in leaf_types(self.schema):
            properties["delta.feature.timestampNtz"] = "supported"
        for name, value in properties.items():
            self._alter(f"SET TBLPROPERTIES ('{name}' = '{value}')")
        for column in columns:
            self._alter(f"ALTER COLUMN {column.path} TYPE {column.kind}")
        return columns

    def _alter(self, how: str) -> None:
        self._spark.sql(f"ALTER TABLE delta.`{self._path.replace('`', '``')}` {how}")


def open_table(spark: "SparkSession", path: str) -> DeltaTable | None:
    """Look at the Delta table at `path`; None if there is none."""
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm
    try:
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    except (Py4JError, TypeError) as error:
        raise SinkError(
            f"cannot open the Delta table {path}: is Delta among Spark's jars? "
            "'headrace pipeline setup' fetches it"
        ) from error
    nothing = jvm.scala.Option.empty()
    # Not `tableExists`, which remembers one that was deleted.
    snapshot = log.update(False, nothing, nothing)
    return DeltaTable(spark, path, snapshot) if snapshot.version() >= 0 else None
