import pytest

from headrace.kafka import cluster_names
from headrace.kafka.cluster import Cluster
from headrace.kafka.errors import ClusterError


@pytest.fixture(autouse=True)
def clusters(tmp_path, monkeypatch):
    """Where clusters lie by their names."""
    directory = tmp_path / "clusters"
    monkeypatch.setenv("HEADRACE_KAFKA_DIR", str(directory))
    return directory


def test_a_name_that_is_remembered_leads_to_its_directory(tmp_path):
    Cluster.create(tmp_path / "d", "mine", brokers=1)

    cluster_names.remember("mine", tmp_path / "d")
    cluster_names.remember("mine", tmp_path / "d")

    assert cluster_names.directory_of("mine") == tmp_path / "d"
    assert cluster_names.known_names() == ["mine"]
    cluster_names.forget("mine", tmp_path / "d")
    assert cluster_names.known_names() == []


def test_a_cluster_in_its_usual_place_needs_no_link(clusters):
    Cluster.create(clusters / "mine", "mine", brokers=1)

    cluster_names.remember("mine", clusters / "mine")
    cluster_names.forget("mine", clusters / "mine")

    assert not (clusters / "mine").is_symlink()
    assert cluster_names.directory_of("mine") == clusters / "mine"


def test_a_name_has_one_cluster(tmp_path, clusters):
    Cluster.create(tmp_path / "d", "mine", brokers=1)
    Cluster.create(clusters / "usual", "usual", brokers=1)
    cluster_names.remember("mine", tmp_path / "d")

    for name, place in (("mine", tmp_path / "d"), ("usual", clusters / "usual")):
        with pytest.raises(ClusterError, match=f"called {name} already, in {place}; choose"):
            cluster_names.remember(name, tmp_path / "other")
    cluster_names.forget("mine", tmp_path / "other")

    assert cluster_names.known_names() == ["mine", "usual"]


def test_the_name_of_a_cluster_that_is_gone_is_free(tmp_path, clusters):
    first = Cluster.create(tmp_path / "d", "mine", brokers=1)
    cluster_names.remember("mine", first.directory)
    first.destroy()

    assert cluster_names.known_names() == []
    assert cluster_names.directory_of("mine") == clusters / "mine"
    cluster_names.remember("mine", tmp_path / "e")
    assert (clusters / "mine").readlink() == tmp_path / "e"


def test_what_is_no_cluster_is_not_replaced(tmp_path, clusters):
    (clusters / "mine").mkdir(parents=True)

    with pytest.raises(ClusterError, match="clusters/mine is there already"):
        cluster_names.remember("mine", tmp_path / "d")


def test_commands_are_told_of_a_cluster_by_name_or_else_by_directory(tmp_path, clusters):
    Cluster.create(tmp_path / "a b", "mine", brokers=1)

    assert cluster_names.option_for("default", clusters / "default") == ""
    assert cluster_names.option_for("mine", tmp_path / "a b") == f" --dir '{tmp_path}/a b'"
    cluster_names.remember("mine", tmp_path / "a b")
    assert cluster_names.option_for("mine", tmp_path / "a b") == " --name mine"


@pytest.mark.parametrize("name", ["../link", "{}/link", "", ".", "..", "a b", "link\n"])
def test_what_is_no_name_is_refused_and_no_link_of_it_is_touched(tmp_path, clusters, name):
    clusters.mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    name = name.format(tmp_path)

    for ask in (
        cluster_names.directory_of,
        cluster_names.forget_stale,
        lambda name: cluster_names.forget(name, tmp_path),
        lambda name: cluster_names.remember(name, tmp_path),
        lambda name: cluster_names.check_free(name, tmp_path),
        lambda name: cluster_names.option_for(name, tmp_path),
    ):
        with pytest.raises(ClusterError, match="cannot name a cluster"):
            ask(name)

    assert link.is_symlink()


def test_a_directory_that_no_name_leads_to_is_not_among_the_known_names(clusters):
    Cluster.create(clusters / "a b", "mine", brokers=1)
    Cluster.create(clusters / "other", "other", brokers=1)

    assert cluster_names.known_names() == ["other"]
