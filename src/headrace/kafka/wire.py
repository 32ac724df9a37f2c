"""Ask a broker what librdkafka cannot: kio's types in, kio's types out, over a plain socket.

For brokers without TLS and SASL. Importing this costs half a second, as kio's types do.
"""

import io
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

from headrace.client.addresses import Address
from headrace.errors import EngineError

T = TypeVar("T")

_MAX_ANSWER_BYTES = 256 * 1024 * 1024
# A paused node takes connections and never answers: the next one is asked soon, then longer.
_FIRST_PATIENCE_S = 1.0
_PAUSE_S = 0.1


def encode_request(entity: Any, correlation_id: int = 0, client_id: str = "headrace") -> bytes:
    """Return `entity` as one frame: length prefix, header, body."""
    header = entity.__header_schema__(
        request_api_key=entity.__api_key__,
        request_api_version=entity.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    body = io.BytesIO()
    entity_writer(type(header))(body, header)
    entity_writer(type(entity))(body, entity)
    return struct.pack(">i", body.tell()) + body.getvalue()


class WireConnection:
    """One connection to one broker; one question at a time."""

    def __init__(self, address: Address, timeout_s: float = 30) -> None:
        self._connection = socket.create_connection(address, timeout_s)
        self._answers = self._connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._answers.close()
        self._connection.close()

    def ask(self, request: Any) -> Any:
        """Send `request` and return the answer of its version; OSError when none comes."""
        self._connection.sendall(encode_request(request))
        prefix = self._answers.read(4)
        if len(prefix) < 4:
            raise ConnectionError("the broker closed the connection")
        (size,) = struct.unpack(">i", prefix)
        if not 0 < size <= _MAX_ANSWER_BYTES:
            raise ConnectionError(f"an answer of {size} bytes is none of Kafka's")
        answer = self._answers.read(size)
        if len(answer) < size:
            raise ConnectionError("the broker closed the connection within an answer")
        schema = load_response_schema(request.__api_key__, request.__version__)
        _header, start = entity_reader(schema.__header_schema__)(answer, 0)
        response, _ = entity_reader(schema)(answer, start)
        return response


def ask(address: Address, request: Any, timeout_s: float = 30) -> Any:
    """Put one request to one broker; OSError when it does not answer in time."""
    with WireConnection(address, timeout_s) as connection:
        return connection.ask(request)


def ask_any(
    addresses: Iterable[Address], question: Callable[[WireConnection], T | None], timeout_s: float
) -> T:
    """Put `question` to one broker after the other until one has an answer that is not None."""
    addresses = [*addresses]
    deadline, patience_s, reason = time.monotonic() + timeout_s, _FIRST_PATIENCE_S, "no answer"
    while True:
        for address in addresses:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                names = ",".join(f"{host}:{port}" for host, port in addresses)
                raise EngineError(f"{names} gave no answer within {timeout_s:g} s: {reason}")
            try:
                with WireConnection(address, min(patience_s, left_s)) as connection:
                    if (answer := question(connection)) is not None:
                        return answer
            except OSError as error:
                reason = error.strerror or str(error)
        patience_s *= 2
        time.sleep(min(_PAUSE_S, max(0, deadline - time.monotonic())))
