"""One connection to one broker, for what librdkafka has no call for: kio's types in and out.

It logs on as its Bus says. Whatever goes wrong is a BusError. Importing this imports kio, which
takes longer than a quick command does: `Admin` does so when it is asked.
"""

import contextlib
import io
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i32

from headrace.client.addresses import Address
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.log_on import authenticate, secured
from headrace.patience import Patience

T = TypeVar("T")

_MAX_ANSWER_BYTES = 256 * 1024 * 1024
_PART_BYTES = 1024 * 1024
# A paused node takes connections and never answers: the next one is asked soon, then longer.
_FIRST_SHARE_S = 1.0


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
    """One question at a time. Owned by one thread."""

    def __init__(self, address: Address, bus: Bus | None = None, timeout_s: float = 30) -> None:
        """`bus` says how to log on; without one there is no log-on. BusError when it fails."""
        self._where, self._timeout_s = f"{address[0]}:{address[1]}", timeout_s
        with contextlib.ExitStack() as stack, self._failures():
            self._socket = socket.create_connection(address, timeout_s)
            stack.callback(self._socket.close)
            if bus is not None:
                self._socket = secured(self._socket, address[0], bus)
                stack.callback(self._socket.close)
            if bus is not None:
                self._log_on(bus)
            stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """Send `request` and return the answer of its version; the timeout is for both."""
        deadline = time.monotonic() + self._timeout_s
        with self._failures(), contextlib.ExitStack() as stack:
            # An answer that comes too late would be taken for that to the next question.
            stack.callback(self._socket.close)
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(encode_request(request))
            (size,) = struct.unpack(">i", self._read(4, deadline))
            if not 0 < size <= _MAX_ANSWER_BYTES:
                raise ConnectionError(f"an answer of {size} bytes is none of Kafka's")
            answer = self._read(size, deadline)
            schema = load_response_schema(request.__api_key__, request.__version__)
            _header, start = entity_reader(schema.__header_schema__)(answer, 0)
            response, _ = entity_reader(schema)(answer, start)
            stack.pop_all()
            return response

    def _read(self, size: int, deadline: float) -> bytes:
        """So many bytes; not even a broker that sends one now and then gets more than its time."""
        data = bytearray()
        while len(data) < size:
            if (left_s := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            if not (part := self._socket.recv(min(size - len(data), _PART_BYTES))):
                within = " within an answer" if data else ""
                raise ConnectionError(f"the broker closed the connection{within}")
            data += part
        return bytes(data)

    def _log_on(self, bus: Bus) -> None:
        mechanism = ""

        def shake_hands(name: str) -> None:
            nonlocal mechanism
            mechanism = name
            answer = self.ask(SaslHandshakeRequest(mechanism=name))
            if answer.error_code is not ErrorCode.none:
                known = ", ".join(answer.mechanisms) or "none"
                raise self._refused(mechanism, f"it takes {known}")

        def exchange(said: bytes) -> bytes:
            answer = self.ask(SaslAuthenticateRequest(auth_bytes=said))
            if answer.error_code is not ErrorCode.none:
                raise self._refused(mechanism, answer.error_message or answer.error_code.name)
            return bytes(answer.auth_bytes)

        try:
            authenticate(bus, shake_hands, exchange)
        except (ValueError, KeyError) as error:
            raise self._refused(mechanism, f"its answer cannot be trusted ({error})") from error

    def _refused(self, mechanism: str, why: str) -> BusError:
        sentence = f"{self._where}: the log-on by {mechanism} failed: {why}"
        return BusError(None, sentence, is_passing=False)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            silence = f"{self._where} gave no answer within {self._timeout_s:g} s"
            raise BusError(None, silence, is_passing=True, is_timeout=True) from error
        except OSError as error:
            # A stranger's certificate stays one; a connection that ends may be better next time.
            is_final = isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)
            sentence = f"{self._where}: {error.strerror or error}"
            raise BusError(None, sentence, is_passing=not is_final) from error
        except (SerialError, ValueError) as error:
            sentence = f"{self._where}: the answer is none of Kafka's ({error})"
            raise BusError(None, sentence, is_passing=False) from error


def ask_any(bus: Bus, question: Callable[[WireConnection], T | None], timeout_s: float) -> T:
    """Put `question` to one broker after the other until one has an answer that is not None."""
    patience, share_s, reason = Patience(timeout_s), _FIRST_SHARE_S, "no answer"
    while True:
        for address in bus.addresses:
            if patience.is_over:
                sentence = f"{bus.bootstrap} gave no answer within {timeout_s:g} s: {reason}"
                raise BusError(None, sentence, is_passing=True, is_timeout=True)
            try:
                share = min(share_s, patience.left_s)
                with WireConnection(address, bus, share) as connection:
                    if (answer := question(connection)) is not None:
                        return answer
            except BusError as error:
                if not error.is_passing:
                    raise
                reason = str(error)
        share_s *= 2
        patience.pause()
