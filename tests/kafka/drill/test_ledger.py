"""The books find every kind of mistake, shown with records that were tampered with."""

from collections.abc import Iterable

from headrace.kafka.drill.ledger import EMPTY, Account, Balance, Reading, balance, compare
from headrace.kafka.drill.message import Stream, make_streams

STREAMS = make_streams(2, 2)
SENT = 10
Record = tuple[int, int, int]  # partition, stream, sequence


def accounts(*, failed: Iterable[int] = ()) -> list[Account]:
    """Ten messages on each stream; `failed` are sequences of the first that failed."""
    books = [Account(stream) for stream in STREAMS]
    for account in books:
        account.sent = SENT
        for sequence in range(SENT):
            is_failed = account is books[0] and sequence in set(failed)
            (account.failed if is_failed else account.acknowledged).add(sequence)
    return books


def stored() -> list[Record]:
    """What a topic holds when all went well: streams interleaved, each in order."""
    return [
        (stream.partition, stream.number, sequence)
        for sequence in range(SENT)
        for stream in STREAMS
    ]


def read(records: Iterable[Record], streams: list[Stream] = STREAMS) -> Reading:
    reading = Reading(streams)
    for record in records:
        reading.take(*record)
    return reading


def judged(records: Iterable[Record], *, failed: Iterable[int] = ()) -> Balance:
    return balance(accounts(failed=failed), read(records))


def test_a_topic_that_holds_all_in_order_has_a_clean_balance() -> None:
    assert judged(stored()) == Balance(
        sent=40,
        acknowledged=40,
        failed=0,
        stored=40,
        lost=0,
        duplicated=0,
        reordered=0,
        stray=0,
        unasked=0,
    )


def test_a_missing_message_is_lost_and_named() -> None:
    records = stored()
    records.remove((STREAMS[1].partition, 1, 4))
    records.remove((STREAMS[1].partition, 1, 5))

    found = judged(records)

    assert (found.lost, found.duplicated, found.reordered) == (2, 0, 0)
    assert found.examples == ((STREAMS[1].key.decode(), STREAMS[1].partition, 4, 6),)


def test_a_lost_end_is_found_although_nothing_follows_it() -> None:
    records = [record for record in stored() if record[2] < SENT - 1]

    assert judged(records).lost == len(STREAMS)


def test_a_message_stored_twice_is_a_duplicate_and_not_a_reorder() -> None:
    records = stored()
    records.insert(20, records[3])

    found = judged(records)

    assert (found.lost, found.duplicated, found.reordered) == (0, 1, 0)


def test_two_messages_of_a_key_that_changed_places_are_a_reorder() -> None:
    records = stored()
    first, second = 8, 8 + len(STREAMS)
    records[first], records[second] = records[second], records[first]

    found = judged(records)

    assert (found.lost, found.duplicated, found.reordered) == (0, 0, 1)


def test_messages_of_different_keys_may_change_places() -> None:
    records = stored()
    records[8], records[9] = records[9], records[8]

    assert judged(records) == judged(stored())


def test_a_message_in_another_partition_than_its_keys_is_a_stray_and_lost() -> None:
    records = stored()
    partition, stream, sequence = records[12]
    records[12] = (1 - partition, stream, sequence)

    found = judged(records)

    assert (found.stray, found.lost) == (1, 1)


def test_a_message_of_nobody_is_a_stray() -> None:
    assert judged([*stored(), (0, 99, 0)]).stray == 1


def test_a_message_that_failed_is_not_lost() -> None:
    records = [record for record in stored() if record[1:] != (0, 3)]

    found = judged(records, failed=[3])

    assert (found.acknowledged, found.failed, found.lost, found.unasked) == (39, 1, 0, 0)


def test_a_message_that_failed_and_is_stored_all_the_same_is_told() -> None:
    found = judged(stored(), failed=[3])

    assert (found.lost, found.unasked) == (0, 1)


def test_a_message_that_nobody_answered_for_is_waiting() -> None:
    books = accounts()
    books[0].sent += 2

    assert balance(books, read(stored())).waiting == 2


def test_after_a_flush_all_that_did_not_fail_is_acknowledged() -> None:
    account = Account(STREAMS[0])
    account.sent = 5
    account.failed.add(2)

    account.settle_the_rest()

    assert list(account.acknowledged) == [(0, 2), (3, 5)]


def test_balances_add_up() -> None:
    whole = judged(stored())

    both = whole.plus(judged(stored()[:-1]))

    assert (both.sent, both.lost, len(both.examples)) == (80, 1, 1)
    assert EMPTY.plus(whole) == whole


def test_live_consumers_that_read_all_agree_with_the_final_reading() -> None:
    live = compare(read(stored()), read(stored()), read_again=3)

    assert (live.read, live.missed, live.vanished, live.read_again) == (40, 0, 0, 3)


def test_a_message_the_consumers_did_not_get_is_missed() -> None:
    live = compare(read(stored()[:-2]), read(stored()), read_again=0)

    assert (live.missed, live.vanished) == (2, 0)


def test_a_message_that_was_read_and_then_gone_has_vanished() -> None:
    """What a stale leader served and the new one never had."""
    live = compare(read(stored()), read(stored()[:-1]), read_again=0)

    assert (live.missed, live.vanished) == (0, 1)


def test_millions_of_messages_in_order_take_one_range() -> None:
    (stream,) = make_streams(1, 1)
    reading = Reading([stream])
    for sequence in range(300_000):
        reading.take(0, 0, sequence)

    assert list(reading.seen[0]) == [(0, 300_000)]
