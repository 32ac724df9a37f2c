"""`headrace pipeline dead-letters`: list what pipelines could not decode, and send it again."""

import base64
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.connection import Connection, connects
from headrace.cli.kafka_errors import is_coordinator_starting
from headrace.cli.offsets import Partition
from headrace.cli.output import (
    NONE,
    CommandError,
    Json,
    UsageError,
    Yes,
    confirm,
    print_json,
    print_table,
)
from headrace.cli.positions import OLDEST, Position, parse_position
from headrace.cli.read_range import Offsets, find_partitions
from headrace.errors import SourceError
from headrace.pipelines.dead_letters.letter import DeadLetter, default_topic, position_group
from headrace.pipelines.dead_letters.reading import CONSUMER_CONFIG, each_once, read_letters
from headrace.pipelines.dead_letters.resubmission import PRODUCER_CONFIG, Plan, Resubmission
from headrace.pipelines.dead_letters.sent import Sent, TooManyRangesError, read_sent

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

EPILOG = "Example: headrace pipeline dead-letters table --summary"

_PLACE = re.compile(r"(\d+):(\d+)")
_SHOWN_CHARACTERS = 60
_PAUSE_S = 0.1
Bounds = dict[int, tuple[int, int]]


@connects
def dead_letters(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The pipeline whose letters to look at.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="The dead-letter topic.", show_default="NAME.dead-letters"),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those whose reason has TEXT in it.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="From here on in the dead-letter topic: -1h, 120."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count them by source topic and reason.")
    ] = False,
    resubmit: Annotated[
        bool, typer.Option("--resubmit", help="Send them to their source topic again.")
    ] = False,
    to: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="With --resubmit: send them there instead.")
    ] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION:OFFSET",
            help="Only the letter there in the dead-letter topic; may be repeated.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="With --resubmit: also those sent again before.")
    ] = False,
    yes: Yes = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """List the records that a pipeline could not decode, or send them again.

    Each record is listed once, however often it was written. What was sent again is remembered in
    the consumer group NAME.dead-letters, so that it is not sent twice by accident.
    """
    box = _Box(connection, name, topic)
    if (to or all_) and not resubmit:
        raise UsageError(f"{'--to' if to else '--all'} goes with --resubmit")
    if summary and resubmit:
        raise UsageError("--summary and --resubmit do not go together")
    start = OLDEST if since is None else parse_position(since, int(time.time() * 1000))
    is_wanted = _condition(name if topic else None, reason, offset or ())
    try:
        with_letters = box.open(is_named=topic is not None)
        if not with_letters:
            _tell_none(box.topic, is_json=is_json)
        elif resubmit:
            _resubmit(box, start, is_wanted, limit, to, is_again=all_, is_yes=yes, is_json=is_json)
        elif summary:
            _summarise(filter(is_wanted, each_once(box.letters(start))), is_json=is_json)
        else:
            _list(box, filter(is_wanted, each_once(box.letters(start))), limit, is_json=is_json)
    except SourceError as error:
        raise CommandError(str(error)) from error
    finally:
        box.close()


