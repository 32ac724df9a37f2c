"""The columns `date` and `hour`, in UTC, that a lake is partitioned by."""

from typing import TYPE_CHECKING

from headrace.errors import SinkError
from headrace.pipelines.definition import RECORD_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

HOUR_COLUMNS = ("date", "hour")


def with_hours(rows: "DataFrame", time_column: str | None = None) -> "DataFrame":
    """Add the hour of each row's time; SinkError if there is no time to take."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    for name in HOUR_COLUMNS:
        if name in rows.columns:
            raise SinkError(
                f"the rows have a column {name}, which the lake makes itself; "
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


def with_hour_fields(schema: "StructType") -> "StructType":
    """The schema of files with the columns that their directories stand for."""
    from pyspark.sql.types import DateType, IntegerType, StructField, StructType

    own = [field for field in schema.fields if field.name not in HOUR_COLUMNS]
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
