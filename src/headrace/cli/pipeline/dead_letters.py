"""`headrace pipeline dead-letters`: list what pipelines could not decode, and send it again."""

import base64
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.connection import Connection, connects
from headrace.cli.endings import CommandError, UsageError, tell
from headrace.cli.pipeline.dead_letter_topic import DeadLetterTopic
from headrace.cli.terminal import NONE, Json, Yes, confirm, print_json, print_table
from headrace.client.positions import MAX_TIME_MS, OLDEST, Position, parse_position
from headrace.pipelines.dead_letters.letter import DeadLetter, LetterSource
from headrace.pipelines.dead_letters.reading import each_once
from headrace.pipelines.dead_letters.sent import Sent, TooManyRangesError

if TYPE_CHECKING:
    from headrace.pipelines.dead_letters.resubmission import Resubmission

EPILOG = "Example: headrace pipeline dead-letters table --summary"

_PLACE = re.compile(r"(\d+):(\d+)")
_SHOWN_CHARACTERS = 60
_NO_TIMESTAMP = -1  # Kafka's own word for a record without one


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
    dlq = DeadLetterTopic(connection, name, topic)
    if (to or all_) and not resubmit:
        raise UsageError(f"{'--to' if to else '--all'} goes with --resubmit")
    if summary and resubmit:
        raise UsageError("--summary and --resubmit do not go together")
    start = OLDEST if since is None else parse_position(since, int(time.time() * 1000))
    is_wanted = _condition(name if topic else None, reason, offset or ())
    try:
        with_letters = dlq.open(is_named=topic is not None)
        if not with_letters:
            _tell_none(dlq.topic, is_json=is_json)
        elif resubmit:
            _resubmit(
                dlq,
                start,
                is_wanted,
                limit,
                to,
                is_again=all_,
                is_yes=yes,
                is_json=is_json,
            )
        elif summary:
            _summarise(filter(is_wanted, each_once(dlq.letters(start))), is_json=is_json)
        else:
            _list(
                dlq,
                filter(is_wanted, each_once(dlq.letters(start))),
                limit,
                is_json=is_json,
            )
    finally:
        dlq.close()


def _condition(
    pipeline: str | None, reason: str | None, places: "list[str] | tuple[str, ...]"
) -> Callable[[DeadLetter], bool]:
    wanted = {_parse_place(each) for each in places}

    def is_wanted(letter: DeadLetter) -> bool:
        return (
            (pipeline is None or letter.source.pipeline == pipeline)
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


def _list(
    dlq: DeadLetterTopic,
    letters: Iterator[DeadLetter],
    limit: int | None,
    *,
    is_json: bool,
) -> None:
    sent = dlq.sent()
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
                _place(letter.source),
                _time(letter.timestamp_ms),
                "yes" if is_sent else NONE,
                letter.reason,
                _shown(letter.value),
            )
        )
    if not is_json:
        print_table(("letter", "source", "time", "sent again", "reason", "value"), rows)


def _summarise(letters: Iterator[DeadLetter], *, is_json: bool) -> None:
    counts = Counter((each.source.pipeline, each.source.topic, each.reason) for each in letters)
    columns = ("count", "pipeline", "topic", "reason")
    rows = [(count, *key) for key, count in counts.most_common()]
    if is_json:
        for row in rows:
            print_json(dict(zip(columns, row, strict=True)))
    else:
        print_table(columns, rows, numbers=("count",))


