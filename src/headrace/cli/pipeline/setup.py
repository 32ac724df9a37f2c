"""`headrace pipeline setup`: fetch and prepare what Spark needs, so that runs start at once."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.terminal import Json, print_facts, print_json

if TYPE_CHECKING:
    from headrace.java.installation import Java

EPILOG = "Example: headrace pipeline setup --no-archive"
_TRAINING_TOPIC = "training"
_TRAINING_RECORDS = 2000


def setup(
    jars: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="HEADRACE_SPARK_JARS",
            help="A jar list of your own: 'group:artifact:version sha256 bytes' lines.",
        ),
    ] = None,
    archive: Annotated[
        bool, typer.Option("--archive/--no-archive", help="Build the class archive.")
    ] = True,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build the archive also where there is one.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Check pyspark and Java, fetch Spark's pinned jars, build the class archive.

    A run fetches what is missing itself; this does it beforehand, so that it works offline. The
    class archive, which only this makes, lets Spark start in about half the time.
    """
    facts = _prepare(jars, has_archive=archive, is_rebuilt=rebuild)
    if is_json:
        print_json(facts)
    else:
        print_facts(facts)


def _prepare(list_file: Path | None, *, has_archive: bool, is_rebuilt: bool) -> dict[str, object]:
    from headrace.java.installation import find_java
    from headrace.pipelines.spark.class_archive import archive_path
    from headrace.pipelines.spark.installation import check_pyspark
    from headrace.pipelines.spark.jars import spark_jars

    started = time.monotonic()
    facts: dict[str, object] = {"pyspark": check_pyspark(list_file)}
    facts["java"] = _java_line(find_java())
    paths = spark_jars(list_file)
    facts["jars"] = f"{len(paths)} in {paths[0].parent} ({time.monotonic() - started:.1f} s)"
    path = archive_path(paths, str(facts["pyspark"]))
    if path.exists() and not is_rebuilt:
        facts["archive"] = f"{path} (was there)"
    elif not has_archive:
        facts["archive"] = "none (--no-archive)"
    else:
        started = time.monotonic()
        _train(path)
        size_mb = path.stat().st_size / 1e6
        facts["archive"] = f"{path} ({size_mb:.0f} MB, {time.monotonic() - started:.1f} s)"
    return facts


def _java_line(java: "Java") -> str:
    from headrace.pipelines.spark.installation import JAVA_VERSIONS

    tried = ", ".join(map(str, JAVA_VERSIONS))
    note = "" if java.version in JAVA_VERSIONS else f" (Spark names {tried}; this may work or not)"
    return f"{java.version} at {java.path}{note}"


def _train(path: Path) -> None:
    """Build the archive against a broker of our own that lives as long as that takes."""
    from headrace.cli.connection import Connection
    from headrace.pipelines.spark.class_archive import build_archive
    from headrace.pipelines.spark.output import default_log_file
    from headrace.testing import running_broker

    log_file = default_log_file().with_name("spark-setup.log")
    with running_broker() as broker:
        producer = Connection(broker.bootstrap, timeout_s=30).producer()
        for number in range(_TRAINING_RECORDS):
            producer.produce(
                _TRAINING_TOPIC,
                b'{"number": %d, "text": "a reading"}' % (number % 10),
                str(number),
                headers={"source": b"training"},
            )
        producer.flush(30)
        build_archive(path, broker.bootstrap, _TRAINING_TOPIC, log_file)
