"""The columns `date` and `hour`, in UTC, that a lake is partitioned by.

To Spark a column `Date` is the same one, and would be replaced without a word; so it is to us.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.lake.names import folded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

HOUR_COLUMNS = ("date", "hour")


def is_hour_column(name: str, *, is_case_sensitive: bool = False) -> bool:
    """Whether a column of this name would be one that the lake makes itself."""
    return folded(name, is_case_sensitive=is_case_sensitive) in HOUR_COLUMNS


def with_hours(
    rows: "DataFrame", time_column: str | None = None, *, is_case_sensitive: bool = False
) -> "DataFrame":
    """Add the hour of each row's time; SinkError if there is no time to take."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    for name in rows.columns:
        if is_hour_column(name, is_case_sensitive=is_case_sensitive):
            own = name.lower()
            same = "" if name == own else f" as {own}, which is the same to Spark"
            raise SinkError(
                f"the rows have a column {name}, which the lake makes itself{same}; "
                "give it another name in the transform"
            )
    # Not to_date() and hour(): they count in the session's time zone.
    seconds = F.unix_seconds(F.col(time_column or _time_of(rows)))
    return rows.withColumns(
        {
            "date": F.date_from_unix_date(F.floor(seconds / 86400).cast("int")),
            "hour": F.pmod(F.floor(seconds / 3600), F.lit(24)).cast("int"),
        }
    )


def with_hour_fields(schema: "StructType", *, is_case_sensitive: bool = False) -> "StructType":
    """The schema of files with the columns that their directories stand for."""
    from pyspark.sql.types import DateType, IntegerType, StructField, StructType

    own = [
        field
        for field in schema.fields
        if not is_hour_column(field.name, is_case_sensitive=is_case_sensitive)
    ]
    hour = [StructField("date", DateType()), StructField("hour", IntegerType())]
    return StructType([*own, *hour])


def _time_of(rows: "DataFrame") -> str:
    if RECORD_COLUMN in rows.columns:
        return f"{RECORD_COLUMN}.timestamp"
    if "timestamp" in rows.columns:
        return "timestamp"
    raise SinkError(
        f"the rows have neither {RECORD_COLUMN} nor timestamp to tell the hour by "
        f"(they have {', '.join(rows.columns)}); name a column with --option time=COLUMN"
    )
