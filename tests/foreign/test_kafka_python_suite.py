"""kafka-python's own integration tests, as its authors ship them, on both engines.

Their source distribution comes from the package index like any dependency; it has the tests
but not the service that starts brokers for them. A stand-in of ours takes its place: the
broker runs already.
"""

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from headrace.kafka.node import KafkaNode
from headrace.testing import broker_process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_FOLDER, _SUITE = "test/integration", "test.integration"
# They need a broker that they can start with certificates or passwords.
_LEFT_OUT = ("test_ssl_integration.py", "test_sasl_integration.py")
_SERVICE = '''"""Brokers are started by headrace's tests: here they only have an address."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def stop(self):
        pass

    def dump_logs(self):
        pass


class SpawnedService:
    def __init__(self, *arguments):
        raise RuntimeError("this suite is run on a broker that runs already")
'''
# What their tests take for granted of a broker.
_SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_ADMIN, _PRODUCER = f"{_SUITE}.test_admin_integration", f"{_SUITE}.test_producer_integration"
# It puts partitions on broker 0, and ours is broker 1 on either engine.
_FAILS_EVERYWHERE = {f"{_ADMIN}::test_create_partitions"}
# APIs that headrace does not have yet: ACLs and transactions.
_NOT_YET = {
    f"{_ADMIN}::test_create_describe_delete_acls",
    f"{_PRODUCER}::test_transactional_producer_messages",
    f"{_PRODUCER}::test_transactional_producer_offsets",
}


class Outcomes(NamedTuple):
    """The names of their tests, by what became of them."""

    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]
    output: str


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution of the kafka-python installed here."""
    directory = tmp_path_factory.mktemp("kafka-python")
    version = importlib.metadata.version("kafka-python")
    archive_path = download(version, directory)
    if archive_path is None:
        pytest.skip(f"the source distribution of kafka-python {version} is not to be had")
    with tarfile.open(archive_path) as archive:
        archive.extractall(directory, filter="data")
    root = directory / archive_path.name.removesuffix(".tar.gz")
    # A regular package: a folder without this file yields to the `test` of Python itself.
    (root / "test" / "__init__.py").touch()
    (root / "test" / "service.py").write_text(_SERVICE)
    # What is installed is tested, not what lies here.
    (root / "kafka").rename(root / "kafka-unused")
    return root


def download(version: str, directory: Path) -> Path | None:
    """Fetch the source distribution as pip fetches any; None when there is none to be had."""
    options = ["--no-binary", "kafka-python", "--no-deps", "--retries", "1", "--timeout", "30"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(directory)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([*command, f"kafka-python=={version}"], capture_output=True, timeout=300)
    return next(directory.glob("kafka_python-*.tar.gz"), None)


def run(suite: Path, bootstrap: str, report: Path) -> Outcomes:
    """Run their tests in a process of its own and read what became of each."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment |= {
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_VERSION": "4.3.1",
        "KAFKA_ROOT": str(suite),
        "PYTHONPATH": str(suite),
    }
    ignored = [f"--ignore={_FOLDER}/{name}" for name in _LEFT_OUT]
    command = [sys.executable, "-m", "pytest", _FOLDER, *ignored, "-p", "no:cacheprovider", "-q"]
    # Their own limit ends the whole run; this one ends the test that hangs.
    limits = ["--timeout=40", "--timeout-method=signal"]
    answer = subprocess.run(
        [*command, "--tb=short", "--show-capture=no", *limits, f"--junitxml={report}"],
        cwd=suite,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert report.exists(), answer.stdout + answer.stderr
    return read(report, answer.stdout)


def read(report: Path, output: str) -> Outcomes:
    """Sort the cases of a junit report."""
    by_kind: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        kind = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        by_kind[kind].add(f"{case.get('classname')}::{case.get('name')}")
    return Outcomes(**{kind: frozenset(names) for kind, names in by_kind.items()}, output=output)


def test_headrace_fails_only_where_kafka_fails_or_where_it_is_not_done_yet(
    suite: Path, tmp_path: Path
) -> None:
    settings = {name.replace(".", "_"): value for name, value in _SETTINGS.items()}
    with broker_process(tmp_path / "data", **settings) as broker:
        outcomes = run(suite, broker.bootstrap, tmp_path / "report.xml")

    assert outcomes.failed == _FAILS_EVERYWHERE | _NOT_YET, outcomes.output
    assert len(outcomes.skipped) == 1
    assert len(outcomes.passed) >= 51


@pytest.mark.java
def test_kafka_fails_only_where_a_broker_0_is_wanted(suite: Path, tmp_path: Path) -> None:
    with KafkaNode(tmp_path / "kafka", settings=_SETTINGS | _AUTHORIZER) as node:
        outcomes = run(suite, node.bootstrap, tmp_path / "report.xml")

    assert outcomes.failed == _FAILS_EVERYWHERE, outcomes.output
    assert len(outcomes.skipped) == 1
    assert len(outcomes.passed) >= 54
