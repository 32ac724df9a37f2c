"""deploy/systemd: systemd itself reads the units without a word of complaint."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.deploy.deployment import DEPLOY

UNITS = DEPLOY / "systemd"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("instance", ["kafka-broker@101", "kafka-controller@1"])
def test_systemd_finds_nothing_wrong_with_the_unit(instance: str, tmp_path: Path) -> None:
    for path in UNITS.glob("kafka-*"):
        # Kafka's scripts are not on this machine; anything that can be run stands in for them.
        text = path.read_text("utf-8").replace("/opt/kafka/bin/kafka-server-start.sh", "/bin/true")
        (tmp_path / path.name).write_text(text, "utf-8")
    name, _, _ = instance.partition("@")
    unit = tmp_path / f"{instance}.service"
    shutil.copy(tmp_path / f"{name}@.service", unit)

    answer = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
    )

    complaints = [
        line for line in answer.stderr.splitlines() if tmp_path.name in line or name in line
    ]
    assert complaints == []


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_a_unit_names_the_files_that_the_guide_installs(role: str) -> None:
    unit = (UNITS / f"kafka-{role}@.service").read_text("utf-8")

    assert f"EnvironmentFile=/etc/kafka/{role}.env" in unit
    assert (UNITS / f"{role}.env").exists()
    assert f"/etc/kafka/{role}-%i.properties" in unit
    assert (DEPLOY / "kafka" / f"{role}.properties").exists()


@pytest.mark.parametrize("name", ["broker.env", "controller.env", "90-kafka.conf"])
def test_every_line_is_preceded_by_a_reason(name: str) -> None:
    lines = (UNITS / name).read_text("utf-8").splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r"\w", line)]

    assert settings
    assert all(lines[number - 1].startswith("# ") for number in settings)
