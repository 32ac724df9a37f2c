"""How long publishers may wait: what Kafka needs for its elections, by its own settings.

A dead broker is noticed after `broker.session.timeout.ms`; until then its partitions have no
leader, and acks=all waits for it where it follows. When the active controller dies, the other
controllers first elect a new one, and that one gives every broker a new session: the two add up.
"""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.kafka.errors import DrillError

# A client's share: librdkafka has to notice requests that went unanswered, retries
# after a pause, refreshes its metadata and connects anew; and all share one machine here.
CLIENT_ALLOWANCE_S = 3.0
# A busy machine excuses this much and no more: beyond it the figures would say nothing of Kafka.
MOST_UNDISTURBED_S = 2.0
# A wait of more than twice what is allowed has no other reason than the cluster, if the machine
# was not busy; anything less is a figure.
FAR_BEYOND = 2.0
# No neighbour explains more than this: at the busiest, each of the nodes still gets a part of a
# core, and an election takes a few times as long, not ten times. Then something did not recover.
BEYOND_EXCUSE = 10.0
_WORTH_TELLING_S = 0.1
# A stalled broker keeps its connections and answers nothing; a client notices by its socket
# time-out alone (60 s by default). It has let go when the others elect a leader, and turns to
# that: waits ended 1.3 and 1.8 s after the election, with the session's whole time 2.5 and 3.3 s
# (two runs each, on a busy machine).
_SOCKET_SHARE_OF_SESSION = 2 / 3
_MIN_SOCKET_TIMEOUT_S = 2.0  # a busy machine is not a stalled one
_MAX_RECONNECT_BACKOFF_MS = 1000  # 10 s by default, which would be longer than an election

SESSION = "broker.session.timeout.ms"
QUORUM_FETCH = "controller.quorum.fetch.timeout.ms"
QUORUM_ELECTION = "controller.quorum.election.timeout.ms"
QUORUM_BACKOFF = "controller.quorum.election.backoff.max.ms"
SETTINGS = (SESSION, QUORUM_FETCH, QUORUM_ELECTION, QUORUM_BACKOFF)


class Timeouts(NamedTuple):
    """The cluster's settings that decide how long an election takes."""

    session_s: float
    quorum_fetch_s: float
    quorum_election_s: float
    quorum_backoff_s: float

    @property
    def broker_election_s(self) -> float:
        """Until a dead broker is fenced and others lead its partitions."""
        return self.session_s

    @property
    def controller_election_s(self) -> float:
        """Until another controller is active: noticed, a vote, and a second one after a tie.

        A vote's time-out is drawn between once and twice its setting.
        """
        return self.quorum_fetch_s + 2 * self.quorum_election_s + self.quorum_backoff_s

    def client_config(self) -> dict[str, object]:
        """What librdkafka's clients need to notice in time that others lead."""
        share_s = self.session_s * _SOCKET_SHARE_OF_SESSION
        return {
            "client.id": "headrace-drill",
            "socket.timeout.ms": round(max(_MIN_SOCKET_TIMEOUT_S, share_s) * 1000),
            "reconnect.backoff.max.ms": _MAX_RECONNECT_BACKOFF_MS,
        }


def read_timeouts(configs: Mapping[str, str | None]) -> Timeouts:
    """Take the time-outs out of a broker's configs."""
    values = list[float]()
    for name in SETTINGS:
        text = configs.get(name)
        if text is None or not text.isdecimal():
            raise DrillError(f"the broker tells no {name}; is it Apache Kafka 4?")
        values.append(int(text) / 1000)
    return Timeouts(*values)


class WaitLimit(NamedTuple):
    """The longest that a publisher may wait, as the sum of what has to happen meanwhile."""

    broker_election_s: float
    controller_election_s: float
    client_allowance_s: float
    undisturbed_s: float  # what a publisher waited on the same machine without any fault, bounded

    @property
    def seconds(self) -> float:
        return sum(self)

    def __str__(self) -> str:
        names = ("broker session", "controller election", "client allowance", "undisturbed wait")
        parts = [
            f"{name} {value:.2g} s"
            for name, value in zip(names, self, strict=True)
            if value >= _WORTH_TELLING_S
        ]
        return f"{self.seconds:.1f} s ({' + '.join(parts)})"


def wait_limit(
    timeouts: Timeouts, *, has_broker_out: bool, has_controller_out: bool, undisturbed_s: float
) -> WaitLimit:
    """What a fault may cost: a broker that is out, the active controller that is out, or both."""
    return WaitLimit(
        timeouts.broker_election_s if has_broker_out else 0.0,
        timeouts.controller_election_s if has_controller_out else 0.0,
        CLIENT_ALLOWANCE_S,
        min(undisturbed_s, MOST_UNDISTURBED_S),
    )
