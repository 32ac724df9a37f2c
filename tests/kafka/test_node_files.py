import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.kafka.errors import NodeError
from headrace.kafka.layout import plan
from headrace.kafka.node_files import (
    format_like,
    is_formatted,
    node_properties,
    write_properties,
)
from headrace.properties import parse_properties

META = (
    "#\n#Mon Nov 16\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\nversion=1\ncluster.id=mine\n"
)


def properties_of(node_id, **options):
    layout = plan("c", **options)
    return node_properties(layout, layout.nodes[node_id - 1], "data"), layout


def test_a_combined_node_listens_for_clients_and_controllers():
    properties, layout = properties_of(2, brokers=3)
    node = layout.nodes[1]

    assert properties["process.roles"] == "broker,controller"
    assert properties["node.id"] == "2"
    assert properties["listeners"] == (
        f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}"
    )
    assert properties["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{node.port}"
    assert properties["controller.quorum.voters"].count("@127.0.0.1:") == 3


def test_a_pure_controller_advertises_nothing_and_a_pure_broker_does_not_vote():
    controller, _ = properties_of(4, brokers=3, controllers=1)
    broker, layout = properties_of(1, brokers=3, controllers=1)

    assert controller["process.roles"] == "controller"
    assert "advertised.listeners" not in controller
    assert broker["process.roles"] == "broker"
    assert broker["listeners"] == f"PLAINTEXT://127.0.0.1:{layout.nodes[0].port}"
    port = layout.nodes[3].controller_port
    assert broker["controller.quorum.voters"] == f"4@127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("brokers", "factor", "min_isr"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (4, "3", "2")]
)
def test_topics_have_as_many_replicas_as_there_are_brokers_up_to_three(brokers, factor, min_isr):
    properties, _ = properties_of(1, brokers=brokers)

    assert properties["default.replication.factor"] == factor
    assert properties["min.insync.replicas"] == min_isr
    assert properties["offsets.topic.replication.factor"] == factor
    assert properties["transaction.state.log.min.isr"] == min_isr


def test_topic_defaults_and_settings_reach_the_controllers_too():
    options = {"brokers": 3, "controllers": 3, "settings": {"min.insync.replicas": "1"}}
    broker, _ = properties_of(1, **options)
    controller, _ = properties_of(6, **options)

    for properties in (broker, controller):
        assert properties["default.replication.factor"] == "3"
        assert properties["min.insync.replicas"] == "1"


def test_what_java_would_misread_is_escaped(tmp_path):
    properties = {"a": "x\\y", "b": "  é😀\n#=:", "c d=": "", "#e": "ends here "}

    write_properties(properties, tmp_path / "p")

    assert (tmp_path / "p").read_bytes().decode("ascii") == (
        "a=x\\\\y\nb=\\  \\u00e9\\ud83d\\ude00\\n#=:\nc\\ d\\==\n\\#e=ends here \n"
    )


names = st.text(st.characters(codec="utf-8"), min_size=1)


@given(st.dictionaries(names, st.text(st.characters(codec="utf-8"))))
@example({"!": "\t\x00\x7f\x85\u2028"})
def test_every_text_comes_back_as_it_was_written(properties):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "p"
        write_properties(properties, path)
        text = path.read_bytes().decode("latin-1")  # as Java decodes it

    assert {name: value for name, value, _ in parse_properties(text, "p")} == properties


@pytest.fixture
def formatted(tmp_path):
    directory = tmp_path / "one"
    directory.mkdir()
    (directory / "meta.properties").write_text(META)
    (directory / "bootstrap.checkpoint").write_bytes(b"\x00\xff features")
    return directory


def test_another_node_gets_the_same_files_with_ids_of_its_own(formatted, tmp_path):
    format_like(formatted, tmp_path / "two", 2)

    lines = (tmp_path / "two" / "meta.properties").read_text().splitlines()
    assert [line for line in lines if "directory" not in line] == [
        "#",
        "#Mon Nov 16",
        "node.id=2",
        "version=1",
        "cluster.id=mine",
    ]
    (directory_id,) = (line for line in lines if line.startswith("directory.id="))
    assert len(directory_id) == len("directory.id=") + 22
    assert directory_id != "directory.id=AAAAAAAAAAAAAAAAAAAAAA"
    assert (tmp_path / "two" / "bootstrap.checkpoint").read_bytes() == b"\x00\xff features"
    assert is_formatted(tmp_path / "two")


def test_a_format_of_another_kind_is_not_guessed_at(formatted, tmp_path):
    (formatted / "meta.properties").write_text("version=2\nnode.id=1\n")

    with pytest.raises(NodeError, match=r"does not name node\.id and directory\.id"):
        format_like(formatted, tmp_path / "two", 2)

    assert not is_formatted(tmp_path / "two")
