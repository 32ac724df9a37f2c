"""The topics of a measurement: made and led before anything is sent to them, and deleted."""

import base64
from uuid import UUID

from bench.errors import BenchError
from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.patience import Patience

_TIMEOUT_S = 600  # Kafka takes minutes to lead ten thousand new partitions on a busy machine
_PAUSE_S = 0.02


def admin_of(port: int) -> Admin:
    """Questions to the broker that is measured."""
    return Admin(Bus(f"127.0.0.1:{port}"), timeout_s=_TIMEOUT_S)


def create_topic(admin: Admin, name: str, partitions: int = 1, replication_factor: int = 1) -> UUID:
    """Make a topic and return its id once every partition is served."""
    try:
        admin.create_topic(name, partitions, replication_factor)
    except BusError as error:
        raise BenchError(f"topic {name} was refused: {error}") from error
    places = [(name, number) for number in range(partitions)]
    # Every partition's end is asked for: Kafka lists a leader before it acts as one.
    patience = Patience(admin.timeout_s, first_pause_s=_PAUSE_S, longest_pause_s=_PAUSE_S)
    if not patience.until(lambda: len(admin.end_offsets(places, is_partial=True)) == partitions):
        raise BenchError(f"topic {name} has no leaders after {admin.timeout_s:g} s")
    return UUID(bytes=base64.urlsafe_b64decode(f"{admin.topic_ids([name])[name]}=="))


def delete_topic(admin: Admin, name: str) -> None:
    """Delete it; its files go later."""
    if (failure := admin.delete_topics([name])[name]) is not None:
        raise failure
