"""A cluster started from deploy/kafka's own files: three controllers, three brokers, TLS, ACLs.

Every line of the files is kept but for machine names, ports and paths, which become 127.0.0.1,
free ports and a scratch directory. `python tests/deploy/deployment.py DIRECTORY` keeps one
running until its standard input ends.
"""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.kafka import process
from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive, write_log4j
from headrace.kafka.layout import random_cluster_id

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "127.0.0.1"
ADMIN_PASSWORD = "an admin's secret"
CONTROLLERS = (1, 2, 3)
BROKERS = (101, 102, 103)
# Its 128 MiB by default do not fit into the small heaps of a test.
_SMALL = {"log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024)}
_START_TIMEOUT_S = 180


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of `key=value` lines and comments; a key given twice is an error."""
    settings: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, value = line.partition("=")
            assert key not in settings, f"{path.name} sets {key} twice"
            settings[key] = value
    return settings


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    return path


class Deployment:
    """Machine N runs controller N and broker 100 + N. Owned by one thread."""

    def __init__(self, directory: Path, machines: int = 3) -> None:
        self.directory = directory.absolute()
        self.cluster_id = random_cluster_id()
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        ports = iter(process.free_ports(3 * machines))
        self._address = {
            f"kafka-{machine}.example.net:{port}": f"{HOST}:{next(ports)}"
            for machine in range(1, machines + 1)
            for port in (9091, 9092, 9093)
        }
        self.bootstrap = ",".join(self._address[f"kafka-{n}.example.net:9092"] for n in (1, 2, 3))
        self.controllers = ",".join(self._address[f"kafka-{n}.example.net:9093"] for n in (1, 2, 3))

    def prepare(self) -> None:
        """Make the certificates and the properties of the six nodes, and format them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        tls = self.directory / "tls"
        script = DEPLOY / "kafka" / "make-certificates.sh"
        subprocess.run([script, tls, HOST], check=True, capture_output=True)
        (tls / f"{HOST}.pem").rename(tls / "node.pem")
        write_log4j(self.directory)
        for name in ("admin.properties", "node-client.properties"):
            self._client_file(name)
        voters = ",".join(
            f"{n}@{self._address[f'kafka-{n}.example.net:9093']}:{random_cluster_id()}"
            for n in CONTROLLERS
        )
        scram = f"SCRAM-SHA-512=[name=admin,password={ADMIN_PASSWORD}]"
        for node in CONTROLLERS:
            self.write_node(node)
            self.format(node, "--initial-controllers", voters, "--add-scram", scram)
        for node in BROKERS:
            self.write_node(node)
            self.format(node, "--no-initial-controllers")

    def properties(self, node: int) -> Path:
        return self.directory / f"node-{node}.properties"

    def data_directory(self, node: int) -> Path:
        return self.directory / ("broker" if node > 100 else "controller") / str(node)

    def write_node(self, node: int, **more: str) -> None:
        """Adapt the file of its role to `node`, as its first comment tells an administrator to."""
        role, machine = ("broker", node - 100) if node > 100 else ("controller", node)
        settings = read_properties(DEPLOY / "kafka" / f"{role}.properties")
        own = {
            "node.id": str(node),
            "log.dirs": str(self.data_directory(node)),
            **({"broker.rack": f"rack-{machine}"} if role == "broker" else {}),
        }
        for key in ("listeners", "advertised.listeners"):
            if key in settings:
                own[key] = settings[key].replace("kafka-1.", f"kafka-{machine}.")
        settings = {
            key: self._here(value) for key, value in {**settings, **own, **_SMALL, **more}.items()
        }
        write_properties(self.properties(node), settings)

    def format(self, node: int, *arguments: str) -> None:
        self.tool(
            "kafka.tools.StorageTool",
            "format",
            *("--cluster-id", self.cluster_id, "--config", str(self.properties(node))),
            *arguments,
        )

    def launch(self, node: int) -> None:
        """Start the node's process; `await_started` waits for it."""
        log = self.directory / f"node-{node}.log"
        log.unlink(missing_ok=True)
        flags = ["-Xmx128m" if flag == "-Xmx256m" and node < 100 else flag for flag in SMALL_JVM]
        command = java_command(
            "kafka.Kafka",
            self.properties(node),
            flags=[*flags, *use_archive()],
            log4j_file=self.directory / "log4j2.properties",
        )
        self.nodes[node] = process.start(command, output=log, cwd=self.directory)

    def await_started(self, node: int) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        log = self.directory / f"node-{node}.log"
        while b"Kafka Server started" not in log.read_bytes():
            ended = self.nodes[node].poll()
            assert ended is None, f"node {node} ended with {ended}:\n{process.tail(log)}"
            assert time.monotonic() < deadline, f"node {node} is not ready:\n{process.tail(log)}"
            time.sleep(0.05)

    def stop(self, node: int) -> None:
        process.stop(self.nodes.pop(node), grace_s=60)

    def tool(self, class_name: str, *arguments: str, stdin: str = "") -> str:
        """Run one of Kafka's tools; return what it printed, fail with all it said."""
        command = java_command(
            class_name,
            *arguments,
            flags=[*SMALL_JVM, *use_archive()],
            log4j_file=self.directory / "log4j2.properties",
        )
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180)
        assert answer.returncode == 0, f"{class_name} {arguments}: {answer.stdout}{answer.stderr}"
        return answer.stdout

    def admin(self, class_name: str, *arguments: str) -> str:
        """Run a tool as the user admin, over TLS with its password."""
        admin = str(self.directory / "admin.properties")
        return self.tool(
            class_name, "--bootstrap-server", self.bootstrap, "--command-config", admin, *arguments
        )

    def client(self, user: str = "admin", password: str = ADMIN_PASSWORD) -> dict[str, str]:
        """Return what librdkafka needs to connect as `user`."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.directory / "tls" / "ca.pem"),
        }

    def _client_file(self, name: str) -> None:
        settings = read_properties(DEPLOY / "kafka" / name)
        write_properties(
            self.directory / name, {key: self._here(value) for key, value in settings.items()}
        )

    def _here(self, value: str) -> str:
        for there, here in self._address.items():
            value = value.replace(there, here)
        value = value.replace("/etc/kafka/", f"{self.directory}/")
        value = value.replace("CHANGE-ME", ADMIN_PASSWORD)
        assert not re.search(r"example\.net|/var/lib|/etc", value), value
        return value


@contextlib.contextmanager
def running_deployment(directory: Path) -> Iterator[Deployment]:
    """Start all six nodes; stop brokers first, they need a controller to leave in order."""
    deployment = Deployment(directory)
    try:
        deployment.prepare()
        for node in (*CONTROLLERS, *BROKERS):
            deployment.launch(node)
        for node in (*CONTROLLERS, *BROKERS):
            deployment.await_started(node)
        yield deployment
    finally:
        for node in sorted(deployment.nodes, reverse=True):
            deployment.stop(node)


if __name__ == "__main__":
    with running_deployment(Path(sys.argv[1])) as running:
        print(f"{running.cluster_id} {running.bootstrap} {running.controllers}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()