def _resubmit(
    dlq: DeadLetterTopic,
    start: Position,
    is_wanted: Callable[[DeadLetter], bool],
    limit: int | None,
    to: str | None,
    *,
    is_again: bool,
    is_yes: bool,
    is_json: bool,
) -> None:
    from headrace.pipelines.dead_letters.resubmission import Resubmission, ResubmissionPlan

    # All of the topic is looked at: what was sent is known by source, and a source may be in it
    # more than once. What comes in meanwhile is left for the next time.
    everything = dlq.bounds(OLDEST)
    chosen_from = dlq.bounds(start)
    sent = dlq.sent()

    def is_chosen(letter: DeadLetter) -> bool:
        return letter.letter_offset >= chosen_from[letter.letter_partition][0] and is_wanted(letter)

    def read() -> Iterator[DeadLetter]:
        return dlq.letters_between(everything)

    plan = ResubmissionPlan(read(), sent, is_chosen, is_again=is_again, limit=limit)
    dlq.connection.partitions([to] if to else plan.topics)  # or says which is not there
    if not to:
        _tell_of_other_topics(dlq, plan.sources)
    if plan.chosen:
        where = to or ", ".join(plan.topics)
        confirm(f"Send {_count(len(plan.chosen))} to {where} again?", is_yes=is_yes)
    resubmission = Resubmission(dlq.connection.bus, to)
    if plan.chosen:
        for letter in read():
            if (letter.letter_partition, letter.letter_offset) in plan.chosen:
                resubmission.send(letter)
    resubmission.finish()
    ends = {number: end for number, (_, end) in everything.items()}
    try:
        dlq.commit(plan.remember(resubmission.delivered, ends))
    except TooManyRangesError as error:
        raise CommandError(
            f"{_count(len(resubmission.delivered))} sent, but group {dlq.group} cannot remember "
            "so many out of turn; send the rest with --resubmit without --reason and --offset"
        ) from error
    _report(resubmission, dlq.topic, to, is_json=is_json)
    _refuse_cut(dlq, plan.cut)


def _tell_of_other_topics(dlq: DeadLetterTopic, sources: Iterable[LetterSource]) -> None:
    """Say which letters go to another topic than they are from, though it has the same name."""
    cluster_id = dlq.cluster_id()
    ids = dlq.topic_ids(each.topic for each in sources)
    foreign, older = Counter[str](), Counter[str]()
    for each in sources:
        if each.cluster_id and cluster_id and each.cluster_id != cluster_id:
            foreign[each.topic] += 1
        elif each.topic_id and ids.get(each.topic, each.topic_id) != each.topic_id:
            older[each.topic] += 1
    for topic, count in foreign.items():
        tell(f"{_count(count)} of topic {topic} came from another cluster than this one")
    for topic, count in older.items():
        tell(f"{_count(count)} came from a topic {topic} that was deleted and made again since")


def _refuse_cut(dlq: DeadLetterTopic, sources: "list[LetterSource]") -> None:
    """Raise CommandError for letters that lack a part of their record, naming where that is."""
    if not sources:
        return
    first = sources[0]
    sentence = (
        f"{_count(len(sources))} not sent: cut when written, so not what the record was, such as "
        f"{_place(first)}"
    )
    if dlq.has_record(first):
        sentence += (
            f"; the record itself is still there: headrace consume {first.topic} --partition "
            f"{first.partition} --from {first.offset} --count 1"
        )
    else:
        sentence += "; the record itself is no longer on its topic"
    raise CommandError(sentence)


def _place(source: LetterSource) -> str:
    return f"{source.topic}:{source.partition}:{source.offset}"


def _report(resubmission: "Resubmission", topic: str, to: str | None, *, is_json: bool) -> None:
    delivered = Counter(to or source.topic for source in resubmission.delivered)
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
        "pipeline": letter.source.pipeline,
        "reason": letter.reason,
        "cluster_id": letter.source.cluster_id or None,
        "topic_id": letter.source.topic_id or None,
        "topic": letter.source.topic,
        "partition": letter.source.partition,
        "offset": letter.source.offset,
        "timestamp": letter.timestamp_ms,
        **_bytes_member("key", letter.key),
        **_bytes_member("value", letter.value),
        "headers": [
            {"key": name, **_bytes_member("value", value)} for name, value in letter.headers
        ],
        "cut": letter.cut or None,
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
    if timestamp_ms == _NO_TIMESTAMP:
        return NONE
    if not 0 <= timestamp_ms <= MAX_TIME_MS:
        return f"@{timestamp_ms}"  # producers send any number
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _count(number: int) -> str:
    return "1 dead letter" if number == 1 else f"{number} dead letters"
