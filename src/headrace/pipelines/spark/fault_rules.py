"""The table of what goes wrong in Spark: how it shows in Java's words, and what to tell the user.

The first rule that is found in the text wins, so what is particular stands before what is
general: a refused password, say, before the time-out that follows it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from headrace.pipelines.errors import (
    PipelineDefinitionError,
    PipelineError,
    RunError,
    SinkError,
    SourceError,
    SparkError,
)

GO_ON = "`--on-data-loss go-on` goes on with what is there"


class Rule(NamedTuple):
    """One fault. `sentence` may use the pattern's groups by name."""

    pattern: re.Pattern[str]
    kind: type[PipelineError]
    sentence: str | Callable[[re.Match[str]], str]
    # Whether the same run, started again, may well succeed.
    is_retriable: bool = False


def _rule(
    pattern: str,
    kind: type[PipelineError],
    sentence: str | Callable[[re.Match[str]], str],
    *,
    is_retriable: bool = False,
) -> Rule:
    return Rule(re.compile(pattern, re.MULTILINE), kind, sentence, is_retriable)


def _missing_topic(match: re.Match[str]) -> str:
    """Java's message has no name in it; the plan of a stream, further down, has."""
    subscribed = re.search(r"KafkaV2\[Subscribe\[(?P<topics>[^\]]+)\]\]", match.string)
    if not subscribed:
        return (
            "the bus has no such topic; `headrace topics list` shows those it has, "
            "`headrace topics create` makes one"
        )
    topics = subscribed["topics"]
    is_one = "," not in topics
    return (
        f"the bus has no topic {topics}; create it with `headrace topics create {topics}`"
        if is_one
        else f"the bus lacks at least one of the topics {topics}; `headrace topics list` shows "
        "those it has"
    )


def _missing_column(match: re.Match[str]) -> str:
    hint = f"; there are {match['known']}" if match["known"] else ""
    return f"there is no column {match['name']}{hint}"


def _full_disk(match: re.Match[str]) -> str:
    writing = re.search(r"writing rows to (?:file:)?(?P<path>\S+?)\.? SQLSTATE", match.string)
    where = f" that holds {writing['path']}" if writing else ""
    return f"the disk{where} is full; make room and start again, nothing is lost"


_EXPIRED = (
    _rule(
        r"Partition (?P<partition>\S+?) offset was changed from (?P<wanted>\d+) to (?P<found>\d+)",
        SourceError,
        "partition {partition} has no offset {wanted} any more, the nearest is {found}: its "
        f"records were aged out, or the topic was deleted and made again; {GO_ON}",
    ),
    _rule(
        r"Could not read records in offset \[(?P<start>\d+), (?P<end>\d+)\) for topic partition "
        r"(?P<partition>\S+)",
        SourceError,
        "partition {partition} has no longer all of offsets {start} to {end}: its oldest records "
        f"were aged out or deleted; {GO_ON}",
    ),
    _rule(
        r"Partitions Set\((?P<partitions>[^)]*)\) have been deleted",
        SourceError,
        "the checkpoint is for partitions that are not read any more ({partitions}): the topic "
        f"was deleted, or this run reads others; take another --checkpoint, or {GO_ON}",
    ),
    _rule(
        r"resolved start offset (?P<start>\d+) is greater than the resolved end offset (?P<end>\d+)"
        r" for topic (?P<topic>\S+) partition (?P<partition>\d+)",
        SourceError,
        "partition {topic}-{partition} ends at offset {end}, before the start {start} that was "
        "asked for; choose another --from",
    ),
    _rule(
        r"No offset matched from request of topic-partition (?P<partition>\S+) and timestamp "
        r"(?P<timestamp>\d+)",
        SourceError,
        "partition {partition} has no record as late as timestamp {timestamp}; choose an earlier "
        "--from",
    ),
    _rule(
        r"Some data may have been lost because they are not available in Kafka any more",
        SourceError,
        f"records that were to be read are gone from the log: aged out or deleted; {GO_ON}",
    ),
)

