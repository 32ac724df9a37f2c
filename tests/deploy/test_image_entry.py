"""What the official image makes of compose.yaml's variables, by the class that runs in it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.deploy.deployment import read_properties
from tests.deploy.test_agreement import COMPOSE, compose_settings

from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive

pytestmark = pytest.mark.java

ENTRY = "kafka.docker.KafkaDockerWrapper"
EMPTY_LOG4J = "Configuration:\n  Loggers:\n    Root:\n      level: INFO\n    Logger: []\n"


@pytest.mark.parametrize("service", ["controller-1", "broker-101"])
def test_the_image_writes_these_settings_and_formats_the_volume(
    service: str, tmp_path: Path
) -> None:
    default, mounted, final, data = (
        tmp_path / name for name in ("default", "mounted", "final", "data")
    )
    for directory in (default, mounted, final):
        directory.mkdir()
    (default / "server.properties").write_text("node.id=1\n", "utf-8")
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        (default / name).write_text(EMPTY_LOG4J, "utf-8")
    variables = {
        **COMPOSE["services"][service]["environment"],
        "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw",
        "KAFKA_LOG_DIRS": str(data),
    }
    command = java_command(
        ENTRY,
        "setup",
        "-D",
        default,
        "-M",
        mounted,
        "-F",
        final,
        flags=[*SMALL_JVM, *use_archive()],
    )

    answer = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **{key: str(value) for key, value in variables.items()}},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert answer.returncode == 0, answer.stderr
    written = read_properties(final / "server.properties")
    assert written == {**compose_settings(service), "log.dirs": str(data)}
    assert (data / "meta.properties").exists()
