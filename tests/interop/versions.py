"""The versions of the clients the tests run with, as they say themselves."""

import json
import re
import shutil
import subprocess
from importlib.metadata import version

import confluent_kafka
from tests.interop.groups.built import HERE

from headrace.kafka.jars import KAFKA_VERSION


def client_versions() -> dict[str, str]:
    """Each client's name on the page, by the name the tests use; in the order of the page."""
    librdkafka = confluent_kafka.libversion()[0]
    packages = json.loads((HERE / "node" / "package.json").read_text())["dependencies"]
    modules = (HERE / "go" / "go.mod").read_text()
    franz_go = re.search(r"twmb/franz-go v(\S+)", modules)
    assert franz_go
    return {
        "confluent": f"confluent-kafka {confluent_kafka.__version__} (librdkafka {librdkafka})",
        "kafka-python": f"kafka-python {version('kafka-python')}",
        "aiokafka": f"aiokafka {version('aiokafka')}",
        "kcat": _kcat_version(),
        "java": f"Java console tools {KAFKA_VERSION}",
        "franz-go": f"franz-go {franz_go[1]}",
        "kafkajs": f"KafkaJS {packages['kafkajs']}",
    }


def _kcat_version() -> str:
    if not shutil.which("kcat"):
        return "kcat"
    text = subprocess.run(["kcat", "-V"], capture_output=True, text=True).stdout
    found = re.search(r"Version (\S+) .*librdkafka ([\d.]+)", text, re.DOTALL)
    return f"kcat {found[1]} (librdkafka {found[2]})" if found else "kcat"
