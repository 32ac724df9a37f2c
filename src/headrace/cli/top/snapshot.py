"""A snapshot of all topics and groups of a cluster, for `headrace top`.

Topics and groups that go while it is taken are left out; only a broker that does not answer at all
is an error.
"""

import time
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.model import INTERNAL_TOPICS


class GroupSnapshot(NamedTuple):
    """One group at one moment."""

    state: str
    members: int
    committed: dict[Partition, int]


class ClusterSnapshot(NamedTuple):
    """The cluster at one moment; `at_s` is on a clock that never goes back."""

    at_s: float
    ends: dict[Partition, int]
    sizes_bytes: dict[Partition, int]  # empty where the broker cannot be asked
    groups: dict[str, GroupSnapshot]


def take_snapshot(admin: Admin) -> ClusterSnapshot:
    """Ask for everything at once; raises BusError when there is no answer."""
    metadata = admin.metadata()
    led = [each for each in metadata.led_partitions() if each[0] not in INTERNAL_TOPICS]
    at_s = time.monotonic()
    ends = admin.end_offsets(led, is_partial=True)
    return ClusterSnapshot(at_s, ends, admin.log_sizes(), _groups(admin))


def _groups(admin: Admin) -> dict[str, GroupSnapshot]:
    try:
        names = [each.name for each in admin.list_groups().groups]
    except BusError:
        return {}
    return {
        name: GroupSnapshot(group.state, len(group.members), committed)
        for name, (group, committed) in admin.groups_with_offsets(names).items()
    }
