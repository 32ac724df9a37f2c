"""Kafka's own DumpLogSegments reads what headrace wrote, and finds nothing to complain about."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import confluent_kafka as ck
import pytest
from tests.interop.wire import DELETE_RECORDS, T0, WireClient

from headrace.kafka.tools import dump_log_segments
from headrace.testing import broker_process, running_broker

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("needs_java")]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Segments roll because their index is full: Kafka 4 refuses segment.bytes under 1 MiB.
SMALL = {"segment_index_bytes": 80, "index_interval_bytes": 512, "retention_ms": -1}
MESSAGES = 200
TRIMMED_TO = 135

# For every segment that does not start at 0 the tool writes these two lines to stderr,
# for Kafka's own files too.
_HARMLESS = re.compile(r"Non-consecutive offsets in \S+\n  -1 is followed by \d+\n")
_PAYLOAD = re.compile(r"^\| offset: \d+ .* payload: ", re.MULTILINE)
_RECORD = re.compile(r"^\| offset: (\d+) ", re.MULTILINE)


class Stopped(NamedTuple):
    """A data directory nobody has open, and where the log of each partition should end."""

    directory: Path
    ends: dict[str, int]

    def files(self, *suffixes: str) -> list[Path]:
        return sorted(
            path
            for name in self.ends
            for path in (self.directory / name).iterdir()
            if path.suffix in suffixes
        )


def write_everything(bootstrap: str) -> dict[str, int]:
    """Fill topics as real clients do: every codec, idempotence, append time, deleted records."""
    now_ms = time.time_ns() // 1_000_000
    with WireClient(bootstrap) as wire:
        for topic in (*(f"codec-{codec}" for codec in CODECS), "trimmed"):
            assert wire.create_topic(topic, **SMALL).error_code == 0
        for topic, configs in {
            "idem": {"retention_ms": -1},
            "append-time": {"message_timestamp_type": "LogAppendTime", "retention_ms": -1},
            "big": {"segment_bytes": 1_048_576, "retention_ms": -1},
            "empty": {},
        }.items():
            assert wire.create_topic(topic, **configs).error_code == 0
        wire.list_offset("empty", 0)
        for codec in CODECS:
            produce(bootstrap, f"codec-{codec}", codec)
        produce(bootstrap, "trimmed", "none")
        produce(bootstrap, "append-time", "lz4")
        for key in ("a", "b"):
            # A producer expires a day after its last timestamp: this one must be of today.
            settings = {"enable.idempotence": True}
            produce(bootstrap, "idem", "none", key=key, count=60, first_ms=now_ms, **settings)
        produce(bootstrap, "big", "none", value_bytes=20_000)
        partitions = [{"partition_index": 0, "offset": TRIMMED_TO}]
        topics = [{"name": "trimmed", "partitions": partitions}]
        wire.call(DELETE_RECORDS, 2, topics=topics, timeout=1000)
    filled = [*(f"codec-{codec}-0" for codec in CODECS), "append-time-0", "big-0", "trimmed-0"]
    return dict.fromkeys(filled, MESSAGES) | {"idem-0": 120, "empty-0": 0}


def produce(
    bootstrap: str,
    topic: str,
    codec: str,
    *,
    key: str = "k",
    count: int = MESSAGES,
    value_bytes: int = 60,
    first_ms: int = T0,
    **settings: object,
) -> None:
    producer = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "compression.type": codec,
            "batch.num.messages": 10,
            "linger.ms": 50,
            **settings,
        }
    )
    failures: list[ck.KafkaError] = []
    for index in range(count):
        producer.produce(
            topic,
            partition=0,
            key=f"{key}{index % 7}",
            value=f"{topic}-{index:05d}-".ljust(value_bytes, "x"),
            timestamp=first_ms + index,
            headers=[("i", str(index).encode()), ("null", None)] if index % 5 else None,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert (producer.flush(120), failures) == (0, [])


def after_a_clean_stop(directory: Path) -> dict[str, int]:
    with running_broker(directory) as broker:
        return write_everything(broker.bootstrap)


def after_a_kill(directory: Path) -> dict[str, int]:
    with broker_process(directory) as broker:
        ends = write_everything(broker.bootstrap)
        broker.kill()
    with running_broker(directory):
        pass
    return ends


def after_a_kill_that_took_the_indexes(directory: Path) -> dict[str, int]:
    with broker_process(directory) as broker:
        ends = write_everything(broker.bootstrap)
        broker.kill()
    for path in [*directory.glob("*/*.index"), *directory.glob("*/*.timeindex")]:
        path.unlink()
    with running_broker(directory):
        pass
    return ends


def after_one_more_restart(directory: Path) -> dict[str, int]:
    ends = after_a_kill(directory)
    with running_broker(directory) as broker:
        for codec in CODECS:
            produce(broker.bootstrap, f"codec-{codec}", codec, count=50)
    return ends | {f"codec-{codec}-0": MESSAGES + 50 for codec in CODECS}


HISTORIES: list[Callable[[Path], dict[str, int]]] = [
    after_a_clean_stop,
    after_a_kill,
    after_a_kill_that_took_the_indexes,
    after_one_more_restart,
]


@pytest.fixture(scope="module", params=HISTORIES, ids=lambda history: history.__name__)
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    directory = tmp_path_factory.mktemp("data")
    return Stopped(directory, request.param(directory))


def test_segments_were_rolled(stopped: Stopped) -> None:
    segments = {path.parent.name for path in stopped.files(".log") if int(path.stem) > 0}

    # Otherwise the tests below would look at less than they say.
    assert segments >= {*(f"codec-{codec}-0" for codec in CODECS), "big-0"}


def test_every_record_is_read_and_nothing_is_complained_about(stopped: Stopped) -> None:
    files = stopped.files(".log", ".snapshot")

    dumped = dump_log_segments(files, "--deep-iteration", "--print-data-log")

    assert (dumped.return_code, _HARMLESS.sub("", dumped.stderr)) == (0, "")
    assert "isvalid: false" not in dumped.stdout
    offsets: dict[str, list[int]] = {name: [] for name in stopped.ends}
    payloads = 0
    for section in dumped.stdout.split("Dumping ")[1:]:
        name = Path(section.split("\n", 1)[0]).parent.name
        offsets[name] += [int(offset) for offset in _RECORD.findall(section)]
        payloads += len(_PAYLOAD.findall(section))
    # Deleted records may still be in the file, up to the start of a segment.
    first = offsets["trimmed-0"][0]
    assert first <= TRIMMED_TO
    starts = dict.fromkeys(stopped.ends, 0) | {"trimmed-0": first}
    assert offsets == {name: list(range(starts[name], end)) for name, end in stopped.ends.items()}
    assert payloads == sum(map(len, offsets.values()))


def test_the_snapshot_knows_both_idempotent_producers(stopped: Stopped) -> None:
    files = [path for path in stopped.files(".snapshot") if path.parent.name == "idem-0"]

    dumped = dump_log_segments(files)

    assert (dumped.return_code, dumped.stderr) == (0, "")
    producers = re.findall(r"lastSequence: (\d+) lastOffset: (\d+)", dumped.stdout)
    assert {("59", "59"), ("59", "119")} <= set(producers)


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_every_index_fits_its_log(stopped: Stopped, check: str) -> None:
    files = stopped.files(".index", ".timeindex")

    dumped = dump_log_segments(files, check)

    assert (dumped.return_code, dumped.stderr) == (0, "")
    assert dumped.stdout.count("Dumping ") == len(files)
    if check == "--index-sanity-check":
        # An empty offset index is only called empty, Kafka's own too.
        passed = dumped.stdout.count("passed sanity check.") + dumped.stdout.count("is empty.")
        assert passed == len(files)
