"""Which names are one to Spark: those that differ in case only, unless it was told to see case."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sees_case(spark: "SparkSession") -> bool:
    """Whether this session takes `x` and `X` for two names."""
    return str(spark.conf.get("spark.sql.caseSensitive")).strip().lower() == "true"


def folded(name: str, *, is_case_sensitive: bool) -> str:
    """The same for all names that are one."""
    return name if is_case_sensitive else name.lower()
