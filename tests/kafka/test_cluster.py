import fcntl
import os
import socket

import pytest

from headrace.errors import EngineError
from headrace.file_lock import FileLock
from headrace.java.errors import JarError
from headrace.kafka import cluster as cluster_module
from headrace.kafka.cluster import Cluster, UpProgress, running_cluster
from headrace.kafka.errors import ClusterError, NodeError
from headrace.kafka.layout import choose_ports


@pytest.fixture
def without_java(monkeypatch):
    """As if Java and the jars were there, and a node that starts were a failure."""
    monkeypatch.setattr(cluster_module, "find_java", lambda: None)
    monkeypatch.setattr(cluster_module, "kafka_jars", lambda _version, **_: [])


def test_a_cluster_that_was_made_can_be_opened_again(tmp_path):
    made = Cluster.create(tmp_path / "c", "mine", brokers=3, settings={"num.partitions": "4"})

    opened = Cluster.open(tmp_path / "c")

    assert (opened.name, opened.version, opened.bootstrap) == ("mine", "4.3.1", made.bootstrap)
    assert opened.layout == made.layout
    assert len(opened.bootstrap.split(",")) == 3
    assert [node.id for node in opened.controllers] == [1, 2, 3]
    assert {node.state for node in opened.nodes} == {"stopped"}
    assert not opened.is_running


def test_a_pure_controller_has_no_address_for_clients(tmp_path):
    cluster = Cluster.create(tmp_path, brokers=1, controllers=1)

    assert (cluster.node(2).port, cluster.node(2).bootstrap) == (None, "")
    assert cluster.bootstrap == cluster.node(1).bootstrap


def test_there_is_one_cluster_a_directory_and_it_is_not_put_beside_other_files(tmp_path):
    Cluster.create(tmp_path / "c", brokers=1)
    (tmp_path / "file").touch()

    with pytest.raises(ClusterError, match=r"there is a cluster in .* already"):
        Cluster.create(tmp_path / "c", brokers=1)
    with pytest.raises(ClusterError, match="holds other files"):
        Cluster.create(tmp_path, brokers=1)
    with pytest.raises(ClusterError, match=r"cannot write .*: Not a directory"):
        Cluster.create(tmp_path / "file" / "c", brokers=1)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(ClusterError, match="there is no cluster in"):
        Cluster.open(tmp_path)
    with pytest.raises(EngineError, match=r"Kafka 1\.0 is not one of the versions"):
        Cluster.create(tmp_path / "c", brokers=1, version="1.0")
    with pytest.raises(ClusterError, match="has no node 4; its nodes are 1, 2, 3"):
        Cluster.create(tmp_path / "c", brokers=3).node(4)


def test_destroying_removes_what_is_the_clusters_and_nothing_else(tmp_path):
    cluster = Cluster.create(tmp_path / "c", brokers=1)
    cluster.node(1).data_directory.mkdir(parents=True)
    (tmp_path / "c" / "notes.txt").write_text("mine")

    cluster.destroy()

    assert [path.name for path in (tmp_path / "c").iterdir()] == ["notes.txt"]


