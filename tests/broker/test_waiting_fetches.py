from headrace.broker.waiting_fetches import WaitingFetches


class Recorder:
    def __init__(self) -> None:
        self.bytes: list[int] = []

    def on_append(self, log: object, byte_count: int) -> None:
        self.bytes.append(byte_count)


def test_a_waiter_hears_of_appends_to_its_logs_only() -> None:
    waiting, waiter = WaitingFetches(), Recorder()
    waiting.add(waiter, ["a", "b"])

    waiting.notify("a", 5)
    waiting.notify("c", 7)

    assert waiter.bytes == [5]


def test_a_removed_waiter_hears_nothing() -> None:
    waiting, waiter = WaitingFetches(), Recorder()
    waiting.add(waiter, ["a"])

    waiting.remove(waiter, ["a"])
    waiting.notify("a", 5)

    assert waiter.bytes == []


def test_waking_all_reaches_everyone_with_more_than_any_minimum() -> None:
    waiting, first, second = WaitingFetches(), Recorder(), Recorder()
    waiting.add(first, ["a"])
    waiting.add(second, ["b"])

    waiting.wake_all()

    assert min(first.bytes + second.bytes) > 2**31


def test_a_waiter_may_remove_itself_while_it_is_told() -> None:
    waiting = WaitingFetches()

    class Once(Recorder):
        def on_append(self, log: object, byte_count: int) -> None:
            super().on_append(log, byte_count)
            waiting.remove(self, ["a"])

    first, second = Once(), Once()
    waiting.add(first, ["a"])
    waiting.add(second, ["a"])

    waiting.notify("a", 1)
    waiting.notify("a", 1)

    assert (first.bytes, second.bytes) == ([1], [1])


def test_places_are_counted_once_for_each_log_and_waiter() -> None:
    waiting, waiter = WaitingFetches(), Recorder()

    waiting.add(waiter, ["a", "b", "a"])
    waiting.add(Recorder(), ["a"])
    assert waiting.places == 3

    waiting.remove(waiter, ["a", "b", "a", "c"])
    assert waiting.places == 1
