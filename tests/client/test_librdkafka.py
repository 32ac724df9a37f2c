import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, checked, error_type


def test_what_librdkafka_raises_becomes_a_bus_error_or_what_the_caller_makes_of_it() -> None:
    def explained(reason: KafkaError) -> BusError:
        return BusError(reason, "explained", is_passing=True)

    with pytest.raises(BusError, match="no such topic") as raised, bus_errors():
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    assert not raised.value.is_passing
    with pytest.raises(BusError, match=r"^explained$"), bus_errors(explained):
        raise error_type()(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(ValueError, match=r"^mine$"), bus_errors():
        raise ValueError("mine")


def test_answers_are_given_back_unless_one_of_them_is_an_error() -> None:
    good = TopicPartition("t", 0, 1)

    assert checked([good]) == [good]
    with pytest.raises(BusError, match="members"), bus_errors():
        checked([good, Refused()])


class Refused:
    error = KafkaError(KafkaError.NON_EMPTY_GROUP)