def test_two_commands_do_not_change_a_cluster_at_once(tmp_path, without_java):
    cluster = Cluster.create(tmp_path, brokers=1)
    lock = os.open(tmp_path / ".cluster.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)

    for change in (cluster.up, cluster.down, cluster.destroy):
        with pytest.raises(ClusterError, match="another command is at work on cluster default"):
            change()
    os.close(lock)


def removed_by_another(directory):
    """A cluster as a command has opened it, when another has destroyed it since."""
    cluster = Cluster.create(directory, "mine", brokers=1)
    Cluster.open(directory).destroy()
    return cluster


def start_one(cluster):
    cluster.node(1).start()


def in_use(cluster):
    with cluster.in_use():
        pass


@pytest.mark.parametrize("act", [Cluster.up, Cluster.down, Cluster.destroy, start_one, in_use])
@pytest.mark.parametrize("is_directory_left", [True, False])
def test_nothing_is_done_to_a_cluster_that_another_command_has_removed(
    tmp_path, without_java, act, is_directory_left
):
    cluster = removed_by_another(tmp_path / "c")
    if is_directory_left:
        cluster.directory.mkdir()

    with pytest.raises(ClusterError, match=r"cluster mine in .* was removed by another command"):
        act(cluster)

    assert cluster.directory.exists() == is_directory_left
    assert not is_directory_left or [*cluster.directory.iterdir()] == []


def test_a_new_cluster_in_the_place_of_a_removed_one_is_not_taken_for_it(tmp_path, without_java):
    cluster = removed_by_another(tmp_path / "c")
    Cluster.create(tmp_path / "c", "mine", brokers=1)

    with pytest.raises(ClusterError, match="was removed by another command"):
        cluster.node(1).start()

    assert not cluster.node(1).directory.exists()


def test_a_cluster_that_is_removed_while_a_command_waits_for_its_lock_is_gone_for_it(
    tmp_path, without_java, monkeypatch
):
    cluster = Cluster.create(tmp_path / "c", "mine", brokers=1)
    (tmp_path / "c" / "notes.txt").write_text("mine")  # the directory stays

    def destroy_first(path, **options):
        monkeypatch.setattr(cluster_module, "FileLock", FileLock)
        Cluster.open(tmp_path / "c").destroy()
        return FileLock(path, **options)

    monkeypatch.setattr(cluster_module, "FileLock", destroy_first)

    with pytest.raises(ClusterError, match="was removed by another command"):
        cluster.up()

    assert [path.name for path in (tmp_path / "c").iterdir()] == ["notes.txt"]


def test_a_cluster_in_use_is_not_changed_as_a_whole_but_its_nodes_may_start(tmp_path, without_java):
    cluster = Cluster.create(tmp_path, brokers=1)

    with Cluster.open(tmp_path).in_use(), cluster.in_use():
        for change in (Cluster.up, Cluster.down, Cluster.destroy):
            with pytest.raises(ClusterError, match="another command is at work on cluster default"):
                change(Cluster.open(tmp_path))

    cluster.destroy()


def test_of_two_commands_that_make_a_cluster_one_does(tmp_path, monkeypatch):
    """Both have seen an empty directory; only one layout may be written into it."""
    write, refusals = cluster_module.layouts.write, list[str]()

    def write_while_another_tries(layout, directory):
        with pytest.raises(ClusterError) as caught:
            Cluster.create(tmp_path / "c", "second", brokers=1)
        refusals.append(str(caught.value))
        write(layout, directory)

    monkeypatch.setattr(cluster_module.layouts, "write", write_while_another_tries)
    Cluster.create(tmp_path / "c", "first", brokers=1)

    assert refusals == [f"another command is making a cluster in {tmp_path / 'c'}; wait for it"]
    assert Cluster.open(tmp_path / "c").name == "first"


def test_a_directory_that_java_cannot_open_is_refused(tmp_path):
    with pytest.raises(ClusterError, match="is not UTF-8, and Java would not find it"):
        Cluster.create(tmp_path / os.fsdecode(b"d\xe4t\xe4"), brokers=1)

    assert [*tmp_path.iterdir()] == []


@pytest.mark.java
@pytest.mark.timeout(1800)
def test_a_path_of_any_letters_holds_all_that_its_cluster_writes(tmp_path, monkeypatch):
    # Also where the locale knows ASCII only, as in many containers.
    monkeypatch.setenv("LC_ALL", "POSIX")
    directory = tmp_path / " dätä,日本 😀 #=:$%i\\u" / "c"

    with running_cluster(directory, brokers=1) as cluster:
        node = cluster.node(1)
        cluster.down()
        cluster.up()

        assert (node.data_directory / "__cluster_metadata-0").is_dir()
        assert b"Kafka Server started" in node.log_file.read_bytes()
        assert {path.name for path in node.directory.iterdir()} >= {"data", "kafka.log"}
    assert [path.name for path in tmp_path.iterdir()] == [directory.parent.name]
    assert [*directory.parent.iterdir()] == []


def test_a_taken_port_is_found_before_java_starts(tmp_path, without_java):
    first = choose_ports(2)[0]
    cluster = Cluster.create(tmp_path, brokers=1, port=first)

    with (
        socket.create_server(("127.0.0.1", first + 1)),
        pytest.raises(ClusterError, match=f"port {first + 1} of node 1 is taken"),
    ):
        cluster.up()

    assert not cluster.node(1).directory.exists()


def test_what_was_prepared_is_given_up_when_another_node_cannot_be(tmp_path, without_java):
    cluster = Cluster.create(tmp_path, brokers=2)
    for node in cluster.nodes:
        node.data_directory.mkdir(parents=True)
        (node.data_directory / "meta.properties").touch()
    other = Cluster.open(tmp_path).node(2)
    other.prepare()

    with pytest.raises(NodeError, match=r"another Kafka node runs in .*node-2"):
        cluster.up()

    other.release()
    for node in cluster.nodes:  # nobody holds them any more
        node.prepare()
        node.release()


def test_without_jars_nothing_is_begun(tmp_path, monkeypatch):
    def fail(_version, **_):
        raise JarError("no network")

    monkeypatch.setattr(cluster_module, "find_java", lambda: None)
    monkeypatch.setattr(cluster_module, "kafka_jars", fail)
    cluster = Cluster.create(tmp_path, brokers=1)

    with pytest.raises(JarError, match="no network"):
        cluster.up()

    assert not cluster.node(1).directory.exists()


@pytest.mark.java
def test_a_bad_setting_is_named_and_nothing_is_left(tmp_path):
    settings = {"log.segment.bytes": "few"}

    with (
        pytest.raises(NodeError, match=r"format .*: Invalid value few .*log\.segment\.bytes"),
        running_cluster(tmp_path / "c", brokers=1, settings=settings),
    ):
        pass

    assert not (tmp_path / "c").exists()


def collected(told):
    """The last count of each step."""
    return {step: (done, total) for step, done, total in told if step != "jars"}


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_controllers_of_their_own_and_two_clusters_side_by_side(tmp_path):
    told = list[UpProgress]()
    with running_cluster(tmp_path / "one", "one", brokers=1) as one:
        two = Cluster.create(tmp_path / "two", "two", brokers=2, controllers=1, is_tied=True)
        try:
            two.up(240, told.append)

            assert collected(told) == {"format": (3, 3), "start": (3, 3), "wait": (2, 2)}
            assert not {*one.bootstrap.split(",")} & {*two.bootstrap.split(",")}
            assert {node.state for node in (*one.nodes, *two.nodes)} == {"running"}
            two.node(3).kill()
            assert {node.state for node in one.nodes} == {"running"}
        finally:
            two.destroy()
        assert {node.state for node in one.nodes} == {"running"}
