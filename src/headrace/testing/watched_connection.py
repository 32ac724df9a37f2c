"""A connection that notes every request and lets faults strike it."""

from headrace.broker.connection import ClientConnection
from headrace.broker.dispatch import API_NAMES
from headrace.broker.service import Service
from headrace.protocol.headers import RequestHeader, read_request_header, response_header
from headrace.protocol.produce_shape import ProduceShapes, ShapedRequest
from headrace.protocol.refusals import encode_refusal
from headrace.testing.faults import FaultKind, FaultRule, Faults
from headrace.testing.requests import SeenRequest, SeenRequests


class _NoShapes(ProduceShapes):
    """Recognises no produce request, so that each one takes the way on which it is seen."""

    def match(self, data: bytearray, start: int, end: int) -> ShapedRequest | None:
        return None


class WatchedConnection(ClientConnection):
    """For tests only: slower, and as unreliable as it is told to be."""

    def __init__(self, service: Service, faults: Faults, requests: SeenRequests) -> None:
        super().__init__(service)
        self.shapes = _NoShapes()
        self._faults, self._requests = faults, requests
        self._was_held = False

    def connection_made(self, transport: object) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if self._faults.is_refusing:
            self.close()

    def _serve(self, start: int, end: int) -> None:
        header = read_request_header(self._buffer.data, start, end)
        if self._was_held:
            self._was_held = False
            super()._serve(start, end)
            return
        name = API_NAMES.get(header.api_key, str(header.api_key))
        client_id = (header.client_id or b"").decode(errors="replace")
        self._requests.add(
            SeenRequest(name, header.api_version, client_id, header.correlation_id, self.peer)
        )
        fault = self._faults.strike(header.api_key)
        if fault is None:
            super()._serve(start, end)
        elif fault.kind is FaultKind.FAIL:
            self._refuse(fault, bytes(self._buffer.view[header.body : end]), header)
        elif fault.kind is FaultKind.DELAY:
            self._delay(start, fault.seconds)
        elif fault.kind is FaultKind.DISCONNECT:
            self.close()
        else:
            self._outbox.close()  # what is sent from here on goes nowhere
            super()._serve(start, end)
            self.close()

    def _refuse(self, fault: FaultRule, payload: bytes, header: RequestHeader) -> None:
        body = encode_refusal(header.api_key, header.api_version, payload, fault.code)
        head = response_header(header.api_key, header.api_version, header.correlation_id, len(body))
        self.send(head, body)

    def _delay(self, start: int, seconds: float) -> None:
        """Put the request back and stop reading for a while."""
        self._buffer.start = start - 4  # its length comes before it
        self.hold()
        self._service.loop.call_later(seconds, self._end_delay)

    def _end_delay(self) -> None:
        self._was_held = True
        self.go_on()
