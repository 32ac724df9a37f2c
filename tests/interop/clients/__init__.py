"""One adapter per third-party client: how it writes and reads, and what it can say at all."""

from tests.interop.clients.aiokafka_client import AiokafkaClient
from tests.interop.clients.client import Client, Message
from tests.interop.clients.confluent_client import ConfluentClient
from tests.interop.clients.java_console import JavaConsole
from tests.interop.clients.kafka_python_client import KafkaPythonClient
from tests.interop.clients.kcat import Kcat

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (ConfluentClient(), KafkaPythonClient(), AiokafkaClient(), Kcat(), JavaConsole())
}

__all__ = ["CLIENTS", "Client", "Message"]
