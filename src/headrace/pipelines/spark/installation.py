"""Whether pyspark is there, and of the version our jars are for."""

import os
from importlib import metadata
from pathlib import Path

from headrace.installing import how_to_install
from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.jars import LIST_VARIABLE, SPARK_VERSION

# What Spark 4.2's documentation names. Others may work and are not refused.
JAVA_VERSIONS = (17, 21, 25)


def check_pyspark(list_file: Path | None = None) -> str:
    """Return pyspark's version; raises SparkError where it is missing or not the one wanted.

    Whoever names a jar list of their own may have any version: the list is for it.
    """
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError as error:
        raise SparkError(f"pipelines run on Spark, and pyspark is missing: {_how()}") from error
    if version != SPARK_VERSION and not (list_file or os.environ.get(LIST_VARIABLE)):
        raise SparkError(
            f"pyspark {version} is installed and the pinned jars are for {SPARK_VERSION}: "
            f"{_how()}; or name the jars for {version} in a list of your own with {LIST_VARIABLE}"
        )
    return version


def _how() -> str:
    return how_to_install("spark")
