"""A Spark session that has the Kafka connector and Delta, and none of Spark's traps."""

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.java.installation import find_java
from headrace.pipelines.spark.faults import sentence_of
from headrace.pipelines.spark.installation import check_pyspark
from headrace.pipelines.spark.output import (
    STOP_TIMEOUT_S,
    default_log_file,
    end_java,
    launch_java,
    log_py4j,
)
from headrace.pipelines.spark.settings import LOCAL_MASTER, LOG_FILE, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PYTHON_SETTING = "spark.pyspark.python"
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# The launcher is a Java of its own that lives for half a second.
_LAUNCHER_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def open_session(
    name: str = "headrace",
    *,
    master: str = LOCAL_MASTER,
    conf: Mapping[str, str] | None = None,
    is_quick: bool = False,
    log_file: Path | None = None,
) -> "SparkSession":
    """Open the session of this process; one that is open already is returned as it is.

        spark = open_session("notebook")
        readings = read_topic(spark, "readings", bootstrap="127.0.0.1:9092")
        close_session(spark)

    `is_quick` starts sooner and computes slower. Java's output goes to `log_file`. Fetches what is
    missing of the jars. Raises SparkError, JarError or JavaNotFoundError, each one sentence with
    the fix. pyspark sets a handler for SIGINT here; set your own afterwards.
    """
    check_pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    log_file = (log_file or default_log_file()).absolute()
    settings = session_settings(name, master, conf or {}, log_file=log_file, is_quick=is_quick)
    log_py4j(log_file)
    try:
        return _started(settings, log_file)
    except HeadraceError:
        raise
    except Exception as error:
        raise sentence_of(error, log_file) from error


def close_session(spark: "SparkSession", timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Stop the session and end its Java process, also when that is dead already."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that Java is gone already
            spark.stop()
    except Exception:  # whatever py4j makes of a Java that is gone
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SparkContext._active_spark_context = None
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None
        end_java(gateway, timeout_s)


def log_file_of(spark: "SparkSession") -> Path | None:
    """The file this session's Java writes to, if `open_session` opened it."""
    path = spark.conf.get(LOG_FILE, None)
    return Path(path) if path else None


def _started(settings: Mapping[str, str], log_file: Path) -> "SparkSession":
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    is_local = settings["spark.master"].startswith("local")
    # Not the `python3` on the PATH: it may be another version, or have no pyarrow. A cluster may
    # have its Python elsewhere, and then the user says where.
    python = settings.get(_PYTHON_SETTING) or (
        sys.executable if is_local else os.environ.get("PYSPARK_PYTHON") or sys.executable
    )
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark_conf = SparkConf()
    for key, value in settings.items():
        spark_conf.set(key, value)
    gateway = None
    if SparkContext._gateway is None:
        environment: dict[str, str | None] = {
            "JAVA_HOME": str(find_java().path.resolve().parents[1]),
            # Another Spark on this machine would be started in place of pyspark's own.
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            # A server of Spark Connect has no connector; Spark refuses to have it and a master.
            "SPARK_REMOTE": None,
            "SPARK_LAUNCHER_OPTS": _LAUNCHER_FLAGS,
            # `python -m pyspark.daemon` would put the working directory before the standard
            # library: a grp.py or json.py lying there would break every worker.
            "PYTHONSAFEPATH": "1",
        }
        if address := "127.0.0.1" if is_local else settings.get("spark.driver.host"):
            environment["SPARK_LOCAL_IP"] = address
        gateway = launch_java(spark_conf, log_file, environment)
    context = SparkContext(conf=spark_conf, gateway=gateway)
    silence_query_loggers()
    # Not the builder, which would follow SPARK_REMOTE.
    return SparkSession(context)


def silence_query_loggers() -> None:
    """Keep pyspark from printing each faulty query as a page of JSON beside raising it."""
    from pyspark.logger import PySparkLogger

    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
