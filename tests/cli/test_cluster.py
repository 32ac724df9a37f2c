import pytest
from tests.cli.conftest import Run

from headrace.cli.cluster import release_of


def test_the_cluster_is_shown_with_its_broker(run: Run, bootstrap: str, topic: str) -> None:
    (facts,) = run("cluster", "--json").objects
    host, port = bootstrap.split(":")

    assert facts["nodes"] == [{"id": 1, "host": host, "port": int(port), "rack": None}]
    assert facts["controller"] == 1
    assert facts["abilities"]["classic groups"]
    assert facts["partition_count"] >= 3
    assert facts["under_replicated"] == facts["offline"] == []
    assert facts["api_versions"]["1"] == [4, 18]


def test_the_software_is_told(run: Run, request: pytest.FixtureRequest) -> None:
    answer = run("cluster")

    is_headrace = "headrace" in request.node.callspec.id
    words = "headrace (API" if is_headrace else "Apache Kafka or alike (API versions of Kafka 4.2"
    assert f" {words}" in answer.stdout
    assert answer.lines[-1].split()[0] == "1"


@pytest.mark.parametrize(
    ("ranges", "release"),
    [
        ({0: (0, 13), 1: (4, 18), 79: (1, 2)}, "4.2 or later"),
        ({0: (0, 13), 1: (4, 18)}, "4.1 or later"),
        ({0: (0, 12), 1: (4, 17)}, "4.0 or later"),
        ({0: (0, 11), 1: (0, 17)}, "3.9 or later"),
        ({0: (0, 8), 1: (0, 11)}, "2.3 or later"),
        ({0: (0, 5), 1: (0, 6)}, "before 2.3"),
    ],
)
def test_the_release_is_known_by_its_api_versions(
    ranges: dict[int, tuple[int, int]], release: str
) -> None:
    assert release_of(ranges) == release
