"""What goes wrong with Apache Kafka's nodes and clusters on this machine."""

from headrace.errors import EngineError


class NodeError(EngineError):
    """A Kafka node did not start, or stopped when it should not."""


class ClusterError(EngineError):
    """A cluster on this machine is not there, exists already, or does not get ready."""


class DrillError(EngineError):
    """A fail-over drill cannot be run to its end; what it would prove stays unproven."""
