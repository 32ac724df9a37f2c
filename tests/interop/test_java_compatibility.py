"""Kafka's own judges of a broker's versions and features, on both engines, against the capture.

`ClientCompatibilityTest` is what Kafka's system tests run with clients of one version and brokers
of another: produce, consume, offsets by time, a record larger than a fetch, and the admin client.
"""

import json
import re
from pathlib import Path

import pytest
from tests.interop.wire import Engine, WireClient

from headrace.broker.dispatch import APIS
from headrace.kafka.tools import run_tool

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("needs_java")]

TOOLS = "org.apache.kafka.tools"
CAPTURE = json.loads(
    (Path(__file__).parents[1] / "data" / "kafka-4.3.1" / "api_versions.json").read_text()
)


def run(tool: str, engine: Engine, *arguments: str) -> str:
    answer = run_tool(f"{TOOLS}.{tool}", "--bootstrap-server", engine.bootstrap, *arguments)
    assert answer.return_code == 0, answer
    return answer.stdout


def test_broker_api_versions_command_sees_the_table_of_kafka_4_3_1(engine: Engine) -> None:
    table = {row["key"]: (row["min"], row["max"], row["max"]) for row in CAPTURE["api_keys"]}

    output = run("BrokerApiVersionsCommand", engine)

    rows = re.findall(r"\w+\((\d+)\): (\d+)(?: to (\d+))? \[usable: (\d+)\]", output)
    served = {
        int(key): (int(oldest), int(newest or oldest), int(usable))
        for key, oldest, newest, usable in rows
    }
    assert served == {
        key: versions for key, versions in table.items() if engine.name == "kafka" or key in APIS
    }
    # All else is said to be missing, and not by a version that nobody can use.
    absent = {int(key) for key in re.findall(r"\w+\((\d+)\): UNSUPPORTED", output)}
    assert table.keys() - served.keys() <= absent
    assert "unusable" not in output.lower()


def test_feature_command_shows_what_is_finalized(engine: Engine) -> None:
    levels = {
        name: str(level["max_version_level"])
        for name, level in CAPTURE["finalized_features"].items()
    }
    levels |= {"metadata.version": "4.3-IV0", "kraft.version": "0"}
    if engine.name == "headrace":
        levels = {name: levels[name] for name in ("metadata.version", "group.version")}

    output = run("FeatureCommand", engine, "describe")

    shown = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", output))
    assert shown == levels


def test_client_compatibility_test_succeeds(engine: Engine) -> None:
    with WireClient(engine.bootstrap) as wire:
        assert wire.create_topic("compatible").error_code == 0
    has_acls = engine.name == "kafka"  # docs/engines.md: users and access rules

    output = run(
        "ClientCompatibilityTest",
        engine,
        *("--topic", "compatible", "--num-cluster-nodes", "1"),
        *("--offsets-for-times-supported", "True", "--cluster-id-supported", "True"),
        *("--expect-record-too-large-exception", "False", "--create-topics-supported", "True"),
        *("--describe-acls-supported", str(has_acls), "--describe-configs-supported", "True"),
        *("--idempotent-producer-supported", "True"),
    )

    assert output == "SUCCESS.\n"
