"""Watches a cluster from outside and notes in the timeline who leads, who is in sync, who controls.

It asks one broker after the other, never those the drill has put away: a stalled one would
hold up the answer, and one that just came back may tell of a world that is gone.
"""

import contextlib
import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.client.addresses import Address
from headrace.client.bus import Bus
from headrace.client.cluster_questions import (
    ClusterMetadata,
    Replica,
    active_controller,
    cluster_metadata,
)
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.client.wire import WireConnection
from headrace.kafka.drill.timeline import EventKind, Timeline

_EVERY_S = 0.1
_CONTROLLER_EVERY_S = 0.25
_ANSWER_TIMEOUT_S = 1.0
_LISTED = 8  # partitions named in one line of the timeline; more are counted

View = dict[Partition, Replica]


class Change(NamedTuple):
    """What differs between two looks at the cluster."""

    kind: EventKind
    text: str
    node: int | None


def changes(before: View, after: View, labels: Mapping[str, str]) -> list[Change]:
    """Tell two views apart: leaders that moved, nodes that left or joined an ISR.

    `labels` say what a topic's partitions are called: "partition", or something longer.
    """
    moved = dict[tuple[str, int | None, int | None], list[int]]()
    left = dict[tuple[str, int], list[int]]()
    joined = dict[tuple[str, int], list[int]]()
    for topic, number in sorted(before.keys() & after.keys()):
        old, new = before[topic, number], after[topic, number]
        if old.leader != new.leader:
            moved.setdefault((topic, old.leader, new.leader), []).append(number)
        for node in {*old.isr} - {*new.isr}:
            left.setdefault((topic, node), []).append(number)
        for node in {*new.isr} - {*old.isr}:
            joined.setdefault((topic, node), []).append(number)
    found = [
        _moved(old_leader, new_leader, _names(labels[topic], numbers))
        for (topic, old_leader, new_leader), numbers in moved.items()
    ]
    for (topic, node), numbers in sorted(left.items()):
        text = f"ISR shrank: without node {node} in {_names(labels[topic], numbers)}"
        found.append(Change(EventKind.ISR, text, node))
    for (topic, node), numbers in sorted(joined.items()):
        text = f"ISR grew: node {node} in {_names(labels[topic], numbers)}"
        found.append(Change(EventKind.ISR, text, node))
    return found


def _moved(old: int | None, new: int | None, names: str) -> Change:
    if new is None:
        return Change(EventKind.LEADER, f"no leader for {names} (was node {old})", old)
    was = "nobody" if old is None else f"node {old}"
    return Change(EventKind.LEADER, f"node {new} leads {names} (was {was})", new)


def _names(label: str, numbers: list[int]) -> str:
    if len(numbers) > _LISTED:
        return f"{len(numbers)} {label}s"
    return f"{label}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


class Observer:
    """Two threads that look, until `stop`.

    `topics` are those whose changes are told, with what their partitions are called.
    """

    def __init__(self, brokers: Mapping[int, Address], timeline: Timeline) -> None:
        self.topics = dict[str, str]()
        self.controller: int | None = None
        self.view: View = {}
        self._brokers = dict(brokers)
        self._timeline = timeline
        self._away = set[int]()
        self._joined_at_s = dict[int, float]()
        self._is_stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch_partitions, name="drill-partitions", daemon=True),
            threading.Thread(target=self._watch_controller, name="drill-controller", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def put_away(self, node: int) -> None:
        """Do not ask this node any more; others are asked about it."""
        self._away.add(node)

    def take_all_back(self) -> None:
        """Ask every node again: all of them know how things stand."""
        self._away.clear()

    def here(self) -> dict[int, Address]:
        """The brokers that can be asked."""
        return {node: at for node, at in self._brokers.items() if node not in self._away}

    def partitions(self, topic: str | None = None) -> list[Replica]:
        """The drill's partitions as last seen, or those of one of its topics."""
        view = self.view
        return [each for each in view.values() if topic is None or each.topic == topic]

    def is_out(self, node: int) -> bool:
        """Whether others have taken over from this node: it leads nothing, no ISR waits for it."""
        return bool(self.view) and not any(
            each.leader in (node, None) or node in each.isr for each in self.partitions()
        )

    def is_in_sync(self, node: int) -> bool:
        """Whether the node is in the ISR of each of its partitions."""
        return all(node in each.isr for each in self.partitions() if node in each.replicas)

    def joined_at_s(self, node: int) -> float | None:
        """When the node was last seen to join an ISR."""
        return self._joined_at_s.get(node)

    def _watch_partitions(self) -> None:
        while not self._is_stopping.wait(_EVERY_S):
            found = _ask_first(self.here().values())
            if found is not None:
                self._take(found)

    def _take(self, found: ClusterMetadata) -> None:
        topics = dict(self.topics)
        view = {
            (each.topic, each.partition): each for each in found.partitions if each.topic in topics
        }
        at_s = self._timeline.now_s()
        for change in changes(self.view, view, topics):
            self._timeline.add(change.kind, change.text, node=change.node, at_s=at_s)
        for key in self.view.keys() & view.keys():
            for node in {*view[key].isr} - {*self.view[key].isr}:
                self._joined_at_s[node] = at_s
        self.view = view

    def _watch_controller(self) -> None:
        while not self._is_stopping.wait(_CONTROLLER_EVERY_S):
            bootstrap = ",".join(f"{host}:{port}" for host, port in self.here().values())
            with contextlib.suppress(BusError):  # none is elected: look again
                found = active_controller(Bus(bootstrap), _ANSWER_TIMEOUT_S)
                if found != self.controller and self.controller is not None:
                    text = f"node {found} is the active controller (was node {self.controller})"
                    self._timeline.add(EventKind.CONTROLLER, text, node=found)
                self.controller = found


def _ask_first(addresses: Iterable[Address]) -> ClusterMetadata | None:
    for address in addresses:
        if (found := _ask(address)) is not None:
            return found
    return None


def _ask(address: Address) -> ClusterMetadata | None:
    try:
        with WireConnection(address, timeout_s=_ANSWER_TIMEOUT_S) as connection:
            return cluster_metadata(connection)
    except BusError:
        return None
