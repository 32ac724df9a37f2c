import socket

import pytest

from headrace.broker.pacing import is_loopback, skip_pacing


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        (("127.0.0.1", 9092), True),
        (("127.8.9.10", 1), True),
        (("::1", 9092, 0, 0), True),
        (("192.0.2.7", 9092), False),
        (("0.0.0.0", 9092), False),
        ("", False),
        (None, False),
    ],
)
def test_only_this_machines_addresses_are_loopback(address: object, is_own: bool) -> None:
    assert is_loopback(address) is is_own


def test_connections_accepted_by_a_loopback_listener_are_not_paced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        skip_pacing(listener, listener.getsockname())
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                name = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)

    assert name.rstrip(b"\0") == b"reno"
