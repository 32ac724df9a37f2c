"""headrace: a Kafka-compatible message bus in one Python process."""

__version__ = "0.1.0"
__all__ = ["__version__"]
