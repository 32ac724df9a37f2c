"""Fetch sessions (KIP-227): only what has changed comes back, on both engines."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import (
    DELETE_RECORDS,
    FETCH,
    Engine,
    WireClient,
    batch_of,
    fetch_fields,
    request,
)

from headrace.records.batch import peek_header
from headrace.testing import running_broker

NONE, UNKNOWN_TOPIC, SESSION_NOT_FOUND, INVALID_SESSION_EPOCH = 0, 3, 70, 71
LONGER_THAN_THE_TEST_MS = 600_000


def fetch(wire: WireClient, session: tuple[int, int], **offsets_and_limits: Any) -> Any:
    offsets = offsets_and_limits.pop("offsets", {})
    return wire.call(FETCH, 12, **fetch_fields(offsets, session=session, **offsets_and_limits))


def open_session(wire: WireClient, *topics: str) -> int:
    answer = fetch(wire, (0, 0), offsets=dict.fromkeys(topics, 0))
    assert answer.error_code == NONE
    assert answer.session_id != 0
    return int(answer.session_id)


def served(answer: Any) -> dict[str, list[int]]:
    """Base offset of the first batch by topic, for all topics in the answer."""
    firsts = {}
    for topic in answer.responses:
        head = peek_header(topic.partitions[0].records or b"")
        firsts[topic.topic] = [head.base_offset] if head else []
    return firsts


def test_a_new_session_answers_with_every_partition(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    full, empty = new_topic(), new_topic()
    wire.produce(full, batch_of(3))

    answer = fetch(wire, (0, 0), offsets={full: 0, empty: 0})

    assert served(answer) == {full: [0], empty: []}
    assert answer.session_id > 0


def test_no_session_is_made_for_those_who_want_none(wire: WireClient, topic: str) -> None:
    answer = fetch(wire, (0, -1), offsets={topic: 0})

    assert (answer.error_code, answer.session_id) == (NONE, 0)
    assert served(answer) == {topic: []}


def test_nothing_new_is_an_empty_answer(wire: WireClient, topic: str) -> None:
    session_id = open_session(wire, topic)

    answer = fetch(wire, (session_id, 1))

    assert (answer.error_code, answer.session_id, answer.responses) == (NONE, session_id, ())


def test_only_partitions_with_news_come_back(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    quiet, busy = new_topic(), new_topic()
    session_id = open_session(wire, quiet, busy)
    wire.produce(busy, batch_of(3))

    first = fetch(wire, (session_id, 1))
    # The consumer goes on behind what it has got: the new offset is all it sends.
    second = fetch(wire, (session_id, 2), offsets={busy: 3})
    third = fetch(wire, (session_id, 3))

    assert (served(first), served(second), served(third)) == ({busy: [0]}, {}, {})


def test_what_was_not_consumed_comes_again(wire: WireClient, topic: str) -> None:
    session_id = open_session(wire, topic)
    wire.produce(topic, batch_of(3))

    answers = [served(fetch(wire, (session_id, epoch))) for epoch in (1, 2)]

    assert answers == [{topic: [0]}, {topic: [0]}]


def test_an_incremental_fetch_waits_for_all_partitions_of_the_session(
    wire: WireClient, new_topic: Callable[..., str], engine: Engine
) -> None:
    first, second = new_topic(), new_topic()
    session_id = open_session(wire, first, second)
    fields = fetch_fields(
        {}, session=(session_id, 1), max_wait=LONGER_THAN_THE_TEST_MS, min_bytes=1
    )
    wire.send(request(FETCH, 12, **fields))
    with WireClient(engine.bootstrap) as other:
        other.produce(second, batch_of(1))

    assert served(wire.receive()) == {second: [0]}


def test_topics_are_added_and_forgotten(wire: WireClient, new_topic: Callable[..., str]) -> None:
    first, second = new_topic(), new_topic()
    session_id = open_session(wire, first)

    added = fetch(wire, (session_id, 1), offsets={second: 0}, forgotten=[first])
    wire.produce(first, batch_of(1))
    wire.produce(second, batch_of(1))
    after = fetch(wire, (session_id, 2))

    assert (served(added), served(after)) == ({second: []}, {second: [0]})


def test_a_new_log_start_is_news(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch_of(3))
    session_id = open_session(wire, topic)
    fetch(wire, (session_id, 1), offsets={topic: 3})
    partitions = [{"partition_index": 0, "offset": 2}]
    wire.call(DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": partitions}], timeout=1000)

    answer = fetch(wire, (session_id, 2))

    assert answer.responses[0].partitions[0].log_start_offset == 2


def test_an_error_is_told_every_time(wire: WireClient, topic: str) -> None:
    session_id = open_session(wire, topic, "no-such-topic")

    answer = fetch(wire, (session_id, 1))

    assert [part.topic for part in answer.responses] == ["no-such-topic"]
    assert answer.responses[0].partitions[0].error_code == UNKNOWN_TOPIC


def test_an_unknown_session_is_not_found(wire: WireClient, topic: str) -> None:
    answer = fetch(wire, (987_654_321, 1), offsets={topic: 0})

    assert (answer.error_code, answer.session_id) == (SESSION_NOT_FOUND, 0)
    assert answer.responses == ()


@pytest.mark.parametrize("epoch", [2, 5, 2**31 - 1])
def test_a_skipped_epoch_is_refused_and_the_right_one_still_taken(
    wire: WireClient, topic: str, epoch: int
) -> None:
    session_id = open_session(wire, topic)

    wrong = fetch(wire, (session_id, epoch))
    right = fetch(wire, (session_id, 1))

    assert (wrong.error_code, wrong.responses) == (INVALID_SESSION_EPOCH, ())
    assert (right.error_code, right.session_id) == (NONE, session_id)


def test_a_closed_session_is_gone(wire: WireClient, topic: str) -> None:
    session_id = open_session(wire, topic)

    closing = fetch(wire, (session_id, -1), offsets={topic: 0})
    after = fetch(wire, (session_id, 1))

    assert (closing.error_code, closing.session_id, served(closing)) == (NONE, 0, {topic: []})
    assert after.error_code == SESSION_NOT_FOUND


def test_a_session_outlives_the_connection_it_was_made_on(
    wire: WireClient, topic: str, engine: Engine
) -> None:
    session_id = open_session(wire, topic)

    with WireClient(engine.bootstrap) as other:
        answer = fetch(other, (session_id, 1))

    assert (answer.error_code, answer.session_id) == (NONE, session_id)


def test_a_new_session_replaces_the_one_it_names(wire: WireClient, topic: str) -> None:
    old = open_session(wire, topic)

    renewed = fetch(wire, (old, 0), offsets={topic: 0})
    after = fetch(wire, (old, 1))

    assert (renewed.error_code, served(renewed)) == (NONE, {topic: []})
    assert renewed.session_id not in (0, old)
    assert after.error_code == SESSION_NOT_FOUND


def test_a_session_of_before_a_restart_is_nobody_elses() -> None:
    """Whoever comes back first opens the first session, and must not be answered for the other."""
    with running_broker() as broker:
        with WireClient(broker.bootstrap) as wire:
            for name in ("mine", "theirs"):
                assert wire.create_topic(name).error_code == NONE
            former = open_session(wire, "mine")
        broker.restart()

        with WireClient(broker.bootstrap) as wire:
            newer = open_session(wire, "theirs")
            answer = fetch(wire, (former, 1))

    assert newer != former
    assert (answer.error_code, answer.responses) == (SESSION_NOT_FOUND, ())
