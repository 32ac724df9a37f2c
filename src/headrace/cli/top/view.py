"""What `headrace top` shows of one interval: tables on a terminal, plain ones, or JSON."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from headrace.cli.terminal import NONE, human_bytes, print_table
from headrace.cli.top.rates import GroupRate, TopicRate, group_rates, topic_rates
from headrace.cli.top.snapshot import ClusterSnapshot

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_TOPIC_COLUMNS = ("topic", "partitions", "messages/s", "bytes/s", "size")
_GROUP_COLUMNS = ("group", "state", "members", "messages/s", "lag")


class Frame(NamedTuple):
    """One interval between two looks; `trouble` says why there is nothing to show."""

    time: datetime
    bootstrap: str
    before: ClusterSnapshot | None = None
    after: ClusterSnapshot | None = None
    trouble: str | None = None

    @property
    def topics(self) -> list[TopicRate]:
        if self.before is None or self.after is None:
            return []
        return topic_rates(self.before, self.after)

    @property
    def groups(self) -> list[GroupRate]:
        if self.before is None or self.after is None:
            return []
        return group_rates(self.before, self.after)

    @property
    def heading(self) -> str:
        """When and where, and all topics together, or the trouble there is."""
        start = f"{self.time:%H:%M:%S} UTC  {self.bootstrap}"
        if self.trouble is not None:
            return f"{start}  away: {self.trouble}; trying again"
        total = sum(each.messages_per_s or 0 for each in self.topics)
        return f"{start}  {rate_text(total)} messages/s in"


def as_json(frame: Frame) -> dict[str, object]:
    """One object for the interval, with "error" instead of rates when the broker is away."""
    entry: dict[str, object] = {"time": f"{frame.time:%Y-%m-%dT%H:%M:%S.%fZ}"}
    if frame.before is None or frame.after is None:
        return entry | {"error": frame.trouble}
    return entry | {
        "seconds": round(frame.after.at_s - frame.before.at_s, 3),
        "topics": [_rounded(each._asdict()) for each in frame.topics],
        "groups": [_rounded(each._asdict()) for each in frame.groups],
    }


def print_frame(frame: Frame) -> None:
    """Plain text, a blank line after it, flushed: whoever reads it reads along."""
    print(frame.heading)
    if frame.trouble is None:
        print_table(_TOPIC_COLUMNS, _topic_rows(frame), numbers=_TOPIC_COLUMNS[1:])
        if frame.groups:
            print()
            print_table(_GROUP_COLUMNS, _group_rows(frame), numbers=_GROUP_COLUMNS[2:])
    print(flush=True)


def renderable(frame: Frame) -> "Group":
    """The same for rich, as high as it is; the screen cuts off what does not fit."""
    from rich.console import Group
    from rich.text import Text

    heading = Text(frame.heading, style="bold" if frame.trouble is None else "bold red")
    if frame.trouble is not None:
        return Group(heading)
    return Group(
        heading,
        _table(_TOPIC_COLUMNS, _topic_rows(frame), first_number=1),
        _table(_GROUP_COLUMNS, _group_rows(frame), first_number=2),
    )


def rate_text(rate: float | None) -> str:
    """A rate as people read it: decimals only where they say something."""
    if rate is None:
        return NONE
    return f"{rate:.1f}" if 0 < rate < 10 else f"{rate:,.0f}"


def _topic_rows(frame: Frame) -> Iterator[list[str]]:
    for each in frame.topics:
        bytes_per_s, size_bytes = each.bytes_per_s, each.size_bytes
        yield [
            each.topic,
            str(each.partitions),
            rate_text(each.messages_per_s),
            NONE if bytes_per_s is None else f"{human_bytes(round(bytes_per_s))}/s",
            NONE if size_bytes is None else human_bytes(size_bytes),
        ]


def _group_rows(frame: Frame) -> Iterator[list[str]]:
    for each in frame.groups:
        lag = NONE if each.lag is None else f"{each.lag:,}"
        yield [each.group, each.state, str(each.members), rate_text(each.messages_per_s), lag]


def _table(columns: tuple[str, ...], rows: Iterator[list[str]], *, first_number: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        # Folded, not cut: of two long names the ends differ.
        table.add_column(
            column, justify="right" if index >= first_number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(Text, row))  # Text: a name with [brackets] is no markup
    return table


def _rounded(entry: dict[str, object]) -> dict[str, object]:
    return {
        name: round(value, 1) if isinstance(value, float) else value
        for name, value in entry.items()
    }
