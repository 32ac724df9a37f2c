from headrace.kafka.drill.timeline import Event, EventKind, Timeline


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_an_event_has_the_second_it_happened_at() -> None:
    clock = Clock()
    timeline = Timeline(clock=clock)
    clock.now += 2.5

    event = timeline.add(EventKind.FAULT, "node 1 killed", node=1)

    assert event == Event(2.5, EventKind.FAULT, "node 1 killed", 1)


def test_an_event_told_late_stands_where_it_happened() -> None:
    clock = Clock()
    timeline = Timeline(clock=clock)
    clock.now += 5
    timeline.add(EventKind.NOTE, "later")

    timeline.add(EventKind.ACKS, "earlier", at_s=3)

    assert [event.text for event in timeline.between(0, 10)] == ["earlier", "later"]
    assert [event.text for event in timeline.between(3, 5)] == ["earlier"]


def test_a_listener_hears_of_each_event() -> None:
    heard = list[Event]()
    timeline = Timeline(heard.append)

    timeline.add(EventKind.NOTE, "hello")

    assert [event.text for event in heard] == ["hello"]