_LOGGING_ON = (
    _rule(
        r"SaslAuthenticationException: (?P<reason>.*)",
        SourceError,
        "the broker refused the log-on ({reason}); check the user name and password in "
        "sasl.jaas.config and the mechanism in sasl.mechanism",
    ),
    _rule(
        r"IllegalSaslStateException",
        SourceError,
        "the broker's listener does not speak SASL: leave out security.protocol, or take the port "
        "of the listener that does",
    ),
    _rule(
        r"Could not find a 'KafkaClient' entry|No JAAS configuration",
        SourceError,
        "SASL needs a user and a password: set sasl.jaas.config (or sasl.username and "
        "sasl.password), or leave out security.protocol",
    ),
    _rule(
        r"PKIX path (?:building|validation) failed",
        SourceError,
        "the broker's certificate is not signed by anyone trusted here; name its CA's PEM file "
        "as ssl.ca.location (ssl.truststore.location with ssl.truststore.type=PEM in Java)",
    ),
    _rule(
        r"No subject alternative (?:DNS )?names?.*|No name matching (?P<name>\S+) found",
        SourceError,
        "the broker's certificate is for another host name; connect by the name it is for, or set "
        "ssl.endpoint.identification.algorithm to nothing",
    ),
    _rule(
        r"Unsupported or unrecognized SSL message|"
        r"SSL handshake failed.*(?:plaintext|not an SSL/TLS record)",
        SourceError,
        "the broker's listener does not speak TLS: leave out security.protocol, or take the port "
        "of the listener that does",
    ),
    _rule(
        r"(?:SslAuthenticationException|SSLHandshakeException): (?P<reason>.*)",
        SourceError,
        "the TLS handshake with the broker failed ({reason}); check the certificates in the ssl.* "
        "properties",
    ),
    _rule(
        r"(?P<kind>Topic|Group|Cluster|TransactionalId)AuthorizationException: (?P<reason>.*)",
        SourceError,
        "the broker does not let this user do that ({reason}); ask its operator for an ACL",
    ),
)

_SINKS = (
    _rule(
        r"RecordTooLargeException: (?P<reason>.*)",
        SinkError,
        "a record is too large for the topic ({reason}); raise the topic's max.message.bytes and "
        "the producer property max.request.size",
    ),
    _rule(
        r"InvalidTopicException: (?P<topic>.*)",
        SinkError,
        "{topic!r} cannot be the name of a topic: letters, digits, '.', '_' and '-' only",
    ),
    _rule(r"No space left on device", SinkError, _full_disk),
    _rule(
        r"Mkdirs failed to create (?:file:)?(?P<made>\S+?)(?:/_temporary\S*)? |"
        r"(?P<refused>/\S+) \(Permission denied\)|AccessDeniedException: (?P<denied>\S+)|"
        r"Parent path is not a directory: (?:file:)?(?P<parent>\S+)",
        SinkError,
        lambda match: (
            f"cannot write {next(filter(None, match.groups()))}; check that it is a directory that "
            "may be written"
        ),
    ),
)

_BROKER = (
    _rule(
        r"UnknownTopicOrPartitionException",
        SourceError,
        _missing_topic,
    ),
    _rule(
        r"No resolvable bootstrap urls",
        SourceError,
        "no host of the bootstrap address can be found by name; check --bootstrap",
    ),
    _rule(
        r"ConfigException: (?P<reason>.*)",
        SourceError,
        "a Kafka property makes no sense: {reason}",
    ),
    _rule(
        r"(?:kafka\.common\.errors\.(?:TimeoutException|DisconnectException|NetworkException|"
        r"BrokerNotAvailableException|LeaderNotAvailableException|NotLeaderOrFollowerException|"
        r"CoordinatorNotAvailableException)): (?P<reason>.*)",
        SourceError,
        "the broker does not answer ({reason}); check that it runs and --bootstrap names it",
        is_retriable=True,
    ),
)

_CHECKPOINT = (
    _rule(
        r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|"
        r"Multiple streaming queries are concurrently using",
        RunError,
        "another run writes the same checkpoint; stop it (`headrace pipeline status` lists runs) "
        "or take another --checkpoint",
    ),
    _rule(
        r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE",
        RunError,
        "the pipeline groups by other columns than when this checkpoint was begun; take another "
        "--checkpoint",
    ),
    _rule(
        r"There are \[\d+\] sources in the checkpoint|No usable value for offset|"
        r"Expected e\.g\. \{\"topicA\"",
        RunError,
        "the checkpoint belongs to a pipeline with another source; take another --checkpoint",
    ),
    _rule(
        r"Failed to read log file (?:file:)?(?P<file>\S+?)\. |Incomplete log file|"
        r"INVALID_LOG_VERSION",
        RunError,
        lambda match: (
            f"the checkpoint's file {match['file'] or ''} is damaged or from a newer Spark; "
            "take another --checkpoint, or bring a copy back"
        ).replace("  ", " "),
    ),
)

