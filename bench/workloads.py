"""The table of workloads, and which rows of the report come of each.

To add one: write a function in `loads` that takes a Stage and returns Samples, and
give it an entry in WORKLOADS.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import loads
from bench.stage import Sample, Stage

MICROSECONDS = "µs"
SHARE = "of empty"
QUIET_SHARE = "of quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the report."""

    key: str
    title: str
    unit: str
    is_higher_better: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One load and its rows. Quick: part of the two-minute run."""

    name: str
    rows: tuple[Row, ...]
    run: Callable[[Stage], list[Sample]]
    is_quick: bool = False
    is_durable: bool = False
    needs_warm_up: bool = True


def _librdkafka_workload(
    key: str,
    title: str,
    *,
    value_bytes: int = loads.MESSAGE_BYTES,
    acks: str = "1",
    unit: str = loads.MESSAGES,
    is_quick: bool = False,
    is_durable: bool = False,
) -> Workload:
    return Workload(
        name=key,
        rows=(Row(key=key, title=title, unit=unit),),
        run=partial(
            loads.produce_with_librdkafka, key=key, value_bytes=value_bytes, acks=acks, unit=unit
        ),
        is_quick=is_quick,
        is_durable=is_durable,
    )


def _replay_workload(
    key: str,
    title: str,
    *,
    messages: int,
    connections: int,
    in_flight: int,
    partitions: int = 1,
    acks: int = 1,
    is_quick: bool = False,
    is_durable: bool = False,
) -> Workload:
    return Workload(
        name=key,
        rows=(Row(key=key, title=title, unit=loads.MESSAGES),),
        run=partial(
            loads.produce_batches,
            key=key,
            messages=messages,
            connections=connections,
            in_flight=in_flight,
            partitions=partitions,
            acks=acks,
        ),
        is_quick=is_quick,
        is_durable=is_durable,
    )


def _ping_workload(key: str, title: str, *, acks: int, is_durable: bool = False) -> Workload:
    return Workload(
        name=key,
        rows=tuple(
            Row(
                key=f"{key}-{share}",
                title=f"{title}, {share}",
                unit=MICROSECONDS,
                is_higher_better=False,
            )
            for share in ("p50", "p99", "p99.9")
        ),
        run=partial(loads.ping, key=key, acks=acks),
        is_quick=not is_durable,
        is_durable=is_durable,
    )


_SMALL = "one 100 B message a request, 16 connections"
_BATCHES = "15 KB batches of 100 B, 8 connections x 5"
_SYNC = "acks=all on disk (fsync)"
_GROUPS = f"while {loads.GROUPS} groups x {loads.MEMBERS_A_GROUP} members heartbeat"

WORKLOADS: tuple[Workload, ...] = (
    _librdkafka_workload("librdkafka-100B", "librdkafka, 100 B, acks=1", is_quick=True),
    _librdkafka_workload(
        "librdkafka-100B-all",
        "librdkafka, 100 B, acks=all in page cache",
        acks="all",
    ),
    _librdkafka_workload(
        "librdkafka-1KB",
        "librdkafka, 1 KB, acks=1",
        value_bytes=1024,
        unit=loads.MEGABYTES,
        is_quick=True,
    ),
    _librdkafka_workload(
        "librdkafka-256KB",
        "librdkafka, 256 KB, acks=1",
        value_bytes=256 * 1024,
        unit=loads.MEGABYTES,
    ),
    Workload(
        name="fetch",
        rows=(
            Row(key="fetch-1", title="fetch a cached backlog, 1 connection", unit=loads.MEGABYTES),
            Row(key="fetch-4", title="fetch a cached backlog, 4 connections", unit=loads.MEGABYTES),
            Row(
                key="librdkafka-consume",
                title="librdkafka, consume a cached backlog of 100 B",
                unit=loads.MESSAGES,
            ),
        ),
        run=loads.fetch_cached_backlog,
        is_quick=True,
    ),
    Workload(
        name="mixed",
        rows=(
            Row(key="mixed-produce", title="while fetching: produced", unit=loads.MESSAGES),
            Row(key="mixed-fetch", title="while producing: fetched", unit=loads.MESSAGES),
        ),
        run=loads.fetch_while_producing,
    ),
    _ping_workload("ping", "one message to its ack, acks=1", acks=1),
    _replay_workload(
        "small-16x1",
        f"{_SMALL}, 1 in flight",
        messages=1,
        connections=16,
        in_flight=1,
        is_quick=True,
    ),
    _replay_workload(
        "small-16x5",
        f"{_SMALL}, 5 in flight",
        messages=1,
        connections=16,
        in_flight=5,
        is_quick=True,
    ),
    *(
        _replay_workload(
            f"partitions-{partitions}",
            f"{_BATCHES}, {partitions} partition{'s' * (partitions > 1)}",
            messages=loads.BATCH_MESSAGES,
            connections=8,
            in_flight=5,
            partitions=partitions,
            is_quick=partitions == 16,
        )
        for partitions in (1, 16, 200)
    ),
    Workload(
        name="backlog",
        rows=(
            Row(key="backlog-empty", title=f"{_BATCHES}, empty log", unit=loads.MESSAGES),
            Row(key="backlog-behind", title=f"{_BATCHES}, behind 50 M", unit=loads.MESSAGES),
            Row(key="backlog-kept", title="rate kept behind 50 M messages", unit=SHARE),
        ),
        run=loads.produce_behind_backlog,
        needs_warm_up=False,
    ),
    Workload(
        name="groups",
        rows=(
            Row(key="groups-produce-kept", title=f"produce rate kept {_GROUPS}", unit=QUIET_SHARE),
            Row(key="groups-fetch-kept", title=f"fetch rate kept {_GROUPS}", unit=QUIET_SHARE),
            *(
                Row(
                    key=f"heartbeat-{share}",
                    title=f"a heartbeat among them, {share}",
                    unit=MICROSECONDS,
                    is_higher_better=False,
                )
                for share in ("p50", "p99")
            ),
        ),
        run=loads.load_among_groups,
        needs_warm_up=False,
    ),
    _librdkafka_workload(
        "librdkafka-100B-fsync", f"librdkafka, 100 B, {_SYNC}", acks="all", is_durable=True
    ),
    _replay_workload(
        "small-16x1-fsync",
        f"{_SMALL}, 1 in flight, {_SYNC}",
        messages=1,
        connections=16,
        in_flight=1,
        acks=-1,
        is_durable=True,
    ),
    _ping_workload("ping-fsync", f"one message to its ack, {_SYNC}", acks=-1, is_durable=True),
)
