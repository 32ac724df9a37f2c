import pytest

from headrace.broker.fetch_sessions import FetchSession, FetchSessions
from headrace.protocol.fetch import FetchPartition, FetchRequest


def a_request(
    *partitions: tuple[int, int], forgotten: list[tuple[bytes, list[int]]] | None = None
) -> FetchRequest:
    asked = [FetchPartition(partition, -1, offset, 1000) for partition, offset in partitions]
    topics = [(b"t", asked)] if asked else []
    return FetchRequest(0, 1, 1000, 0, 0, 0, topics, forgotten or [])


def offsets(session: FetchSession) -> dict[int, int]:
    return {partition: watched.offset for (_, partition), watched in session.watched.items()}


def take_in(session: FetchSession, request: FetchRequest) -> int:
    """How many steps it took."""
    return sum(1 for _ in session.take_in(request))


def test_an_incremental_request_changes_only_what_it_names() -> None:
    session = FetchSession(1, False, 0)
    take_in(session, a_request((0, 10), (1, 20)))

    take_in(session, a_request((1, 25)))

    assert offsets(session) == {0: 10, 1: 25}


def test_forgotten_partitions_are_dropped() -> None:
    session = FetchSession(1, False, 0)
    take_in(session, a_request((0, 10), (1, 20)))

    take_in(session, a_request(forgotten=[(b"t", [0, 7])]))

    assert offsets(session) == {1: 20}


def test_a_partition_that_got_data_goes_behind_the_others() -> None:
    session = FetchSession(1, False, 0)
    take_in(session, a_request((0, 0), (1, 0), (2, 0)))

    session.served(session.watched[b"t", 0])

    assert list(offsets(session)) == [1, 2, 0]


def test_the_epoch_wraps_to_one() -> None:
    session = FetchSession(1, False, 0)
    session.epoch = 2**31 - 1

    session.advance(0)

    assert session.epoch == 1


def test_a_full_cache_declines_while_all_sessions_are_in_use() -> None:
    sessions = FetchSessions(slots=1, eviction_ms=100)
    sessions.open(False, now_ms=0, partitions=0)

    assert sessions.open(False, now_ms=99, partitions=0) is None
    assert len(sessions) == 1


def test_a_full_cache_gives_up_the_session_unused_longest() -> None:
    sessions = FetchSessions(slots=2, eviction_ms=100)
    first, second = sessions.open(False, 0, partitions=0), sessions.open(False, 0, partitions=0)
    assert first is not None
    assert second is not None
    sessions.get(first.session_id)
    first.advance(now_ms=50)

    third = sessions.open(False, now_ms=100, partitions=0)

    assert third is not None
    assert sessions.get(second.session_id) is None
    assert sessions.get(first.session_id) is first


def test_session_ids_are_never_zero_and_never_shared() -> None:
    sessions = FetchSessions(slots=100, eviction_ms=100)

    ids = {
        session.session_id for _ in range(100) if (session := sessions.open(False, 0, partitions=0))
    }

    assert len(ids) == 100
    assert 0 not in ids


def test_the_sessions_of_a_broker_that_restarted_are_nobodys() -> None:
    """A consumer that goes on with its session must not be taken for one that came first."""
    before = FetchSessions(slots=100, eviction_ms=100)
    after = FetchSessions(slots=100, eviction_ms=100)

    former = [session for _ in range(100) if (session := before.open(False, 0, 1))]
    for _ in range(100):
        after.open(False, 0, 1)

    assert [after.get(session.session_id) for session in former] == [None] * 100


def test_a_session_id_in_use_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([7, 7, 7, 8])
    monkeypatch.setattr("headrace.broker.fetch_sessions.randbelow", lambda most: next(drawn))
    sessions = FetchSessions(slots=2, eviction_ms=100)

    first, second = sessions.open(False, 0, 1), sessions.open(False, 0, 1)

    assert first is not None
    assert second is not None
    assert (first.session_id, second.session_id) == (8, 9)


def test_many_partitions_are_taken_in_step_by_step_and_few_at_once() -> None:
    session = FetchSession(1, False, 0)

    assert take_in(session, a_request(*((p, 0) for p in range(5000)))) >= 10
    assert take_in(session, a_request(*((p, 1) for p in range(50)))) == 0
    assert take_in(session, a_request(forgotten=[(b"t", list(range(5000)))])) >= 10
    assert not session.watched


def test_a_session_for_more_partitions_than_there_is_room_for_is_not_made() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=100, max_partitions=1000)
    assert sessions.open(False, 0, 600) is not None

    assert sessions.open(False, 50, 401) is None
    assert sessions.open(False, 50, 400) is not None
    assert sessions.partition_count == 1000


def test_sessions_unused_for_long_make_room_for_a_large_one() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=100, max_partitions=1000)
    for _ in range(3):
        sessions.open(False, 0, 300)

    assert sessions.open(False, 100, 700) is not None

    assert len(sessions) == 2
    assert sessions.partition_count == 1000


def test_a_session_that_grows_beyond_the_room_is_given_up() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=100, max_partitions=1000)
    session = sessions.open(False, 0, 10)
    assert session is not None
    take_in(session, a_request(*((p, 0) for p in range(10))))
    assert sessions.settle(session, 0)

    take_in(session, a_request(*((p, 0) for p in range(1001))))

    assert not sessions.settle(session, 0)
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_forgotten_partitions_give_their_room_back() -> None:
    sessions = FetchSessions(slots=10, eviction_ms=100, max_partitions=1000)
    session = sessions.open(False, 0, 500)
    assert session is not None
    take_in(session, a_request(*((p, 0) for p in range(500))))
    take_in(session, a_request(forgotten=[(b"t", list(range(400)))]))

    assert sessions.settle(session, 0)

    assert sessions.partition_count == 100
