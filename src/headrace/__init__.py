"""headrace: a Kafka-compatible message bus in one Python process, and clients of any such bus.

    from headrace import Broker, Consumer, Producer

    with Broker() as bus:
        with Producer(bus) as producer:
            producer.send("orders", b"...")
        with Consumer(bus, "orders") as consumer:
            assert consumer.poll()[0].value == b"..."

What is listed here, in `headrace.pipelines`, `headrace.testing` and `headrace.kafka.drill` is for
others to import; all else may change. Each name is loaded when it is first used.
"""

TYPE_CHECKING = False  # type checkers take it for true; the module typing costs more than this one
if TYPE_CHECKING:
    import headrace.pipelines as pipelines
    import headrace.testing as testing
    from headrace.client.admin import Admin
    from headrace.client.asynchronous import AsyncAdmin, AsyncConsumer, AsyncProducer
    from headrace.client.bus import Bus
    from headrace.client.consumer import Consumer
    from headrace.client.errors import BusError, PropertyError
    from headrace.client.message import Delivery, Message
    from headrace.client.positions import LATEST, OLDEST, Position
    from headrace.client.producer import Producer
    from headrace.embedded import Broker
    from headrace.errors import ConfigError, HeadraceError
    from headrace.kafka.cluster import Cluster

__version__ = "0.1.0"
__all__ = [
    "LATEST",
    "OLDEST",
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Broker",
    "Bus",
    "BusError",
    "Cluster",
    "ConfigError",
    "Consumer",
    "Delivery",
    "HeadraceError",
    "Message",
    "Position",
    "Producer",
    "PropertyError",
    "__version__",
    "pipelines",
    "testing",
]
_MODULES = {
    "LATEST": "headrace.client.positions",
    "OLDEST": "headrace.client.positions",
    "Admin": "headrace.client.admin",
    "AsyncAdmin": "headrace.client.asynchronous",
    "AsyncConsumer": "headrace.client.asynchronous",
    "AsyncProducer": "headrace.client.asynchronous",
    "Broker": "headrace.embedded",
    "Bus": "headrace.client.bus",
    "BusError": "headrace.client.errors",
    "Cluster": "headrace.kafka.cluster",
    "ConfigError": "headrace.errors",
    "Consumer": "headrace.client.consumer",
    "Delivery": "headrace.client.message",
    "HeadraceError": "headrace.errors",
    "Message": "headrace.client.message",
    "Position": "headrace.client.positions",
    "Producer": "headrace.client.producer",
    "PropertyError": "headrace.client.errors",
}
_PACKAGES = {"pipelines", "testing"}


def __getattr__(name: str) -> object:
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
