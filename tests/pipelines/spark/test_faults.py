"""Each text in fault_texts was raised or logged by a real Spark 4.2.0 for a fault that was made."""

import traceback
from pathlib import Path

import pytest

from headrace.java.errors import JarError
from headrace.pipelines.errors import (
    PipelineDefinitionError,
    PipelineError,
    RunError,
    SinkError,
    SourceError,
    SparkError,
)
from headrace.pipelines.spark.faults import failure_of, is_retriable, sentence_of

TEXTS = Path(__file__).parent / "fault_texts"
GO_ON = "`--on-data-loss go-on` goes on with what is there"
SILENCE = (
    "the broker does not answer (Timed out waiting for a node assignment. Call: listNodes); "
    "check that it runs and --bootstrap names it"
)
OTHER_SOURCE = "the checkpoint belongs to a pipeline with another source; take another --checkpoint"
NO_TOPIC = (
    "the bus has no such topic; `headrace topics list` shows those it has, "
    "`headrace topics create` makes one"
)
LOST_WORKER = (
    "a Python worker of Spark's did not start or died; the machine may be overloaded or out of "
    "memory"
)
TOO_LARGE = "raise the topic's max.message.bytes and the producer property max.request.size"

SENTENCES: dict[str, tuple[type[PipelineError], str]] = {
    "arrow-exception": (SparkError, "KeyError: 'celsius', in arrow_bad (/home/me/hot.py:78)"),
    "bad-bootstrap": (
        SourceError,
        "no host of the bootstrap address can be found by name; check --bootstrap",
    ),
    "broker-dies-stream": (SourceError, SILENCE),
    "broker-gone-batch": (SourceError, SILENCE),
    "checkpoint-from-rate": (RunError, OTHER_SOURCE),
    "checkpoint-other-source": (RunError, OTHER_SOURCE),
    "checkpoint-other-topic": (
        SourceError,
        "the checkpoint is for partitions that are not read any more (small-0, small-1): the topic "
        f"was deleted, or this run reads others; take another --checkpoint, or {GO_ON}",
    ),
    "checkpoint-rubbish": (
        RunError,
        "the checkpoint's file /data/ckinc/offsets/0 is damaged or from a newer Spark; take "
        "another --checkpoint, or bring a copy back",
    ),
    "checkpoint-state-schema": (
        RunError,
        "the pipeline groups by other columns than when this checkpoint was begun; take another "
        "--checkpoint",
    ),
    "class-missing": (
        SparkError,
        "Spark has no data source kinesis; add its jar with --conf spark.jars=FILE, or run "
        "`headrace pipeline setup` if it is one of ours",
    ),
    "ddl": (PipelineDefinitionError, 'unsupported data type "STRIN"'),
    "disk-full-checkpoint": (
        SinkError,
        "the disk is full; make room and start again, nothing is lost",
    ),
    "disk-full-parquet": (
        SinkError,
        "the disk that holds /data/full/x is full; make room and start again, nothing is lost",
    ),
    "expired-batch": (
        SourceError,
        "partition small-0 has no longer all of offsets 3 to 1000: its oldest records were aged "
        f"out or deleted; {GO_ON}",
    ),
    "expired-stream": (
        SourceError,
        "partition small-0 has no longer all of offsets 500 to 1000: its oldest records were aged "
        f"out or deleted; {GO_ON}",
    ),
    "foreachbatch-column": (
        PipelineDefinitionError,
        "there is no column `celcius`; there are `topic`, `key`, `value`, `offset`, `partition`",
    ),
    "foreachbatch-headrace": (SinkError, "table readings has no column celsius; add it"),
    "foreachbatch-python": (
        SparkError,
        "ValueError: table readings is locked, in each_bad (/home/me/hot.py:81)",
    ),
    "foreachbatch-udf": (
        SparkError,
        "ZeroDivisionError: division by zero, in <lambda> (/home/me/hot.py:87)",
    ),
    "java-small-memory": (
        SparkError,
        "Java does not start with these options (System memory 202768384 must be at least "
        "471859200); check spark.driver.memory and spark.driver.extraJavaOptions",
    ),
    "missing-table": (
        PipelineDefinitionError,
        "the table or view `nowhere` cannot be found. Verify the spelling and correctness of the "
        "schema and catalog",
    ),
    "missing-topic-batch": (SourceError, NO_TOPIC),
    "missing-topic-stream": (SourceError, NO_TOPIC),
    "no-permission": (
        SinkError,
        "cannot write /proc/nowhere/x; check that it is a directory that may be written",
    ),
    "offsets-beyond-batch": (
        SourceError,
        "partition small-0 ends at offset 500, before the start 5000000 that was asked for; choose "
        "another --from",
    ),
    "offsets-beyond-stream": (
        SourceError,
        "partition small-0 has no offset 5000000 any more, the nearest is 500: its records were "
        f"aged out, or the topic was deleted and made again; {GO_ON}",
    ),
    "parse": (PipelineDefinitionError, "syntax error at or near 'selct'"),
    "path-missing": (PipelineDefinitionError, "path does not exist: file:/tmp/nowhere-at-all"),
    "python-false": (SparkError, LOST_WORKER),
    "python-missing": (
        SparkError,
        "the workers' Python /nowhere/python cannot be started; set --conf spark.pyspark.python to "
        "one that every worker has",
    ),
    "record-too-large": (
        SinkError,
        "a record is too large for the topic (The message is 3000088 bytes when serialized which "
        "is larger than 1048576, which is the value of the max.request.size configuration); "
        f"{TOO_LARGE}",
    ),
    "record-too-large-broker": (
        SinkError,
        "a record is too large for the topic (batch of 3000074 bytes is over "
        f"max.message.bytes=1048588); {TOO_LARGE}",
    ),
    "recreated-stream": (
        SourceError,
        "partition other-1 has no offset 500 any more, the nearest is 0: its records were aged "
        f"out, or the topic was deleted and made again; {GO_ON}",
    ),
    "sasl-no-jaas": (
        SourceError,
        "SASL needs a user and a password: set sasl.jaas.config (or sasl.username and "
        "sasl.password), or leave out security.protocol",
    ),
    "sink-topic-missing": (
        SinkError,
        "'in valid' cannot be the name of a topic: letters, digits, '.', '_' and '-' only",
    ),
    "tls-to-plain-batch": (SourceError, SILENCE),
    "udf-exception": (
        SparkError,
        "ZeroDivisionError: division by zero, in <lambda> (/home/me/hot.py:75)",
    ),
    "unresolved-column": (
        PipelineDefinitionError,
        "there is no column `celcius`; there are `celsius`, `sensor`",
    ),
    "worker-exits": (SparkError, LOST_WORKER),
}
# What Python is told says nothing here; the reason stands in Java's log.
LOGGED: dict[str, tuple[type[PipelineError], str]] = {
    "java-bad-memory": (
        SparkError,
        "Java does not start with these options (Invalid maximum heap size: -Xmxlots); check "
        "spark.driver.memory and spark.driver.extraJavaOptions",
    ),
    "java-huge-memory": (
        SparkError,
        "Java does not start with these options (Could not reserve enough space for 943718400000KB "
        "object heap); check spark.driver.memory and spark.driver.extraJavaOptions",
    ),
    "java-two-collectors": (
        SparkError,
        "Java does not start with these options (Multiple garbage collectors selected); check "
        "spark.driver.memory and spark.driver.extraJavaOptions",
    ),
    "master-nonsense": (
        SparkError,
        "--master is none Spark knows; say local[2], spark://HOST:PORT, k8s://… or yarn",
    ),
    "master-gone": (
        SparkError,
        "no Spark master answers at the address --master names; start it, or leave --master out to "
        "run on this machine",
    ),
    "sasl-to-plain-batch": (
        SourceError,
        "the broker ends every connection at the log-on; its listener may not speak what "
        "security.protocol says: leave that out, or take the port of the listener that does",
    ),
}
RETRIABLE = {
    "broker-dies-stream",
    "broker-gone-batch",
    "sasl-to-plain-batch",
    "tls-to-plain-batch",
    "python-false",
    "worker-exits",
    "master-gone",
}


