import json
import socket
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.kafka import layout as layouts
from headrace.kafka.errors import ClusterError
from headrace.kafka.layout import BROKER, CONTROLLER, choose_ports, plan, random_cluster_id


def roles_of(layout):
    return [sorted(node.roles) for node in layout.nodes]


def test_a_cluster_id_cannot_be_taken_for_an_option(monkeypatch):
    ids = iter([UUID(bytes=b"\xfb" * 16), UUID(bytes=b"\x00" * 16)])
    monkeypatch.setattr(layouts.uuid, "uuid4", lambda: next(ids))

    assert random_cluster_id() == "A" * 22


@pytest.mark.parametrize(
    ("brokers", "roles"),
    [
        (1, [[BROKER, CONTROLLER]]),
        (2, [[BROKER, CONTROLLER], [BROKER]]),
        (3, [[BROKER, CONTROLLER]] * 3),
        (5, [[BROKER, CONTROLLER]] * 3 + [[BROKER]] * 2),
    ],
)
def test_without_controllers_of_their_own_one_or_three_brokers_vote(brokers, roles):
    assert roles_of(plan("c", brokers=brokers)) == roles


def test_controllers_of_their_own_come_after_the_brokers():
    layout = plan("c", brokers=3, controllers=3)

    assert roles_of(layout) == [[BROKER]] * 3 + [[CONTROLLER]] * 3
    assert [node.id for node in layout.nodes] == [1, 2, 3, 4, 5, 6]
    assert (layout.broker_count, layout.controller_count) == (3, 3)


def test_no_port_is_given_twice_and_they_begin_where_asked():
    first = choose_ports(6)[0]

    layout = plan("c", brokers=3, controllers=3, port=first)

    assert [port for node in layout.nodes for port in node.ports] == [*range(first, first + 6)]


def test_ports_lie_where_no_outgoing_connection_takes_them():
    assert all(20_000 <= port < 32_000 for port in choose_ports(9))


def test_a_port_that_is_taken_is_named():
    first = choose_ports(3)[0]
    with (
        socket.create_server(("127.0.0.1", first + 1)),
        pytest.raises(ClusterError, match=f"port {first + 1} is taken"),
    ):
        plan("c", brokers=1, controllers=2, port=first)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"brokers": 0}, "0 brokers: a cluster needs at least one"),
        ({"brokers": 1, "controllers": -1}, "-1 controllers"),
        ({"brokers": 15, "controllers": 6}, "21 nodes are too many"),
        ({"brokers": 1, "port": 65_535}, "2 ports in a row are needed"),
        ({"brokers": 1, "settings": {"node.id": "7"}}, "node.id is chosen by headrace"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ClusterError, match=sentence):
        plan("c", **options)


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "x" * 101])
def test_a_name_that_is_no_directory_is_refused(name):
    with pytest.raises(ClusterError, match="cannot name a cluster"):
        plan(name, brokers=1)


def test_what_is_written_is_read_again(tmp_path):
    layout = plan("c", brokers=3, controllers=1, settings={"num.partitions": "4"})

    layouts.write(layout, tmp_path)

    assert layouts.read(tmp_path) == layout
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_a_file_with_a_path_for_a_name_is_refused(tmp_path):
    layouts.write(replace(plan("c", brokers=1), name="../c"), tmp_path)

    with pytest.raises(ClusterError, match=r"is not what .* wrote: '\.\./c' cannot name a cluster"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": [{"id": 1}]}', '{"nodes": []}'])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path, text):
    (tmp_path / "cluster.json").write_text(text)

    with pytest.raises(ClusterError, match=r"cluster\.json is not what"):
        layouts.read(tmp_path)


def test_the_file_can_be_read_by_people(tmp_path):
    layouts.write(plan("mine", brokers=1), tmp_path)

    assert json.loads((tmp_path / "cluster.json").read_text())["name"] == "mine"
