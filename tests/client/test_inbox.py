from collections.abc import Iterator

import pytest

from headrace.client.inbox import Inbox
from headrace.client.message import Message

PLACE, OTHER = ("orders", 0), ("orders", 1)


def message(offset: int, partition: int = 0) -> Message:
    return Message("orders", partition, offset, 0, None, b"")


def inbox_with(*messages: Message) -> Inbox:
    inbox = Inbox()
    inbox.begin({PLACE: -2, OTHER: -2})
    inbox.put([*messages])
    return inbox


def test_what_was_taken_is_done_when_more_is_asked_for_and_not_before() -> None:
    inbox = inbox_with(message(4), message(5), message(6))

    assert [each.offset for each in inbox.take(2)] == [4, 5]
    assert inbox.pop_done() == {}
    inbox.finish()
    assert inbox.pop_done() == {PLACE: 6}
    assert inbox.pop_done() == {}
    assert inbox.take(1) == [message(6)]
    assert (inbox.pop_done(), inbox.taken) == ({}, {PLACE: 7})


def test_the_next_message_is_the_first_that_nobody_took() -> None:
    inbox = inbox_with(message(4), message(9, 1), message(5))

    assert (inbox.position(PLACE), inbox.received[PLACE]) == (4, 6)
    inbox.take(1)
    assert (inbox.position(PLACE), inbox.position(OTHER)) == (5, 9)
    inbox.take(10)
    assert (inbox.position(PLACE), inbox.position(OTHER)) == (6, 10)
    assert not inbox


def test_a_partition_that_goes_takes_its_messages_along_and_leaves_nothing_done() -> None:
    inbox = inbox_with(message(4), message(9, 1), message(5), message(10, 1))
    inbox.take(2)

    inbox.end([PLACE])
    inbox.finish()

    assert inbox.received.keys() == {OTHER}
    assert inbox.pop_done() == {OTHER: 10}
    assert inbox.take(10) == [message(10, 1)]


def test_after_a_seek_what_was_taken_before_is_not_done() -> None:
    inbox = inbox_with(message(4), message(5))
    inbox.take(1)

    inbox.move(PLACE, 100)
    inbox.finish()

    assert (inbox.pop_done(), inbox.taken, inbox.position(PLACE)) == ({}, {}, 100)
    assert not inbox


class Interrupted(list[Message]):
    """Ctrl-C comes when the last of them was looked at."""

    def __iter__(self) -> Iterator[Message]:
        yield from super().__iter__()
        raise KeyboardInterrupt


def test_what_was_interrupted_on_its_way_in_has_not_arrived() -> None:
    inbox = inbox_with(message(4))

    with pytest.raises(KeyboardInterrupt):
        inbox.put(Interrupted([message(5), message(6)]))
    # From here it is asked for again.
    assert (inbox.received[PLACE], inbox.take(9)) == (5, [message(4)])