_UNREADABLE = (
    _rule(
        r"Record at topic (?P<topic>\S+) partition (?P<partition>\d+) offset (?P<offset>\d+) has "
        r"timestamp value (?P<time>-?\d+) that overflows",
        SourceError,
        "partition {partition} of {topic} has a record at offset {offset} with the timestamp "
        "{time} ms, more than Spark can count, and Spark does not pass it by; begin behind it "
        "(--from, or a condition on `offset` in SQL); the topic's message.timestamp.after.max.ms "
        "keeps such records out",
    ),
)

_SPARK = (
    _rule(
        r"OutOfMemoryError: (?P<reason>.*)|GC overhead limit exceeded",
        SparkError,
        "Spark ran out of memory; give it more with --conf spark.driver.memory=4g, or take smaller "
        "batches with --max-rows",
    ),
    _rule(
        r"spark\.driver\.maxResultSize",
        SparkError,
        "the result is larger than spark.driver.maxResultSize; take smaller batches with "
        "--max-rows, or raise it with --conf spark.driver.maxResultSize=4g",
    ),
    _rule(
        r"Cannot run program \"(?P<python>[^\"]+)\"",
        SparkError,
        "the workers' Python {python} cannot be started; set --conf spark.pyspark.python to one "
        "that every worker has",
    ),
    _rule(
        r"Python worker failed to connect back|Timed out while waiting for the Python worker|"
        r"Python worker exited unexpectedly|reading the port number from pyspark\.daemon",
        SparkError,
        "a Python worker of Spark's did not start or died; the machine may be overloaded or out of "
        "memory",
        is_retriable=True,
    ),
    _rule(
        r"Could not parse Master URL: '?(?P<master>[^'\n]+?)'?$|"
        r"Master must either be yarn or start with spark, k8s, or local",
        SparkError,
        "--master is none Spark knows; say local[2], spark://HOST:PORT, k8s://… or yarn",
    ),
    _rule(
        r"All masters are unresponsive",
        SparkError,
        "no Spark master answers at the address --master names; start it, or leave --master out "
        "to run on this machine",
        is_retriable=True,
    ),
    _rule(
        r"ExecutorLostFailure|TaskResultLost|FetchFailed|Executor heartbeat timed out|"
        r"worker lost|ExecutorDeadException",
        SparkError,
        "Spark lost an executor more often than it tries again",
        is_retriable=True,
    ),
    _rule(
        r"UnsupportedClassVersionError",
        SparkError,
        "this Java is too old for Spark, which needs 17 or newer; set JAVA_HOME to a newer one",
    ),
    _rule(
        r"(?P<reason>Invalid maximum heap size.*|Invalid initial heap size.*|"
        r"Could not reserve enough space.*|Unrecognized option.*|Unrecognized VM option.*|"
        r"Conflicting collector combinations.*|Improperly specified VM option.*|"
        r"Multiple garbage collectors selected.*|There is insufficient memory.*|"
        r"System memory \d+ must be at least.*)",
        SparkError,
        "Java does not start with these options ({reason}); check spark.driver.memory and "
        "spark.driver.extraJavaOptions",
    ),
    _rule(
        r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (?P<name>\S+?)\. ",
        SparkError,
        "Spark has no data source {name}; add its jar with --conf spark.jars=FILE, or run "
        "`headrace pipeline setup` if it is one of ours",
    ),
    _rule(
        r"ClassNotFoundException: (?P<name>\S+)|NoClassDefFoundError: (?P<path>\S+)",
        SparkError,
        lambda match: (
            f"Spark lacks the class {match['name'] or match['path'].replace('/', '.')}; add its "
            "jar with --conf spark.jars=FILE, or run `headrace pipeline setup`"
        ),
    ),
)

_DEFINITION = (
    _rule(
        r"\[UNRESOLVED_COLUMN\S*\] .*?name (?P<name>`[^ ]+`) cannot be resolved"
        r"(?:\. Did you mean one of the following\? \[(?P<known>[^\]]*)\])?",
        PipelineDefinitionError,
        _missing_column,
    ),
)

# Looked for in the log alone, where a broker seems not to answer.
LOG_ON_CUT = _rule(
    r"terminated during authentication",
    SourceError,
    "the broker ends every connection at the log-on; its listener may not speak what "
    "security.protocol says: leave that out, or take the port of the listener that does",
)

RULES: tuple[Rule, ...] = (
    *_EXPIRED,
    *_UNREADABLE,
    *_LOGGING_ON,
    *_SINKS,
    *_BROKER,
    *_CHECKPOINT,
    *_SPARK,
    *_DEFINITION,
)
