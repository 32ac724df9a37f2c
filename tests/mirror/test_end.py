from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.mirror.end import End
from headrace.mirror.errors import MirrorError
from headrace.mirror.listener import Silence
from headrace.mirror.writer import ConnectionLostError


@pytest.fixture
def end() -> End:
    return End("--to x:1", {}, timeout_s=120, listener=Silence())


def test_what_is_under_way_is_watched_while_an_answer_is_waited_for(end: End) -> None:
    answer = Future[str]()
    looks = list[int]()

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            answer.set_result("it came")

    end.meanwhile = look

    assert end.ask_admin(lambda: answer) == "it came"
    assert len(looks) == 3


def test_what_the_watch_finds_ends_the_question(end: End) -> None:
    def look() -> None:
        raise ConnectionLostError("no acknowledgement")

    end.meanwhile, end.is_patient = look, True

    with pytest.raises(ConnectionLostError):
        end.ask_admin(lambda: Future[Any]())


def test_a_topic_that_is_not_there_is_not_waited_for_without_end(
    end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.mirror.end.UNKNOWN_S", 0.0)
    end.is_patient = True

    def ask() -> None:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    with pytest.raises(MirrorError, match=r"--to x:1: .*[Uu]nknown topic"):
        end.ask(ask)
