"""What a drill does to a cluster: one function for each scenario.

Each ends with every node running again; that the cluster is whole is waited for by the caller.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from headrace.kafka.drill.ledger import Account
from headrace.kafka.drill.message import Stream, make_streams
from headrace.kafka.drill.plan import Scenario
from headrace.kafka.drill.publisher import publisher_config, write_bulk
from headrace.kafka.drill.report import Resync
from headrace.kafka.drill.stage import Stage
from headrace.kafka.drill.timeline import EventKind
from headrace.kafka.layout import BROKER
from headrace.kafka.node import Node

_CONTROLLER_TIMEOUT_S = 60.0


class Bulk(NamedTuple):
    """What was written into a topic of its own, to be read at the end."""

    topic: str
    streams: list[Stream]
    accounts: list[Account]


class Outcome(NamedTuple):
    """What was done: to whom, when, and which elections it made necessary."""

    nodes: tuple[int, ...]
    fault_s: float
    has_broker_out: bool
    has_controller_out: bool
    resync: Resync | None = None
    bulk: Bulk | None = None


def kill_leader(stage: Stage) -> Outcome:
    """Kill the leader of most partitions."""
    stage.place_leaders()
    return _kill(stage, stage.broker_to_hurt())


def kill_follower(stage: Stage) -> Outcome:
    """Kill a broker that leads none of the partitions; acks=all waits for it all the same."""
    node = stage.follower_to_hurt()
    stage.place_leaders(avoid=node.id)
    return _kill(stage, node)


def kill_controller(stage: Stage) -> Outcome:
    """Kill the active controller, which leads no partition if that can be arranged."""
    stage.wait_until(
        lambda: stage.observer.controller is not None,
        _CONTROLLER_TIMEOUT_S,
        lambda: "no controller was active",
    )
    assert stage.observer.controller is not None
    node = stage.cluster.node(stage.observer.controller)
    if BROKER in node.roles and not stage.place_leaders(avoid=node.id):
        stage.timeline.add(EventKind.NOTE, f"node {node.id} also leads partitions", node=node.id)
    return _kill(stage, node)


def _kill(stage: Stage, node: Node) -> Outcome:
    stage.calm()
    is_controller = stage.observer.controller == node.id
    role = _role(stage, node, is_controller=is_controller)
    stage.observer.put_away(node.id)
    fault = stage.timeline.add(EventKind.FAULT, f"node {node.id} killed: {role}", node=node.id)
    stage.run_aside(node.kill)
    stage.await_out(node)
    if is_controller:
        stage.phase = "until another controller is active"
        stage.wait_until(
            lambda: stage.observer.controller != node.id,
            _CONTROLLER_TIMEOUT_S,
            lambda: "no other controller became active",
        )
    _hold(stage)
    stage.bring_back(node)
    return Outcome((node.id,), fault.at_s, BROKER in node.roles, is_controller)


def pause_leader(stage: Stage) -> Outcome:
    """Let the leader of most partitions stall until others lead, then let it go on.

    It wakes up as a leader of old, with requests in its sockets that it takes for new.
    """
    stage.place_leaders()
    node = stage.broker_to_hurt()
    stage.calm()
    is_controller = stage.observer.controller == node.id
    role = _role(stage, node, is_controller=is_controller)
    stage.observer.put_away(node.id)
    fault = stage.timeline.add(EventKind.FAULT, f"node {node.id} paused: {role}", node=node.id)
    node.pause()
    stage.await_out(node)
    _hold(stage)
    node.resume()
    paused_s = stage.timeline.now_s() - fault.at_s
    stage.timeline.add(
        EventKind.NODE, f"node {node.id} resumed after {paused_s:.1f} s", node=node.id
    )
    return Outcome((node.id,), fault.at_s, True, is_controller)


def restart_all(stage: Stage) -> Outcome:
    """Restart every node cleanly, one at a time, the active controller last."""
    stage.place_leaders()
    stage.calm()
    fault_s = stage.timeline.now_s()
    waiting = [*stage.cluster.nodes]
    restarted = list[int]()
    while waiting:
        node = min(waiting, key=lambda each: (each.id == stage.observer.controller, each.id))
        waiting.remove(node)
        _stop(stage, node)
        stage.bring_back(node)
        stage.await_whole()
        restarted.append(node.id)
    return Outcome(tuple(restarted), fault_s, True, True)


def resync(stage: Stage) -> Outcome:
    """Stop a follower, write much, start it, and measure until it is in every ISR again."""
    plan = stage.plan
    bulk = _new_bulk(stage)
    node = stage.follower_to_hurt()
    stage.place_leaders(avoid=node.id)
    stage.calm()
    fault_s = stage.timeline.now_s()
    _stop(stage, node)
    stage.await_out(node)
    write_s = _write(stage, bulk)
    start_s = stage.timeline.now_s()
    jvm_start_s = stage.bring_back(node)
    stage.phase = f"until node {node.id} is in sync"
    stage.wait_until(
        lambda: stage.observer.is_in_sync(node.id),
        plan.whole_timeout_s,
        lambda: f"node {node.id} did not get back into the ISR",
    )
    back_s = (stage.observer.joined_at_s(node.id) or stage.timeline.now_s()) - start_s
    facts = Resync(
        node=node.id,
        messages=plan.resync_messages,
        missed_bytes=plan.resync_messages * plan.message_bytes,
        write_s=write_s,
        jvm_start_s=min(jvm_start_s, back_s),
        catch_up_s=max(0.0, back_s - jvm_start_s),
    )
    stage.timeline.add(
        EventKind.ISR,
        f"node {node.id} back in the ISR {facts.back_s:.1f} s after its start: JVM "
        f"{facts.jvm_start_s:.1f} s, catching up {facts.catch_up_s:.1f} s, "
        f"{facts.mb_per_s:.1f} MB/s",
        node=node.id,
    )
    return Outcome((node.id,), fault_s, True, False, facts, bulk)


SCENARIOS: dict[Scenario, Callable[[Stage], Outcome]] = {
    Scenario.LEADER: kill_leader,
    Scenario.FOLLOWER: kill_follower,
    Scenario.CONTROLLER: kill_controller,
    Scenario.PAUSE: pause_leader,
    Scenario.ROLLING: restart_all,
    Scenario.RESYNC: resync,
}


def _hold(stage: Stage) -> None:
    stage.phase = "going on without it"
    stage.sleep(stage.plan.hold_s)


def _role(stage: Stage, node: Node, *, is_controller: bool) -> str:
    led, total = stage.leads(node.id), len(stage.observer.partitions(stage.topic))
    words = [f"leads {led} of {total} partitions"] if BROKER in node.roles else []
    if is_controller:
        words.append("active controller")
    return ", ".join(words) or "controller that is not active"


def _stop(stage: Stage, node: Node) -> None:
    role = _role(stage, node, is_controller=stage.observer.controller == node.id)
    stage.phase = f"node {node.id} stops"
    stage.observer.put_away(node.id)
    stage.timeline.add(EventKind.FAULT, f"node {node.id} stops: {role}", node=node.id)
    stage.run_aside(node.stop)
    stage.timeline.add(EventKind.NODE, f"node {node.id} stopped", node=node.id)


def _new_bulk(stage: Stage) -> Bulk:
    number = sum(topic.startswith(f"{stage.topic}-resync") for topic in stage.observer.topics)
    topic = f"{stage.topic}-resync-{number}"
    partitions = stage.plan.partitions
    stage.create_topic(topic)
    stage.observer.topics[topic] = "resync partition"
    stage.wait_until(
        lambda: len(stage.observer.partitions(topic)) == partitions,
        stage.plan.whole_timeout_s,
        lambda: f"topic {topic} did not appear",
    )
    stage.await_whole()
    streams = make_streams(1, partitions)
    return Bulk(topic, streams, [Account(stream) for stream in streams])


def _write(stage: Stage, bulk: Bulk) -> float:
    """Write the messages that the stopped node misses; return the seconds it took."""
    plan = stage.plan
    stage.phase = "writing what the node misses"
    stage.timeline.add(EventKind.NOTE, f"writing {plan.resync_messages:,} messages")
    started = time.monotonic()
    write_bulk(
        stage.cluster.bus,
        publisher_config(stage.timeouts),
        bulk.topic,
        bulk.accounts,
        messages=plan.resync_messages,
        message_bytes=plan.message_bytes,
        on_progress=lambda sent: stage.tick(sent, plan.resync_messages),
    )
    seconds = time.monotonic() - started
    rate = plan.resync_messages / max(seconds, 1e-9)
    stage.timeline.add(EventKind.NOTE, f"written in {seconds:.1f} s, {rate:,.0f} messages a second")
    return seconds
