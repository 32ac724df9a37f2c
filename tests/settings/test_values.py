import math

import pytest

from headrace.errors import InvalidConfigError
from headrace.settings.catalogue import BROKER, GROUP, TOPIC, ConfigType, Setting
from headrace.settings.values import Value, parse, show


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 1000 ", 1000),
        ("retention.ms", "-1", -1),
        ("retention.bytes", "+5", 5),
        ("retention.bytes", "-5", -5),
        ("preallocate", "TRUE", True),
        ("preallocate", " false", False),
        ("min.cleanable.dirty.ratio", "1", 1.0),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("cleanup.policy", " compact , delete ", ["compact", "delete"]),
        ("cleanup.policy", "delete,delete", ["delete"]),
        ("cleanup.policy", "", []),
        ("compression.type", " gzip ", "gzip"),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ["*"]),
        ("leader.replication.throttled.replicas", "0:1,1:1", ["0:1", "1:1"]),
    ],
)
def test_a_topics_text_becomes_a_typed_value(name: str, text: str, value: Value) -> None:
    parsed = parse(TOPIC[name], text)

    assert parsed == value
    assert type(parsed) is type(value)


# The sentences are those Kafka 4.3.1 answered with.
@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "segment.bytes",
            "1000",
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "",
            "Invalid value  for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "9223372036854775808",
            "Invalid value 9223372036854775808 for configuration retention.ms: "
            "Not a number of type LONG",
        ),
        (
            "retention.bytes",
            "1_000",
            "Invalid value 1_000 for configuration retention.bytes: Not a number of type LONG",
        ),
        (
            "segment.bytes",
            "2147483648",
            "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "cleanup.policy",
            "compact,foo",
            "Invalid value foo for configuration cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            "preallocate",
            "maybe",
            "Invalid value maybe for configuration preallocate: "
            "Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: "
            "Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "x",
            "Invalid value x for configuration min.cleanable.dirty.ratio: "
            "Not a number of type DOUBLE",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "leader.replication.throttled.replicas",
            "foo",
            "Invalid value [foo] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas "
            "in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_kafkas_words(
    name: str, text: str, sentence: str
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse(TOPIC[name], text)

    assert str(caught.value) == sentence


def test_a_list_that_may_not_be_empty_says_what_it_takes() -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse(BROKER["process.roles"], " ")

    assert str(caught.value) == (
        "Configuration 'process.roles' must not be empty. Valid values include: "
        "[broker, controller]"
    )


def test_a_retention_of_zero_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="unlimited"):
        parse(BROKER["log.retention.hours"], "0")


def test_a_choice_that_ignores_case_takes_any_case() -> None:
    setting = BROKER["group.consumer.migration.policy"]

    assert parse(setting, "Upgrade") == "Upgrade"
    with pytest.raises(InvalidConfigError, match="case insensitive"):
        parse(setting, "sideways")


@pytest.mark.parametrize(
    "text", ["latest", "earliest", "by_duration:P3DT12H", "by_duration:PT1.5S"]
)
def test_where_a_share_group_begins_is_a_word_or_a_duration(text: str) -> None:
    assert parse(GROUP["share.auto.offset.reset"], text) == text


@pytest.mark.parametrize("text", ["newest", "by_duration", "by_duration:P", "by_duration:3 days"])
def test_any_other_beginning_of_a_share_group_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="must be either 'earliest'"):
        parse(GROUP["share.auto.offset.reset"], text)


def test_a_password_keeps_its_blanks() -> None:
    assert parse(BROKER["ssl.key.password"], " s ") == " s "


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (["a", "b"], "a,b"),
        ("x", "x"),
        (0.0, "0.0"),
        (0.05, "0.05"),
        (5.0, "5.0"),
        (12345678.0, "1.2345678E7"),
        (1e7, "1.0E7"),
        (0.0001, "1.0E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_value_is_shown_as_java_shows_it(value: Value, text: str | None) -> None:
    assert show(value) == text


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1.5d", ".5", "5."])
def test_a_double_is_whatever_java_reads_as_one(text: str) -> None:
    setting = Setting(name="x", type=ConfigType.DOUBLE, default=None)

    assert isinstance(parse(setting, text), float)