class _Box:
    """A dead-letter topic and the group that remembers what was sent again of it."""

    def __init__(self, connection: Connection, name: str | None, topic: str | None) -> None:
        if name is None and topic is None:
            raise UsageError("name a pipeline, or its dead-letter topic with --topic")
        self.topic = topic or default_topic(name or "")
        self.group = position_group(name) if name else self.topic
        self.connection = connection
        self._partitions = list[Partition]()
        self._consumer: Consumer | None = None
        self._offsets: Offsets | None = None

    def open(self, *, is_named: bool) -> bool:
        """Find the topic; False: a pipeline that never met a bad record has none."""
        config = {**CONSUMER_CONFIG, "group.id": self.group}
        self._consumer = self.connection.consumer(config)
        if not is_named and not self.has_topic(self.topic):
            return False
        self._partitions = find_partitions(self.connection, self.consumer, [self.topic], None)
        self._offsets = Offsets(self.connection, self.connection.admin(), self._partitions)
        return True

    @property
    def consumer(self) -> "Consumer":
        assert self._consumer is not None
        return self._consumer

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def has_topic(self, topic: str) -> bool:
        known = self.consumer.list_topics(timeout=self.connection.timeout_s).topics
        return topic in known

    def bounds(self, start: Position) -> Bounds:
        assert self._offsets is not None
        starts = self._offsets.starts(start)
        ends = self._offsets.ends(None, is_following=False).offsets
        return {each[1]: (starts[each], ends[each]) for each in self._partitions}

    def letters(self, start: Position) -> Iterator[DeadLetter]:
        timeout_s = self.connection.timeout_s
        return read_letters(self.consumer, self.topic, self.bounds(start), timeout_s)

    def sent(self) -> dict[int, Sent]:
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(*each) for each in self._partitions]
        found = self._ask_coordinator(
            lambda: self.consumer.committed(wanted, self.connection.timeout_s)
        )
        return {each.partition: read_sent(each.offset, each.metadata) for each in found}

    def commit(self, sent: dict[int, Sent]) -> None:
        from confluent_kafka import TopicPartition

        offsets = [
            TopicPartition(self.topic, number, each.position, each.metadata)
            for number, each in sent.items()
        ]
        if offsets:
            self._ask_coordinator(lambda: self.consumer.commit(offsets=offsets, asynchronous=False))

    def _ask_coordinator(self, ask: "Callable[[], list[TopicPartition]]") -> "list[TopicPartition]":
        """Ask again while the group's coordinator starts, as it does on a new cluster."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.connection.timeout_s
        while True:
            try:
                answer = ask()
                for each in answer:
                    if each.error is not None:
                        raise KafkaException(each.error)
            except KafkaException as error:
                is_over = time.monotonic() >= deadline
                if is_over or not is_coordinator_starting(error.args[0]):
                    raise
                time.sleep(_PAUSE_S)
            else:
                return answer


def _condition(
    pipeline: str | None, reason: str | None, places: "list[str] | tuple[str, ...]"
) -> Callable[[DeadLetter], bool]:
    wanted = {_parse_place(each) for each in places}

    def is_wanted(letter: DeadLetter) -> bool:
        return (
            (pipeline is None or letter.pipeline == pipeline)
            and (reason is None or reason.lower() in letter.reason.lower())
            and (not wanted or (letter.letter_partition, letter.letter_offset) in wanted)
        )

    return is_wanted


def _parse_place(text: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise UsageError(f"--offset {text}: write PARTITION:OFFSET, such as 0:12")
    return int(match[1]), int(match[2])


def _tell_none(topic: str, *, is_json: bool) -> None:
    if not is_json:
        print(f"no dead letters: there is no topic {topic}")


def _list(box: _Box, letters: Iterator[DeadLetter], limit: int | None, *, is_json: bool) -> None:
    sent = box.sent()
    rows = list[tuple[object, ...]]()
    for number, letter in enumerate(letters):
        if limit is not None and number >= limit:
            break
        known = sent.get(letter.letter_partition, Sent())
        is_sent = letter.letter_offset in known
        if is_json:
            print_json(_as_object(letter, is_sent=is_sent))
            continue
        rows.append(
            (
                f"{letter.letter_partition}:{letter.letter_offset}",
                f"{letter.topic}:{letter.partition}:{letter.offset}",
                _time(letter.timestamp_ms),
                "yes" if is_sent else NONE,
                letter.reason,
                _shown(letter.value),
            )
        )
    if not is_json:
        print_table(("letter", "source", "time", "sent again", "reason", "value"), rows)


def _summarise(letters: Iterator[DeadLetter], *, is_json: bool) -> None:
    counts = Counter((each.pipeline, each.topic, each.reason) for each in letters)
    columns = ("count", "pipeline", "topic", "reason")
    rows = [(count, *key) for key, count in counts.most_common()]
    if is_json:
        for row in rows:
            print_json(dict(zip(columns, row, strict=True)))
    else:
        print_table(columns, rows, numbers=("count",))


def _resubmit(
    box: _Box,
    start: Position,
    is_wanted: Callable[[DeadLetter], bool],
    limit: int | None,
    to: str | None,
    *,
    is_again: bool,
    is_yes: bool,
    is_json: bool,
) -> None:
    # All of the topic is looked at: what was sent is known by source, and a source may be in it
    # more than once. What comes in meanwhile is left for the next time.
    everything = box.bounds(OLDEST)
    chosen_from = box.bounds(start)
    sent = box.sent()

    def is_chosen(letter: DeadLetter) -> bool:
        return letter.letter_offset >= chosen_from[letter.letter_partition][0] and is_wanted(letter)

    def read() -> Iterator[DeadLetter]:
        return read_letters(box.consumer, box.topic, everything, box.connection.timeout_s)

    plan = Plan(read(), sent, is_chosen, is_again=is_again, limit=limit)
    for target in [to] if to else list(plan.topics):
        find_partitions(box.connection, box.consumer, [target], None)  # or says it is not there
    if plan.chosen:
        where = to or ", ".join(plan.topics)
        confirm(f"Send {_count(len(plan.chosen))} to {where} again?", is_yes=is_yes)
    resubmission = Resubmission(box.connection.producer(dict(PRODUCER_CONFIG)), to)
    if plan.chosen:
        for letter in read():
            if (letter.letter_partition, letter.letter_offset) in plan.chosen:
                resubmission.send(letter)
    resubmission.finish()
    ends = {number: end for number, (_, end) in everything.items()}
    try:
        box.commit(plan.remember(resubmission.delivered, ends))
    except TooManyRangesError as error:
        raise CommandError(
            f"{_count(len(resubmission.delivered))} sent, but group {box.group} cannot remember "
            "so many out of turn; send the rest with --resubmit without --reason and --offset"
        ) from error
    _report(resubmission, box.topic, to, is_json=is_json)


def _report(resubmission: Resubmission, topic: str, to: str | None, *, is_json: bool) -> None:
    delivered = Counter(to or source[1] for source in resubmission.delivered)
    if is_json:
        failed = resubmission.failures.total()
        print_json({"topic": topic, "sent": dict(delivered), "failed": failed})
    elif not delivered and not resubmission.failures:
        print("nothing to send: all of them were sent before, or none is meant")
    for name, count in delivered.items() if not is_json else ():
        print(f"sent {_count(count)} to {name}")
    if resubmission.failures:
        reasons = "; ".join(f"{count}: {why}" for why, count in resubmission.failures.items())
        raise CommandError(f"{_count(resubmission.failures.total())} not sent ({reasons})")


def _as_object(letter: DeadLetter, *, is_sent: bool) -> dict[str, object]:
    return {
        "pipeline": letter.pipeline,
        "reason": letter.reason,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        **_bytes_member("key", letter.key),
        **_bytes_member("value", letter.value),
        "headers": [
            {"key": name, **_bytes_member("value", value)} for name, value in letter.headers
        ],
        "letter": f"{letter.letter_partition}:{letter.letter_offset}",
        "sent_again": is_sent,
    }


def _bytes_member(name: str, value: bytes | None) -> dict[str, str | None]:
    # As `headrace consume --json` has it.
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode()}


def _shown(value: bytes | None) -> str:
    if value is None:
        return NONE
    text = value[: _SHOWN_CHARACTERS * 4].decode("utf-8", "backslashreplace")
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return NONE
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _count(number: int) -> str:
    return "1 dead letter" if number == 1 else f"{number} dead letters"
