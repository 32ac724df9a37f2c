import pytest
from confluent_kafka import KafkaError

from headrace.client import error_table
from headrace.client.error_table import (
    ErrorKind,
    is_fatal,
    is_leaderless,
    is_passing,
    is_too_large,
    kind_of,
    sentence_of,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, ErrorKind.SILENT),
        (KafkaError._MSG_TIMED_OUT, ErrorKind.SILENT),
        (KafkaError.NOT_LEADER_FOR_PARTITION, ErrorKind.MOVING),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, ErrorKind.LOADING),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ErrorKind.UNKNOWN),
        (KafkaError._NOENT, ErrorKind.UNKNOWN),
        (KafkaError.TOPIC_ALREADY_EXISTS, ErrorKind.REFUSED),
        (KafkaError._AUTHENTICATION, ErrorKind.REFUSED),
    ],
)
def test_an_error_is_of_one_kind(code: int, kind: ErrorKind) -> None:
    error = KafkaError(code)

    assert kind_of(error) is kind
    assert is_passing(error) is (kind in (ErrorKind.SILENT, ErrorKind.MOVING, ErrorKind.LOADING))
    assert is_leaderless(error) is (kind in (ErrorKind.MOVING, ErrorKind.UNKNOWN))


def test_every_name_in_the_table_is_one_of_librdkafkas() -> None:
    named = {name for names in error_table._NAMES.values() for name in names}

    assert {name for name in named if not hasattr(KafkaError, name)} == set()
    assert len(named) == sum(map(len, error_table._NAMES.values())), "a name stands twice"


def test_a_sentence_says_what_to_do_where_the_broker_does_not() -> None:
    known = KafkaError(KafkaError.NON_EMPTY_GROUP)
    other = KafkaError(KafkaError.INVALID_PARTITIONS, "Broker: too many")

    assert sentence_of(known) == "the group has members; stop them first"
    assert sentence_of(other) == "too many"


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE])
def test_both_limits_make_a_message_too_large(code: int) -> None:
    assert is_too_large(KafkaError(code))


def test_a_producer_that_lost_its_thread_is_done_for() -> None:
    assert is_fatal(KafkaError(KafkaError._FATAL))
    assert is_fatal(KafkaError(KafkaError.UNKNOWN_PRODUCER_ID, fatal=True))
    assert not is_fatal(KafkaError(KafkaError.UNKNOWN_PRODUCER_ID))
    assert not is_fatal(None)
