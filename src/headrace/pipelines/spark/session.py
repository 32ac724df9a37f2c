"""A Spark session that has the Kafka connector and none of Spark's traps.

The settings with a reason stand in `settings_for`. What the user gives by `conf` wins.
"""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.java.installation import find_java
from headrace.java.jars import fetch_jars, read_jar_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[2,4]"  # the second number lets a task be tried again; local[2] never does
JAR_LIST = "spark-4.2.0-jars.txt"


def settings_for(master: str, *, is_quick: bool = False) -> dict[str, str]:
    jars = fetch_jars(read_jar_list("headrace.pipelines.spark", JAR_LIST))
    return {
        "spark.master": master,
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        if is_quick
        else "",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def open_session(
    name: str,
    *,
    master: str = LOCAL_MASTER,
    conf: Mapping[str, str] | None = None,
    is_quick: bool = False,
) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().path.resolve().parents[1])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    for key, value in {**settings_for(master, is_quick=is_quick), **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
