"""Ask a broker for Metadata: the question every client asks first, so its answer is readiness."""

import socket
import struct

_METADATA = 3
_VERSION = 1  # the first whose empty topic list means "no topics"
_REQUEST = struct.pack(">hhih8si", _METADATA, _VERSION, 1, 8, b"headrace", 0)
_MAX_ANSWER_BYTES = 1024 * 1024


def answers_metadata(host: str, port: int, timeout_s: float = 5) -> bool:
    """Return whether a broker listens here and lists at least one broker, itself."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
            with connection.makefile("rb") as answers:
                (length,) = struct.unpack(">i", answers.read(4))
                if not 8 <= length <= _MAX_ANSWER_BYTES:
                    return False
                _, broker_count = struct.unpack_from(">ii", answers.read(length))
    except (OSError, struct.error):
        return False
    return bool(broker_count >= 1)
