"""The kinds of members there are: a client, an assignor or protocol, and what it can do."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.clients import CLIENTS
from tests.interop.groups.built import HERE, go_member, kafkajs_packages, members_directory
from tests.interop.groups.journal import Event
from tests.interop.groups.member_process import Program
from tests.interop.groups.members.session import MemberConfig

from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive, write_log4j
from headrace.kafka.tools import CONSOLE_CONSUMER

_SIGTERM_EXIT = 143
_JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class Kind(NamedTuple):
    """One row of the table below."""

    client: str
    assignor: str
    program: Callable[[MemberConfig], Program]
    why_absent: Callable[[], str | None]
    protocol: str = "classic"
    takes_commands: bool = True
    tells_assignment: bool = True

    @property
    def name(self) -> str:
        return f"{self.client}-{self.protocol if self.protocol == 'consumer' else self.assignor}"

    @property
    def feature(self) -> str:
        """Its line on the page of compatibility."""
        is_next = self.protocol == "consumer"
        return "group, next protocol (KIP-848)" if is_next else f"group, {self.assignor} assignor"

    @property
    def is_cooperative(self) -> bool:
        return self.assignor == "cooperative-sticky" or self.protocol == "consumer"


def _python_member(module: str) -> Callable[[MemberConfig], Program]:
    def program(config: MemberConfig) -> Program:
        arguments = ["-m", f"tests.interop.groups.members.{module}", _as_json(config)]
        return Program([sys.executable, *arguments])

    return program


def _go_program(config: MemberConfig) -> Program:
    return Program([str(go_member()), _as_json(config)])


def _node_program(config: MemberConfig) -> Program:
    environment = {**os.environ, "NODE_PATH": str(kafkajs_packages())}
    command = ["node", str(HERE / "node" / "member.js"), _as_json(config)]
    return Program(command, environment=environment)


def _kcat_program(config: MemberConfig) -> Program:
    properties = {
        "partition.assignment.strategy": config.assignor,
        "session.timeout.ms": config.session_timeout_ms,
        "heartbeat.interval.ms": config.heartbeat_interval_ms,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "topic.metadata.refresh.interval.ms": 1000,
    }
    if config.instance_id:
        properties["group.instance.id"] = config.instance_id
    options = [word for pair in properties.items() for word in ("-X", f"{pair[0]}={pair[1]}")]
    return Program(
        [
            *("kcat", "-F", "/dev/null", "-b", config.bootstrap, *options),
            *("-u", "-J", "-G", config.group, config.topic),
        ],
        read_stdout=_kcat_message,
        read_stderr=_kcat_rebalance,
        takes_commands=False,
        # At SIGTERM it drops the message it holds, which librdkafka has counted as processed.
        finishes_on_leave=False,
    )


def _kcat_message(line: str) -> Event:
    envelope = json.loads(line)
    facts = {name: envelope[name] for name in ("topic", "partition", "offset")}
    return {"event": "message", **facts, "value": envelope["payload"]}


def _kcat_rebalance(line: str) -> Event | None:
    found = re.match(r"% Group \S+ rebalanced.*?(assign|revoke)", line)
    if not found:
        return None
    partitions = [int(number) for number in re.findall(r" \[(\d+)\]", line)]
    return {"event": "assigned" if found[1] == "assign" else "revoked", "partitions": partitions}


def _java_program(config: MemberConfig) -> Program:
    properties = {
        "group.id": config.group,
        "group.protocol": config.protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        "fetch.max.wait.ms": 100,
        "metadata.max.age.ms": 1000,
    }
    if config.protocol == "classic":
        assignor = f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[config.assignor]}"
        properties["partition.assignment.strategy"] = assignor
        properties["session.timeout.ms"] = config.session_timeout_ms
        properties["heartbeat.interval.ms"] = config.heartbeat_interval_ms
    elif config.assignor:
        properties["group.remote.assignor"] = config.assignor
    if config.instance_id:
        properties["group.instance.id"] = config.instance_id
    options = [
        word
        for pair in properties.items()
        for word in ("--command-property", f"{pair[0]}={pair[1]}")
    ]
    for name in ("print.partition", "print.offset", "print.value"):
        options += ["--formatter-property", f"{name}=true"]
    command = java_command(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", config.bootstrap, "--topic", config.topic, *options),
        flags=[*SMALL_JVM, *use_archive()],
        log4j_file=write_log4j(members_directory()),
    )
    return Program(
        command,
        read_stdout=lambda line: _java_message(config.topic, line),
        # Its own commits leave gaps in cooperative rebalances: real Kafka shows the same repeats.
        may_repeat=config.assignor == "cooperative-sticky",
        takes_commands=False,
        exit_codes=(_SIGTERM_EXIT,),
    )


def _java_message(topic: str, line: str) -> Event | None:
    found = re.match(r"Partition:(\d+)\tOffset:(\d+)\t(.*)\n", line)
    if not found:
        return None
    facts = {"partition": int(found[1]), "offset": int(found[2]), "value": found[3]}
    return {"event": "message", "topic": topic, **facts}


def _as_json(config: MemberConfig) -> str:
    return json.dumps(config._asdict())


def _nothing() -> None:
    return None


def _sentence(product: Callable[[], Path | str]) -> Callable[[], str | None]:
    def why_absent() -> str | None:
        made = product()
        return made if isinstance(made, str) else None

    return why_absent


def _no_kcat() -> str | None:
    return None if shutil.which("kcat") else "kcat is not installed (Debian package kcat)"


def _kinds() -> list[Kind]:
    confluent = _python_member("confluent_member")
    kafka_python = _python_member("kafka_python_member")
    aiokafka = _python_member("aiokafka_member")
    no_go, no_node = _sentence(go_member), _sentence(kafkajs_packages)
    no_java = CLIENTS["java"].why_absent
    eager = ("range", "roundrobin")
    cooperative = "cooperative-sticky"
    kinds = [Kind("confluent", name, confluent, _nothing) for name in (*eager, cooperative)]
    kinds.append(Kind("confluent", "", confluent, _nothing, "consumer"))
    kinds += [
        Kind("kafka-python", name, kafka_python, _nothing)
        for name in (*eager, "sticky", cooperative)
    ]
    kinds += [Kind("aiokafka", name, aiokafka, _nothing) for name in (*eager, "sticky")]
    kinds += [
        Kind("kcat", name, _kcat_program, _no_kcat, takes_commands=False)
        for name in (*eager, cooperative)
    ]
    kinds += [
        Kind("java", name, _java_program, no_java, takes_commands=False, tells_assignment=False)
        for name in (*eager, "sticky", cooperative)
    ]
    kinds.append(Kind("java", "", _java_program, no_java, "consumer", False, False))
    kinds += [
        Kind("franz-go", name, _go_program, no_go) for name in (*eager, "sticky", cooperative)
    ]
    kinds.append(Kind("franz-go", "uniform", _go_program, no_go, "consumer"))
    kinds.append(Kind("kafkajs", "roundrobin", _node_program, no_node))
    return kinds


KINDS: dict[str, Kind] = {kind.name: kind for kind in _kinds()}
