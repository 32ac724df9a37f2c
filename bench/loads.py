"""The loads: each makes a topic, drives the broker, and returns what it measured."""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.clients import (
    ClientResult,
    Traffic,
    beating,
    librdkafka_consume,
    librdkafka_produce,
    replay,
)
from bench.members import write_members
from bench.stage import Metered, Sample, Stage

MESSAGE_BYTES = 100
BATCH_MESSAGES = 140  # of 100 B: 15.4 KB, under the Java producer's default batch.size
FETCH_BATCH_MESSAGES = 560  # of 100 B: 61 KB, so that a 1 MB fetch wastes little on a cut batch
BIG_BATCH_MESSAGES = 9000  # of 100 B: just under 1 MB, the most a broker takes by default

# Groups that heartbeat beside a load: as many as a big site has, at the clients' default pace.
GROUPS = 500
MEMBERS_A_GROUP = 3
HEARTBEAT_MS = 3_000
GROUP_TURNS = 3  # quiet and busy in turn, since the machine's own speed drifts

MESSAGES = "msg/s"
MEGABYTES = "MB/s"


def _per_million(metered: Metered, messages: int) -> float:
    return metered.broker_cpu_seconds / messages * 1e6


def _produced(result: ClientResult) -> Traffic:
    assert result.produce is not None
    return result.produce


def _fetched(result: ClientResult) -> Traffic:
    assert result.fetch is not None
    return result.fetch


def _rate(load: Traffic, unit: str) -> float:
    return load.messages_per_second if unit == MESSAGES else load.megabytes_per_second


def produce_with_librdkafka(
    stage: Stage, *, key: str, value_bytes: int, acks: str, unit: str
) -> list[Sample]:
    with stage.topic() as topic:
        metered = stage.meter(
            lambda: librdkafka_produce(
                stage.broker.port,
                topic.name,
                value_bytes=value_bytes,
                seconds=stage.seconds,
                settings={"acks": acks},
            )
        )
    load = _produced(metered.result)
    return [Sample(key, _rate(load, unit), _per_million(metered, load.messages))]


def produce_batches(
    stage: Stage,
    *,
    key: str,
    messages: int,
    connections: int,
    in_flight: int,
    partitions: int = 1,
    acks: int = 1,
) -> list[Sample]:
    with stage.topic(partitions) as topic:
        file = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=messages, acks=acks)
        stage.open_partitions(topic, file)
        metered = stage.meter(
            lambda: replay(
                stage.broker.port,
                produce=file,
                connections=connections,
                in_flight=in_flight,
                seconds=stage.seconds,
            )
        )
    load = _produced(metered.result)
    return [Sample(key, load.messages_per_second, _per_million(metered, load.messages))]


def ping(stage: Stage, *, key: str, acks: int) -> list[Sample]:
    with stage.topic() as topic:
        file = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=1, acks=acks)
        metered = stage.meter(
            lambda: replay(stage.broker.port, produce=file, seconds=stage.seconds)
        )
    load = _produced(metered.result)
    return [
        Sample(f"{key}-p50", load.p50_us, _per_million(metered, load.messages)),
        Sample(f"{key}-p99", load.p99_us),
        Sample(f"{key}-p99.9", load.p999_us),
    ]


def fetch_cached_backlog(stage: Stage) -> list[Sample]:
    with stage.topic() as topic:
        file = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=FETCH_BATCH_MESSAGES)
        requests = stage.backlog_bytes // file.stat().st_size
        stage.fill(
            topic, value_bytes=MESSAGE_BYTES, messages=FETCH_BATCH_MESSAGES, requests=requests
        )
        fetch = stage.fetch_file(topic)
        samples = []
        for connections in (1, 4):
            metered = stage.meter(
                partial(
                    replay,
                    stage.broker.port,
                    fetch=fetch,
                    fetch_connections=connections,
                    seconds=stage.seconds,
                    loops=True,
                )
            )
            load = _fetched(metered.result)
            samples.append(
                Sample(
                    f"fetch-{connections}",
                    load.megabytes_per_second,
                    _per_million(metered, load.messages),
                )
            )
        metered = stage.meter(
            lambda: librdkafka_consume(
                stage.broker.port,
                topic.name,
                messages=requests * FETCH_BATCH_MESSAGES,
                seconds=stage.seconds,
                # By default librdkafka pauses 1 s when its queue is full, so that a faster
                # broker measures slower.
                settings={"fetch.queue.backoff.ms": "10"},
            )
        )
    load = _fetched(metered.result)
    cpu = _per_million(metered, load.messages)
    return [*samples, Sample("librdkafka-consume", load.messages_per_second, cpu)]


