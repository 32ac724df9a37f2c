"""The topic, the lake and the table, asked the same questions in SQL; they must give one answer.

The lake keeps every record, bad ones and tombstones too. The table has one row for each sensor
whose last good reading was not followed by a tombstone. Both can be computed from the topic.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from demo.sensors import SCHEMA, Books
from headrace.errors import HeadraceError

RECORDS = "select count(*) as records, count_if(value is null) as tombstones from {place}"

_REQUIRED = [words[0] for words in (part.split() for part in SCHEMA.split(",")) if "not" in words]
_FIELDS = SCHEMA.replace(" not null", "")
# Hundredths, as whole numbers: sums of fractions depend on their order.
_HUNDREDTHS = "sum(cast(round({column} * 100) as bigint)) as hundredths"
LATEST = f"""\
select count(*) as sensors, {_HUNDREDTHS.format(column="last.celsius")}
from (select max_by(struct(value is null as is_retired, reading.celsius), offset) as last
      from (select *, from_json(cast(value as string), '{_FIELDS}') as reading from {{place}})
      where value is null or ({" and ".join(f"reading.{name} is not null" for name in _REQUIRED)})
      group by key)
where not last.is_retired"""

TABLE = f"select count(*) as sensors, {_HUNDREDTHS.format(column='celsius')} from {{place}}"


class DifferenceError(HeadraceError):
    """Two places that hold the same feed gave two answers."""


class Answers(NamedTuple):
    """What one place says; None where the question has no meaning for it."""

    records: int | None = None
    tombstones: int | None = None
    sensors: int | None = None
    hundredths: int | None = None
    bad: int | None = None


_QUESTIONS = {
    "records": "records",
    "tombstones": "of them tombstones (a sensor went out of use)",
    "sensors": "sensors by their last good reading",
    "hundredths": "sum of their celsius, in hundredths",
    "bad": "records that are no reading",
}


def answers_of_books(books: Books) -> Answers:
    """What the feed itself knows."""
    return Answers(
        records=books.sent,
        tombstones=books.retired,
        sensors=len(books.latest),
        hundredths=sum(round(celsius * 100) for celsius in books.latest.values()),
        bad=books.bad.total(),
    )


def check_equal(places: Mapping[str, Answers]) -> None:
    """Raise DifferenceError, naming all answers, unless each question has one."""
    for field, question in _QUESTIONS.items():
        answers = {
            place: answer
            for place, given in places.items()
            if (answer := getattr(given, field)) is not None
        }
        if len(set(answers.values())) > 1:
            told = ", ".join(f"{place} {answer:,}" for place, answer in answers.items())
            raise DifferenceError(f"{question}: the answers differ: {told}")


def side_by_side(places: Mapping[str, Answers]) -> Table:
    """The answers as people read them."""
    table = Table(title="the same questions, in SQL", title_justify="left")
    table.add_column("")
    for place in places:
        table.add_column(place, justify="right")
    for field, question in _QUESTIONS.items():
        answers = [getattr(given, field) for given in places.values()]
        table.add_row(question, *_texts(answers))
    return table


def _texts(answers: Sequence[int | None]) -> list[str]:
    return ["–" if answer is None else f"{answer:,}" for answer in answers]