def raised(name: str) -> Exception:
    return RuntimeError((TEXTS / f"{name}.txt").read_text("utf-8"))


@pytest.mark.parametrize("name", SENTENCES)
def test_what_spark_raises_becomes_one_sentence(name: str) -> None:
    kind, sentence = SENTENCES[name]

    error = sentence_of(raised(name), None)

    assert type(error) is kind
    assert str(error) == sentence


@pytest.mark.parametrize("name", LOGGED)
def test_a_reason_that_only_the_log_has_is_found_there(name: str, tmp_path: Path) -> None:
    kind, sentence = LOGGED[name]
    log_file = tmp_path / "spark.log"
    log_file.write_bytes((TEXTS / f"{name}.log").read_bytes())

    error = sentence_of(raised(name), log_file)

    assert type(error) is kind
    assert str(error) == f"{sentence} (details in {log_file})"


def test_every_text_has_its_sentence() -> None:
    assert {path.stem for path in TEXTS.glob("*.txt")} == set(SENTENCES) | set(LOGGED)


@pytest.mark.parametrize("name", sorted(set(SENTENCES) | set(LOGGED)))
def test_only_what_may_pass_by_itself_is_tried_again(name: str) -> None:
    assert is_retriable(raised(name)) == (name in RETRIABLE)


