import psutil
import pytest

from bench.clients import replay
from bench.drivers.headrace import HeadraceDriver
from bench.errors import BenchError
from bench.requests import write_fetch_requests, write_produce_requests
from bench.topics import admin_of, create_topic, delete_topic
from headrace.client.cluster_questions import is_serving


def test_headrace_runs_while_it_is_measured_and_not_longer(tmp_path):
    with HeadraceDriver().running(tmp_path / "broker", is_durable=False) as broker:
        assert is_serving(("127.0.0.1", broker.port))
        assert broker.cpu_seconds() > 0
        assert broker.rss_bytes() > 1_000_000
        process = psutil.Process(broker.pid)

    assert not process.is_running()


def test_everything_replayed_to_headrace_can_be_walked(tmp_path):
    with HeadraceDriver().running(tmp_path / "broker", is_durable=True) as broker:
        admin = admin_of(broker.port)
        topic_id = create_topic(admin, "walk", 2)
        write_produce_requests(
            tmp_path / "p", topic="walk", partitions=2, value_bytes=100, messages=50, acks=-1
        )
        write_fetch_requests(tmp_path / "f", topic_id=topic_id, partitions=2)
        produced = replay(
            broker.port, produce=tmp_path / "p", connections=4, in_flight=5, count=400
        ).produce
        fetched = replay(broker.port, fetch=tmp_path / "f", fetch_connections=2, seconds=1).fetch
        delete_topic(admin, "walk")

    assert produced is not None
    assert fetched is not None
    assert produced.messages == 400 * 50
    assert (fetched.messages, fetched.bytes) == (produced.messages, produced.bytes)


def test_a_headrace_that_does_not_start_shows_the_end_of_its_log(tmp_path):
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "data").write_bytes(b"a file where the directory should be")

    with (
        pytest.raises(BenchError, match=r"headrace exited with code[\s\S]*broker/data"),
        HeadraceDriver().running(tmp_path / "broker", is_durable=False),
    ):
        pass
