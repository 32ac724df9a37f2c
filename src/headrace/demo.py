"""`make demo`: a million messages into a broker and back, and what that left on disk.

Starts a broker on a temporary directory, ends by itself and leaves nothing behind.
"""

import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.tree import Tree

from headrace.errors import HeadraceError
from headrace.metrics import resident_bytes
from headrace.testing import BrokerProcess, broker_process

TOPIC = "demo"
PARTITIONS = 4
MESSAGE_COUNT = 1_000_000
MESSAGE_BYTES = 100
_STEP = 10_000  # messages between two looks at the progress bar
_PATIENCE_SECONDS = 60.0


class DemoError(HeadraceError):
    """The demo saw something that must not happen."""


def main() -> int:
    """Run the demo; 0 when every message came back."""
    console = Console()
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-demo-") as directory:
            with broker_process(Path(directory)) as broker:
                _tell(console, broker)
            console.print(f"removed {directory}")
    except (HeadraceError, KafkaException, OSError) as error:
        console.print(f"headrace demo: {error}", style="red", markup=False)
        return 1
    return 0


def _tell(console: Console, broker: BrokerProcess) -> None:
    seconds = broker.ready_seconds
    console.print(f"a broker on {broker.bootstrap}, ready {seconds:.2f} s after its start")
    _create_topic(broker.bootstrap)
    console.print(f"topic [bold]{TOPIC}[/bold] with {PARTITIONS} partitions\n")
    with _progress(console) as progress:
        produce_seconds = _produce(broker.bootstrap, progress)
        consume_seconds = _consume(broker.bootstrap, progress)
    rss_bytes = resident_bytes(broker.pid)
    started_at = time.perf_counter()
    code = broker.terminate()
    stop_seconds = time.perf_counter() - started_at
    if code != 0:
        raise DemoError(f"the broker ended with code {code}:\n{broker.stderr_text()}")
    console.print(_summary(produce_seconds, consume_seconds, rss_bytes, stop_seconds))
    console.print(_listing(broker.data_dir))


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description:8}"), BarColumn(40), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console)


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        future.result(_PATIENCE_SECONDS)


def _produce(bootstrap: str, progress: Progress) -> float:
    """Send every message with the strongest promise there is; return the seconds it took."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "delivery.report.only.error": True,
            "queue.buffering.max.messages": 200_000,
        }
    )
    failures: list[str] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    task = progress.add_task("produce", total=MESSAGE_COUNT)
    filler = b"." * (MESSAGE_BYTES - 8)
    started_at = time.perf_counter()
    for number in range(MESSAGE_COUNT):
        value = b"%08d" % number + filler
        while True:
            try:
                producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=on_delivery
                )
                break
            except BufferError:
                producer.poll(0.05)
        if number % _STEP == _STEP - 1:
            producer.poll(0)
            progress.update(task, completed=number + 1 - len(producer))
    left = producer.flush(_PATIENCE_SECONDS)
    if left or failures:
        raise DemoError(f"{left + len(failures)} messages were not taken: {failures[:1]}")
    progress.update(task, completed=MESSAGE_COUNT)
    return time.perf_counter() - started_at


def _consume(bootstrap: str, progress: Progress) -> float:
    """Read every message back, check that each is there once; return the seconds it took."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": TOPIC,
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    task = progress.add_task("consume", total=MESSAGE_COUNT)
    seen = bytearray(MESSAGE_COUNT)
    count = 0
    started_at = time.perf_counter()
    deadline = started_at + _PATIENCE_SECONDS
    try:
        consumer.assign(
            [TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        )
        while count < MESSAGE_COUNT:
            for message in consumer.consume(_STEP, 0.5):
                if message.error() is not None:
                    raise KafkaException(message.error())
                seen[int((message.value() or b"")[:8])] += 1
                count += 1
            progress.update(task, completed=count)
            if time.perf_counter() > deadline:
                raise DemoError(f"only {count} messages came back")
        seconds = time.perf_counter() - started_at
    finally:
        consumer.close()
    if seen != b"\x01" * MESSAGE_COUNT:
        raise DemoError("a message came back twice or not at all")
    return seconds


def _summary(
    produce_seconds: float, consume_seconds: float, rss_bytes: int, stop_seconds: float
) -> Table:
    table = Table(
        title=f"{MESSAGE_COUNT:,} messages of {MESSAGE_BYTES} bytes", title_justify="left"
    )
    table.add_column("")
    for heading in ("messages/s", "MB/s", "seconds"):
        table.add_column(heading, justify="right")
    rows = (
        ("produce, acks=all, idempotent", produce_seconds),
        ("consume", consume_seconds),
    )
    for name, seconds in rows:
        rate = MESSAGE_COUNT / seconds
        table.add_row(name, f"{rate:,.0f}", f"{rate * MESSAGE_BYTES / 1e6:.1f}", f"{seconds:.2f}")
    table.add_row("stop, cleanly", "", "", f"{stop_seconds:.2f}")
    table.caption = f"memory of the broker afterwards: {rss_bytes / 1e6:.0f} MB"
    table.caption_justify = "left"
    return table


def _listing(data_dir: Path) -> Tree:
    """What is on disk, as a tree with sizes."""
    tree = Tree(f"{data_dir}  (Kafka's own file formats)")
    for path in sorted(data_dir.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.is_dir():
            branch = tree.add(f"{path.name}/")
            for file in sorted(path.iterdir()):
                branch.add(_entry(file))
        else:
            tree.add(_entry(path))
    return tree


def _entry(path: Path) -> str:
    return f"{path.name}  [dim]{path.stat().st_size:,}[/dim]"


if __name__ == "__main__":
    sys.exit(main())
