"""No congestion control between two processes of one machine.

Nothing can be congested there, and what paces (BBR, the default of some
systems) only costs: it halved the speed of sendfile over loopback. Reno is the
one algorithm that every Linux has and lets everyone choose.
"""

import contextlib
import socket


def is_loopback(address: object) -> bool:
    """Whether a socket's address, as (host, port, …), is this machine's own."""
    host = address[0] if isinstance(address, tuple) and address else ""
    return isinstance(host, str) and (host == "::1" or host.startswith("127."))


def skip_pacing(one: socket.socket, peer: object) -> None:
    """Send to `peer` without pacing if it is on this machine; a listener's clients inherit it."""
    if is_loopback(peer):
        with contextlib.suppress(OSError):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
