"""Settings all tests share, and what is skipped where something optional is missing."""

import os
import signal
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from headrace.java.errors import JarError, JavaNotFoundError
from headrace.java.installation import find_java
from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.installation import check_pyspark
from headrace.pipelines.spark.jars import expected_jars
from headrace.pipelines.spark.session import close_session, open_session
from headrace.testing import janitor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No test times performance: a slow machine is not a failure.
settings.register_profile("headrace", deadline=None, print_blob=True)
settings.load_profile("headrace")

# For the tests of our own pytest plugin; what records what clients can do; what shares tests out.
pytest_plugins = ["pytester", "tests.features", "tests.side_by_side"]


# All processes of a run inherit it: those of a run that was killed are found by it and ended.
_RUN_VARIABLE = "PYTEST_HEADRACE_RUN"
_run = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts us with `&` has us ignore Ctrl-C, and all that we start inherits it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[_RUN_VARIABLE] = uuid.uuid4().hex
    mark = f"{_RUN_VARIABLE}={os.environ[_RUN_VARIABLE]}"
    config.stash[_run] = janitor.entrust("environment", mark)


def pytest_unconfigure(config: pytest.Config) -> None:
    janitor.take_back(config.stash[_run])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs Java or Spark where there is none, with the sentence that says the fix."""
    for marker, why_absent in (("java", _why_no_java), ("spark", _why_no_spark)):
        needy = [item for item in items if item.get_closest_marker(marker)]
        if needy and (reason := why_absent()):
            for item in needy:
                item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_java() -> str | None:
    try:
        find_java()
    except JavaNotFoundError as error:
        return str(error)
    return None


def _why_no_spark() -> str | None:
    """Tests never download: `make spark` does, and says so."""
    try:
        find_java()
        check_pyspark()
        missing = [path.name for path in expected_jars() if not path.exists()]
    except (JavaNotFoundError, SparkError, JarError) as error:
        return str(error)
    return f"Spark's jars are not here ({missing[0]}): run `make spark`" if missing else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One quick session for all tests of a run: a Java process costs seconds.

    What Java says is in `spark0/spark.log` of pytest's directory.
    """
    directory = tmp_path_factory.mktemp("spark")
    session = open_session(
        "headrace-tests",
        master="local[2,4]",
        is_quick=True,
        log_file=directory / "spark.log",
        conf={"spark.sql.warehouse.dir": str(directory / "warehouse")},
    )
    yield session
    close_session(session)
