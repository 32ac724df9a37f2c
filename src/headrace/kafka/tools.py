"""Kafka's own command line tools: their names and classes, how one is told of a broker and run."""

import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.errors import EngineError
from headrace.kafka.jars import KAFKA_VERSION, kafka_jars
from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive, write_log4j

DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
_TELLS_OF_ITSELF = {"--help", "--version"}
_TOOLS = "org.apache.kafka.tools"


class Tool(NamedTuple):
    """One tool. `bootstrap` is the option that names the brokers, if it has one."""

    class_name: str
    summary: str
    bootstrap: str | None = "--bootstrap-server"
    # Some tools take it as an option of their first word, and only behind that.
    is_bootstrap_last: bool = False
    older_class_name: str | None = None  # before it was moved
    bootstrap_since: tuple[int, int] = (4, 0)  # before, it was part of something else


# By the names of Kafka's shell scripts, kafka-NAME.sh.
TOOLS = {
    "acls": Tool(f"{_TOOLS}.AclCommand", "who may do what"),
    "api-versions": Tool(f"{_TOOLS}.BrokerApiVersionsCommand", "which requests the brokers take"),
    "client-metrics": Tool(f"{_TOOLS}.ClientMetricsCommand", "metrics that clients push"),
    "cluster": Tool(
        f"{_TOOLS}.ClusterTool", "the cluster's id and its endpoints", is_bootstrap_last=True
    ),
    "configs": Tool("kafka.admin.ConfigCommand", "configs of topics, brokers, groups, users"),
    "console-consumer": Tool(f"{_TOOLS}.consumer.ConsoleConsumer", "print messages"),
    "console-producer": Tool(f"{_TOOLS}.ConsoleProducer", "send lines of stdin"),
    "console-share-consumer": Tool(
        f"{_TOOLS}.consumer.ConsoleShareConsumer", "print messages of a share group"
    ),
    "consumer-groups": Tool(
        f"{_TOOLS}.consumer.group.ConsumerGroupCommand", "consumer groups and their offsets"
    ),
    "consumer-perf": Tool(f"{_TOOLS}.ConsumerPerformance", "how fast messages are read"),
    "delete-records": Tool(f"{_TOOLS}.DeleteRecordsCommand", "delete messages up to an offset"),
    "dump-log": Tool(
        f"{_TOOLS}.DumpLogSegments",
        "print files of a log",
        None,
        older_class_name="kafka.tools.DumpLogSegments",
    ),
    "end-to-end-latency": Tool(
        f"{_TOOLS}.EndToEndLatency", "how long a message takes", bootstrap_since=(4, 2)
    ),
    "features": Tool(f"{_TOOLS}.FeatureCommand", "feature levels"),
    "get-offsets": Tool(f"{_TOOLS}.GetOffsetShell", "offsets of partitions"),
    "groups": Tool(f"{_TOOLS}.GroupsCommand", "groups of every kind"),
    "leader-election": Tool(f"{_TOOLS}.LeaderElectionCommand", "make preferred replicas leaders"),
    "log-dirs": Tool(f"{_TOOLS}.LogDirsCommand", "sizes of replicas on the disks"),
    "producer-perf": Tool(
        f"{_TOOLS}.ProducerPerformance", "how fast messages are sent", bootstrap_since=(4, 2)
    ),
    "quorum": Tool(f"{_TOOLS}.MetadataQuorumCommand", "the controllers and how far they follow"),
    "reassign-partitions": Tool(f"{_TOOLS}.reassign.ReassignPartitionsCommand", "move replicas"),
    "replica-verification": Tool(
        f"{_TOOLS}.ReplicaVerificationTool", "compare replicas", "--broker-list"
    ),
    "share-consumer-perf": Tool(
        f"{_TOOLS}.ShareConsumerPerformance", "how fast a share group reads"
    ),
    "share-groups": Tool(f"{_TOOLS}.consumer.group.ShareGroupCommand", "share groups"),
    "storage": Tool("kafka.tools.StorageTool", "format directories", None),
    "streams-groups": Tool(f"{_TOOLS}.streams.StreamsGroupCommand", "groups of Kafka Streams"),
    "topics": Tool(f"{_TOOLS}.TopicCommand", "topics"),
    "transactions": Tool(f"{_TOOLS}.TransactionsCommand", "transactions, open and hanging"),
    "verifiable-consumer": Tool(
        f"{_TOOLS}.VerifiableConsumer", "read, with JSON lines on what came"
    ),
    "verifiable-producer": Tool(
        f"{_TOOLS}.VerifiableProducer", "send, with JSON lines on what was"
    ),
    "verifiable-share-consumer": Tool(
        f"{_TOOLS}.VerifiableShareConsumer", "read in a share group, with JSON lines"
    ),
}


def class_of(name: str, version: str) -> str:
    """Return the class of a tool in this version of Kafka; EngineError if it has none."""
    tool = TOOLS[name]
    for class_name in filter(None, (tool.class_name, tool.older_class_name)):
        path = class_name.replace(".", "/") + ".class"
        for jar in kafka_jars(version):
            if jar.name.startswith(("kafka-tools-", "kafka_")):
                with zipfile.ZipFile(jar) as archive:
                    if path in archive.NameToInfo:
                        return class_name
    raise EngineError(f"Kafka {version} has no tool {name}")


def with_bootstrap(name: str, words: Sequence[str], bootstrap: str, version: str) -> list[str]:
    """Return the tool's arguments with the brokers' addresses, if it lacks and takes them."""
    tool = TOOLS[name]
    if not lacks_bootstrap(name, words) or _minor(version) < tool.bootstrap_since:
        return [*words]
    option = [str(tool.bootstrap), bootstrap]
    return [*words, *option] if tool.is_bootstrap_last else [*option, *words]


def lacks_bootstrap(name: str, words: Sequence[str]) -> bool:
    """Whether these arguments leave open which brokers are meant."""
    option = TOOLS[name].bootstrap
    if option is None or _TELLS_OF_ITSELF & {*words}:
        return False
    named = (option, "--bootstrap-controller")
    return not any(word.partition("=")[0] in named for word in words)


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


class Completed(NamedTuple):
    """How a tool ended and what it printed."""

    return_code: int
    stdout: str
    stderr: str


def run_tool(
    class_name: str,
    *arguments: str | Path,
    stdin: str = "",
    timeout_s: float = 100,
    version: str = KAFKA_VERSION,
) -> Completed:
    """Run one tool to its end. Its log lines are on stderr, so stdout is only its answer."""
    with tempfile.TemporaryDirectory(prefix="headrace-tool-") as directory:
        command = java_command(
            class_name,
            *arguments,
            flags=[*SMALL_JVM, *use_archive(version)],
            log4j_file=write_log4j(Path(directory)),
            version=version,
        )
        try:
            answer = subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{class_name} took over {timeout_s} s") from error
    return Completed(answer.returncode, answer.stdout, answer.stderr)


def dump_log_segments(files: Iterable[Path], *flags: str, timeout_s: float = 100) -> Completed:
    """Run DumpLogSegments on `files`, such as `--deep-iteration --print-data-log`."""
    names = ",".join(map(str, files))
    return run_tool(DUMP_LOG_SEGMENTS, *flags, "--files", names, timeout_s=timeout_s)