def fetch_while_producing(stage: Stage) -> list[Sample]:
    with stage.topic() as topic:
        produce = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=BATCH_MESSAGES)
        fetch = stage.fetch_file(topic)
        metered = stage.meter(
            lambda: replay(
                stage.broker.port,
                produce=produce,
                in_flight=5,
                fetch=fetch,
                seconds=stage.seconds,
            )
        )
    produced, fetched = _produced(metered.result), _fetched(metered.result)
    cpu = _per_million(metered, produced.messages + fetched.messages)
    return [
        Sample("mixed-produce", produced.messages_per_second, cpu),
        Sample("mixed-fetch", fetched.messages_per_second, cpu),
    ]


def produce_behind_backlog(stage: Stage) -> list[Sample]:
    with stage.topic() as topic:
        file = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=BATCH_MESSAGES)

        def produce() -> ClientResult:
            return replay(
                stage.broker.port,
                produce=file,
                connections=8,
                in_flight=5,
                seconds=stage.seconds,
            )

        empty = stage.meter(produce)
        stage.fill(
            topic,
            value_bytes=MESSAGE_BYTES,
            messages=BIG_BATCH_MESSAGES,
            requests=stage.backlog_messages // BIG_BATCH_MESSAGES,
        )
        behind = stage.meter(produce)
    empty_load, behind_load = _produced(empty.result), _produced(behind.result)
    empty_rate, behind_rate = empty_load.messages_per_second, behind_load.messages_per_second
    return [
        Sample("backlog-empty", empty_rate, _per_million(empty, empty_load.messages)),
        Sample("backlog-behind", behind_rate, _per_million(behind, behind_load.messages)),
        Sample("backlog-kept", behind_rate / empty_rate),
    ]


def load_among_groups(stage: Stage) -> list[Sample]:
    """What is left of produce and fetch while the members of many groups heartbeat."""
    members = stage.scratch / "members.beat"
    write_members(members, stage.broker.port, groups=GROUPS, members=MEMBERS_A_GROUP)
    with stage.topic() as topic:
        produce_file = stage.produce_file(topic, value_bytes=MESSAGE_BYTES, messages=BATCH_MESSAGES)
        fetch_file = stage.fetch_file(topic)
        port, seconds = stage.broker.port, stage.seconds
        produced, beats = _quiet_and_busy(
            "groups-produce-kept",
            stage,
            members,
            lambda: replay(port, produce=produce_file, connections=8, in_flight=5, seconds=seconds),
        )
        fetched, more_beats = _quiet_and_busy(
            "groups-fetch-kept",
            stage,
            members,
            lambda: replay(
                port, fetch=fetch_file, fetch_connections=4, seconds=seconds, loops=True
            ),
        )
    beats += more_beats
    return [
        produced,
        fetched,
        Sample("heartbeat-p50", statistics.median(beat.p50_us for beat in beats)),
        Sample("heartbeat-p99", statistics.median(beat.p99_us for beat in beats)),
    ]


def _quiet_and_busy(
    row: str, stage: Stage, members: Path, run: Callable[[], ClientResult]
) -> tuple[Sample, list[Traffic]]:
    """The busy rate as a share of the quiet one, its CPU, and the heartbeats of the busy turns."""
    quiet: list[float] = []
    busy: list[float] = []
    costs: list[float] = []
    beats: list[Traffic] = []
    for _ in range(GROUP_TURNS):
        quiet.append(sum(load.messages_per_second for load in _loads(run())))
        with beating(
            stage.broker.port,
            members,
            interval_ms=HEARTBEAT_MS,
            seconds=stage.seconds + HEARTBEAT_MS / 1000,
        ) as finish:
            metered = stage.meter(run)
            loads = _loads(metered.result)
            busy.append(sum(load.messages_per_second for load in loads))
            costs.append(_per_million(metered, sum(load.messages for load in loads)))
            beats.append(finish())
    kept = statistics.median(busy) / statistics.median(quiet)
    return Sample(row, kept, statistics.median(costs)), beats


def _loads(result: ClientResult) -> list[Traffic]:
    return [load for load in (result.produce, result.fetch) if load is not None]
