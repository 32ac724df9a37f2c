"""All publishers and consumers of a drill, as one thing that is started, asked and ended."""

from collections.abc import Callable

from headrace.client.bus import Bus
from headrace.kafka.drill.acks import AckSeries
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.ledger import Account
from headrace.kafka.drill.message import make_streams
from headrace.kafka.drill.plan import Plan
from headrace.kafka.drill.publisher import Publisher, publisher_config
from headrace.kafka.drill.readers import LiveConsumers, consumer_config
from headrace.kafka.drill.timeline import EventKind, Timeline


class Load:
    """Publishers at a steady rate and a group that reads along."""

    def __init__(
        self,
        bus: Bus,
        topic: str,
        group: str,
        plan: Plan,
        timeouts: Timeouts,
        timeline: Timeline,
    ) -> None:
        self.streams = make_streams(plan.publishers, plan.partitions)
        self.accounts = [Account(stream) for stream in self.streams]
        self._failures_told = 0
        self._timeline = timeline
        self.publishers = [
            Publisher(
                bus,
                publisher_config(timeouts),
                topic,
                [each for each in self.accounts if each.stream.publisher == number],
                rate=plan.rate / plan.publishers,
                message_bytes=plan.message_bytes,
                now_s=timeline.now_s,
                on_failure=self._tell_failure,
            )
            for number in range(plan.publishers)
        ]
        self.consumers = LiveConsumers(
            bus, consumer_config(timeouts, group), topic, self.streams, plan.consumers
        )

    @property
    def sent(self) -> int:
        return sum(publisher.sent for publisher in self.publishers)

    @property
    def acknowledged(self) -> int:
        return sum(publisher.acknowledged for publisher in self.publishers)

    @property
    def failed(self) -> int:
        return sum(publisher.failed for publisher in self.publishers)

    @property
    def series(self) -> list[AckSeries]:
        """Every publisher's acknowledgements."""
        return [publisher.acks for publisher in self.publishers]

    @property
    def fatal_errors(self) -> list[str]:
        """What made publishers give up."""
        return [each.fatal_error for each in self.publishers if each.fatal_error is not None]

    def start(self) -> None:
        self.consumers.start()
        for publisher in self.publishers:
            publisher.start()

    def finish(self, timeout_s: float) -> None:
        """Stop sending and wait for what is on its way; no longer than `timeout_s` each."""
        for publisher in self.publishers:
            publisher.stop()
        for publisher in self.publishers:
            publisher.finish(timeout_s)

    def settled_mark(self) -> Callable[[], bool]:
        """A question: is everything that is sent up to now answered for?"""
        marks = [(publisher, publisher.sent) for publisher in self.publishers]
        return lambda: all(
            each.settled >= sent or each.fatal_error is not None for each, sent in marks
        )

    def tell_next_failure(self) -> None:
        """The first failure from now on goes into the timeline; the others are counted."""
        self._failures_told = 0

    def _tell_failure(self, text: str) -> None:
        self._failures_told += 1
        if self._failures_told == 1:
            self._timeline.add(EventKind.ACKS, f"first failed delivery: {text}")
