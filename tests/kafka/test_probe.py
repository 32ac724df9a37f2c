import socket
import struct
import threading

import pytest

from headrace.kafka.probe import answers_metadata


def answer_once(payload: bytes):
    """Listen, read one frame, answer with `payload` and close."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener, listener.accept()[0] as connection, connection.makefile("rb") as requests:
            (length,) = struct.unpack(">i", requests.read(4))
            requests.read(length)
            connection.sendall(payload)

    thread = threading.Thread(target=serve)
    thread.start()
    return listener.getsockname()[1], thread


@pytest.mark.parametrize(
    ("payload", "is_ready"),
    [
        (struct.pack(">iii", 8, 1, 1), True),
        (struct.pack(">iii", 8, 1, 0), False),  # no broker yet
        (struct.pack(">i", 8), False),  # cut short
        (struct.pack(">iii", -1, 1, 1), False),
        (b"HTTP/1.1 400 Bad Request\r\n", False),
        (b"", False),
    ],
)
def test_only_an_answer_with_a_broker_in_it_is_readiness(payload, is_ready):
    port, thread = answer_once(payload)

    assert answers_metadata("127.0.0.1", port) is is_ready

    thread.join()


def test_a_closed_port_is_not_ready():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert not answers_metadata("127.0.0.1", port)
