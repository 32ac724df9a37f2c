"""The dead letters of the demo: how many of each reason, and what some of them look like."""

import re
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from headrace.client.bus import Bus
from headrace.pipelines.dead_letters.letter import DeadLetter
from headrace.pipelines.dead_letters.reading import each_once, read_letters
from headrace.pipelines.topic_positions import TopicPositions

_TIMEOUT_SECONDS = 30.0
_EXAMPLE_CHARACTERS = 60
# What differs between letters of one reason: numbers, and what stands in quotes.
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def all_letters(bootstrap: str, topic: str) -> list[DeadLetter]:
    """Every dead letter there is now, each once."""
    bus = Bus(bootstrap)
    positions = TopicPositions(bus)
    partitions = positions.partitions([topic])
    starts, ends = positions.oldest(partitions), positions.ends(partitions)
    bounds = {each[1]: (starts[each], ends[each]) for each in partitions}
    return list(each_once(read_letters(bus, topic, bounds, _TIMEOUT_SECONDS)))


def by_reason(letters: Iterable[DeadLetter]) -> dict[str, list[DeadLetter]]:
    """Letters of the same kind of reason together, the most frequent kind first."""
    found: dict[str, list[DeadLetter]] = {}
    for letter in letters:
        found.setdefault(_PARTICULARS.sub("…", letter.reason), []).append(letter)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def reasons_table(letters: Iterable[DeadLetter], rows: int = 12) -> Table:
    """Counts by reason, each with an example."""
    table = Table(title="dead letters", title_justify="left")
    table.add_column("count", justify="right")
    table.add_column("reason, of one of them")
    table.add_column("from", no_wrap=True)
    table.add_column("its value")
    for alike in list(by_reason(letters).values())[:rows]:
        example = alike[0]
        source = example.source
        place = f"{source.topic}-{source.partition}@{source.offset}"
        # Values are whatever was sent: never taken for markup.
        value = (example.value or b"").decode("utf-8", "replace")
        shown = value[:_EXAMPLE_CHARACTERS] + "…" * (len(value) > _EXAMPLE_CHARACTERS)
        table.add_row(f"{len(alike):,}", Text(example.reason), place, Text(shown))
    return table
