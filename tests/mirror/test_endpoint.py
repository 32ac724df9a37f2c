import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.mirror.conftest import Told

from headrace.client.bus import Bus
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError
from headrace.mirror.writer import ConnectionLostError
from headrace.patience import StoppedError


class Operator(Told):
    """Is told things, and may ask for a stop."""

    def __init__(self) -> None:
        super().__init__()
        self.wants_stop = False


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
def end(operator: Operator) -> Endpoint:
    return Endpoint(
        "--to x:1",
        Bus("x:1"),
        timeout_s=120,
        listener=operator,
        is_stopped=lambda: operator.wants_stop,
    )


def failing(*names: str) -> Callable[[], str]:
    """A question that meets these errors, one after the other, before it is answered."""
    left = list(names)

    def ask() -> str:
        if left:
            raise KafkaException(KafkaError(getattr(KafkaError, left.pop(0))))
        return "answer"

    return ask


def always(name: str) -> Callable[[], str]:
    return failing(*[name] * 1000)


def test_what_is_under_way_is_watched_while_an_answer_is_waited_for(end: Endpoint) -> None:
    answer = Future[str]()
    looks = list[int]()

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            answer.set_result("it came")

    end.meanwhile = look

    assert end.ask(lambda: end.result(answer)) == "it came"
    assert len(looks) == 3


def test_what_the_watch_finds_ends_the_question(end: Endpoint) -> None:
    def look() -> None:
        raise ConnectionLostError("no acknowledgement")

    end.meanwhile, end.is_patient = look, True

    with pytest.raises(ConnectionLostError):
        end.ask(lambda: end.result(Future[Any]()))
    with pytest.raises(ConnectionLostError):
        end.ask(always("REQUEST_TIMED_OUT"))


def test_a_topic_that_is_not_there_is_not_waited_for_without_end(
    end: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.mirror.endpoint.UNKNOWN_S", 0.0)
    end.is_patient = True

    with pytest.raises(MirrorError, match=r"^--to x:1: there is no such topic"):
        end.ask(always("UNKNOWN_TOPIC_OR_PART"))


def test_a_topic_that_is_not_known_yet_is_asked_for_again(end: Endpoint) -> None:
    assert end.ask(failing("UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE")) == "answer"


def test_an_outage_is_told_once_and_so_is_its_end(end: Endpoint, operator: Operator) -> None:
    end.is_patient, end.timeout_s = True, 0.0

    assert end.ask(failing("_TRANSPORT", "_TIMED_OUT", "NOT_CONTROLLER")) == "answer"
    assert end.ask(failing()) == "answer"
    assert operator.notes == ["--to x:1 does not answer; trying on", "--to x:1 answers again"]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("_TIMED_OUT", "^--to x:1 gave no answer within 0 s"),
        ("TOPIC_AUTHORIZATION_FAILED", "^--to x:1: not allowed on the topic"),
    ],
)
def test_before_the_copy_runs_an_endpoint_is_waited_for_as_long_as_it_was_given(
    end: Endpoint, error: str, sentence: str
) -> None:
    end.timeout_s = 0.0

    with pytest.raises(MirrorError, match=sentence):
        end.ask(always(error))


def test_no_patience_helps_against_a_no(end: Endpoint) -> None:
    end.is_patient = True

    with pytest.raises(MirrorError, match="not allowed on the topic"):
        end.ask(always("TOPIC_AUTHORIZATION_FAILED"))


@pytest.mark.parametrize(
    "wait",
    [
        lambda end, answer: end.ask(lambda: end.result(answer)),
        lambda end, answer: end.call(answer.result),
        lambda end, answer: end.ask(always("_TIMED_OUT")),
    ],
    ids=["answer", "blocking call", "pause"],
)
def test_a_stop_ends_the_wait_for_a_silent_broker(
    end: Endpoint, operator: Operator, wait: Callable[[Endpoint, Future[str]], str]
) -> None:
    never = Future[str]()
    end.is_patient = True

    def look() -> None:
        operator.wants_stop = True

    end.meanwhile = look

    with pytest.raises(StoppedError):
        wait(end, never)
    never.set_result("too late")


def test_what_is_asked_because_of_a_stop_is_answered_or_given_up_soon(
    end: Endpoint, operator: Operator
) -> None:
    operator.wants_stop = end.is_finishing = end.is_patient = True
    slow = Future[str]()
    end.meanwhile = lambda: slow.set_result("in time")

    assert end.ask(lambda: end.result(slow)) == "in time"
    end.meanwhile = time.monotonic
    with pytest.raises(StoppedError):
        end.ask(lambda: end.result(Future[Any]()))