def test_a_java_that_died_of_hunger_says_so(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    log_file.write_bytes((TEXTS / "out-of-memory.log").read_bytes())

    error = sentence_of(ConnectionRefusedError(111, "Connection refused"), log_file)

    assert "Spark ran out of memory; give it more with --conf spark.driver.memory" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Answer from Java side is empty",
        "An error occurred while calling o1162.parquet",
        "org does not exist in the JVM",
        "org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down",
    ],
)
def test_a_java_that_was_killed_is_named_whatever_py4j_calls_it(text: str) -> None:
    error = sentence_of(RuntimeError(text), None)

    assert str(error) == "Spark's Java process ended while it was needed"
    assert is_retriable(RuntimeError(text))


def test_an_earlier_java_s_trouble_is_not_blamed(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    before = (TEXTS / "out-of-memory.log").read_text("utf-8")
    log_file.write_text(f"{before}\n--- headrace starts Spark's Java ---\n", "utf-8")

    error = sentence_of(ConnectionRefusedError(111, "Connection refused"), log_file)

    assert str(error) == (f"Spark's Java process ended while it was needed (details in {log_file})")


def test_a_broker_that_is_gone_is_not_taken_for_one_that_hangs_up(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    before = (TEXTS / "sasl-to-plain-batch.log").read_text("utf-8")
    gone = "Z WARN NetworkClient: [x] Connection to node 1 (/127.0.0.1:9) could not be established"
    log_file.write_text(f"{before}\n{gone}\n", "utf-8")

    error = sentence_of(raised("sasl-to-plain-batch"), log_file)

    assert str(error) == f"{SILENCE} (details in {log_file})"


def test_the_whole_trace_is_kept_in_the_log(tmp_path: Path) -> None:
    log_file = tmp_path / "logs" / "spark.log"

    error = sentence_of(raised("expired-stream"), log_file)

    assert "(details in" in str(error)
    assert "=== Streaming Query ===" in log_file.read_text("utf-8")
    assert is_retriable(error) is False


def test_an_error_of_ours_keeps_its_words() -> None:
    ours = SinkError("the table is gone; make it again")

    assert sentence_of(ours, None) is ours
    assert str(sentence_of(JarError("no jar"), None)) == "no jar"


def test_an_error_of_ours_that_went_through_java_is_itself_again() -> None:
    ours = SinkError("the table is gone; make it again")
    trace = "".join(traceback.format_exception_only(ours))

    error = sentence_of(RuntimeError(f"An error occurred while calling o7.count.\n{trace}"), None)

    assert (type(error), str(error)) == (SinkError, str(ours))


def test_the_unknown_is_cut_to_its_first_line() -> None:
    text = (
        "An error occurred while calling o7.count.\n: java.lang.IllegalStateException: the "
        "impossible happened\n\tat org.apache.spark.Somewhere\n"
    )

    assert str(sentence_of(RuntimeError(text), None)) == (
        "IllegalStateException: the impossible happened"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: "
            "Invalid username or password",
            "refused the log-on (Authentication failed: Invalid username or password)",
        ),
        ("org.apache.kafka.common.errors.IllegalSaslStateException: Unexpected", "speak SASL"),
        (
            "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
            "sun.security.validator.ValidatorException: PKIX path building failed: unable to find",
            "not signed by anyone trusted here",
        ),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access "
            "topics: [secret]",
            "(Not authorized to access topics: [secret])",
        ),
    ],
)
def test_a_failed_log_on_names_what_to_set(text: str, part: str) -> None:
    error = sentence_of(RuntimeError(text), None)

    assert isinstance(error, SourceError)
    assert part in str(error)
    assert not is_retriable(RuntimeError(text))


class ForgetfulError(Exception):
    """As pyspark's: its text is in Java, and Java is gone."""

    def __str__(self) -> str:
        raise AssertionError("no gateway")


def test_an_error_whose_text_went_with_java_still_becomes_a_sentence(tmp_path: Path) -> None:
    failure = failure_of(ForgetfulError(), tmp_path / "spark.log")

    assert str(failure.sentence).startswith("Spark's Java process ended while it was needed")
    assert (failure.is_own, failure.is_retriable) == (False, True)


def test_a_failure_says_whether_it_is_ours_and_may_pass() -> None:
    class PassingError(SinkError):
        is_retriable = True

    own = failure_of(PassingError("the database is away"), None)
    sparks = failure_of(raised("disk-full-parquet"), None)

    assert (str(own.sentence), own.is_own, own.is_retriable) == ("the database is away", True, True)
    assert (sparks.is_own, sparks.is_retriable) == (False, False)
