"""What handlers see of the broker."""

import time
from typing import NamedTuple

from headrace.broker.topics import Topics
from headrace.settings.broker_settings import BrokerSettings


class RequestContext(NamedTuple):
    """Who asked, and in which version."""

    api_key: int
    api_version: int
    client_id: str
    client_host: str
    principal: str = "User:ANONYMOUS"


class Broker:
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

    @staticmethod
    def now_ms() -> int:
        """Wall-clock time in milliseconds."""
        return int(time.time() * 1000)
