"""The watch over a bus that goes and comes."""

import socket

from tests.pipelines.running.stage import wait_until

from headrace.client.bus import Bus
from headrace.pipelines.running.bus_watch import BusWatch

NEVER_S = 3600.0


def test_a_bus_that_is_away_is_looked_for_more_often_than_one_that_is_there(
    unused_port: int,
) -> None:
    with BusWatch(Bus(f"127.0.0.1:{unused_port}"), interval_s=NEVER_S) as watch:
        assert not watch.look()
        assert watch.unreachable_since is not None

        with socket.create_server(("127.0.0.1", unused_port)):
            wait_until(lambda: watch.unreachable_since is None)


def test_the_watch_ends_at_once_however_rarely_it_looks(unused_port: int) -> None:
    with BusWatch(Bus(f"127.0.0.1:{unused_port}"), interval_s=NEVER_S) as watch:
        pass

    assert watch.unreachable_for_s == 0.0
