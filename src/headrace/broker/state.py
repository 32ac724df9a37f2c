"""What handlers see of the broker."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.clock import Clock
from headrace.broker.topics import Topics
from headrace.settings.broker_settings import BrokerSettings

if TYPE_CHECKING:
    from headrace.broker.groups.runtime import GroupRuntime


class RequestContext(NamedTuple):
    """Who asked, and in which version."""

    api_key: int
    api_version: int
    client_id: str
    client_host: str
    principal: str = "User:ANONYMOUS"

    @property
    def member_host(self) -> str:
        """The host as groups note it: Java puts a slash before an address without a name."""
        return f"/{self.client_host}"


class BrokerState:
    """The one node: its identity, its settings, its topics. Event-loop thread only."""

    def __init__(
        self, *, node_id: int, cluster_id: str, settings: BrokerSettings, topics: Topics
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.settings = settings
        self.topics = topics
        self.advertised_host = ""
        self.advertised_port = 0
        self.clock = Clock()
        self.open_groups: Callable[[], GroupRuntime] | None = None
        self._groups: GroupRuntime | None = None

    @property
    def groups(self) -> "GroupRuntime":
        """The groups, from their first use on: a broker that starts does not wait for them."""
        if self._groups is None:
            if self.open_groups is None:
                raise RuntimeError("this broker has no groups")
            self._groups = self.open_groups()
        return self._groups

    @property
    def has_groups(self) -> bool:
        """Whether `groups` was used yet."""
        return self._groups is not None

    @staticmethod
    def now_ms() -> int:
        """Wall-clock time in milliseconds."""
        return int(time.time() * 1000)
