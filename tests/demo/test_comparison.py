import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from demo.comparison import (
    LATEST,
    RECORDS,
    TABLE,
    Answers,
    DifferenceError,
    answers_of_books,
    check_equal,
    side_by_side,
)
from demo.sensors import Books


def test_equal_answers_pass_and_a_place_may_have_none():
    check_equal({"topic": Answers(records=5, sensors=2), "table": Answers(sensors=2)})


def test_a_difference_names_the_question_and_every_answer():
    with pytest.raises(DifferenceError, match=r"last good reading.*topic 2, table 3"):
        check_equal({"topic": Answers(sensors=2), "table": Answers(sensors=3)})


def test_the_books_answer_all_questions():
    books = Books(sent=10, retired=1, bad=Counter({"not JSON": 2}), latest={"a": 20.15, "b": -3.2})

    assert answers_of_books(books) == Answers(
        records=10, tombstones=1, sensors=2, hundredths=1695, bad=2
    )


def test_every_place_is_a_column():
    table = side_by_side({"topic": Answers(records=1_234), "table": Answers()})

    assert [column.header for column in table.columns] == ["", "topic", "table"]
    assert next(iter(table.columns[1].cells)) == "1,234"
    assert next(iter(table.columns[2].cells)) == "–"


def test_the_tables_question_is_sql_that_sqlite_takes():
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table readings (sensor text, celsius real)")
        database.executemany("insert into readings values (?, ?)", [("a", 20.15), ("b", -3.2)])

        assert database.execute(TABLE.format(place="readings")).fetchone() == (2, 1695)


@pytest.mark.spark
def test_the_topics_question_finds_the_last_good_reading_of_each_sensor(spark):
    def reading(sensor: str, celsius: object) -> bytes:
        at = "2026-11-16T12:00:00.000Z"
        return f'{{"sensor":"{sensor}","at":"{at}","celsius":{celsius}}}'.encode()

    values = [
        (b"a", reading("a", 1.5)),
        (b"b", reading("b", 2.25)),
        (b"c", reading("c", 3.0)),
        (b"a", reading("a", '"warm"')),
        (b"a", reading("a", 4.75)[:-3]),
        (b"b", b"ERR 0x07 b: no answer on the bus"),
        (b"b", b'{"sensor":"b","at":"2026-11-16T12:00:00.000Z"}'),
        (b"c", None),
        (b"d", b"not a reading, and the only one"),
    ]
    rows = [(key, value, 0, offset) for offset, (key, value) in enumerate(values)]
    schema = "key binary, value binary, partition int, offset bigint"
    spark.createDataFrame(rows, schema).createOrReplaceTempView("demo_topic")

    records = spark.sql(RECORDS.format(place="demo_topic")).collect()
    latest = spark.sql(LATEST.format(place="demo_topic")).collect()

    assert [tuple(row) for row in records] == [(9, 1)]
    assert [tuple(row) for row in latest] == [(2, 375)]
