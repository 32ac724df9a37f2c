"""Brokers for tests: one inside the test process, or one as a process that can be killed.

    with running_broker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap})

Settings are Kafka's, with underscores for dots: `running_broker(log_segment_bytes=1048576)`.
`broker.faults` makes it misbehave, `broker.requests` is what it was asked, `broker.advance`
moves its time. The pytest fixtures in `headrace.pytest_plugin` give the same.
"""

from headrace.settings.keywords import setting_names
from headrace.testing.faults import Faults
from headrace.testing.process import BrokerNotReadyError, BrokerProcess, broker_process
from headrace.testing.requests import SeenRequest, SeenRequests
from headrace.testing.running import RunningBroker, running_broker

__all__ = [
    "BrokerNotReadyError",
    "BrokerProcess",
    "Faults",
    "RunningBroker",
    "SeenRequest",
    "SeenRequests",
    "broker_process",
    "running_broker",
    "setting_names",
]
