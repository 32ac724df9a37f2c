"""Queries over a real broker: the right rows, from no more of the log than they need."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from tests.support.output import told_by_us

from headrace.client.admin import Admin
from headrace.kafka.node import KafkaNode
from headrace.pipelines import Bus
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.sql_query.query import Answer, TopicQuery
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BASE_MS = 1_794_816_000_000  # 2026-11-16T08:00Z
RECORDS = 300
PARTITIONS = 3


@pytest.fixture(
    scope="module",
    params=["headrace", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.java])],
)
def bus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """Orders out of order by up to a minute, stamped ones by the broker, people, and bytes."""
    if request.param == "headrace":
        with running_broker() as broker:
            yield fill(Bus(broker.bootstrap))
    else:
        with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
            yield fill(Bus(node.bootstrap))


def fill(bus: Bus) -> Bus:
    admin = Admin(bus, timeout_s=120)
    for name, partitions in (
        ("orders", PARTITIONS),
        ("eu.people-x", 1),
        ("bytes", 1),
        ("empty", 2),
    ):
        admin.create_topic(name, partitions)
    admin.create_topic("stamped", 1, configs={"message.timestamp.type": "LogAppendTime"})
    producer = Producer(bus.client_config())
    jitter = random.Random(7)
    for number in range(RECORDS):
        producer.produce(
            "orders",
            json.dumps({"id": number, "person": number % 10, "price": number / 2, "offset": -1}),
            key=f"k{number}",
            partition=number % PARTITIONS,
            timestamp=BASE_MS + number * 1000 + jitter.randint(-60_000, 60_000),
            headers=[("from", b"web")],
        )
        producer.produce("stamped", b"%d" % number)
    for number in range(10):
        producer.produce("eu.people-x", json.dumps({"id": number, "name": f"p{number}"}))
    producer.produce("bytes", b"\x00\xff\x01", key=b"\xfe")
    producer.produce("bytes", None, key=b"gone")
    assert producer.flush(120) == 0
    return bus


def rows_of(answer: Answer) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in answer.frame.collect()]


def rows_scanned(answer: Answer) -> int:
    """How many rows Spark's scans of topics gave, by its own count."""
    plan = answer.frame._jdf.queryExecution().executedPlan()
    total, pending = 0, [plan]
    while pending:
        node = pending.pop()
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
            continue
        if name.endswith("QueryStageExec"):
            pending.append(node.plan())
            continue
        if name == "RowDataSourceScanExec":
            total += node.metrics().apply("numOutputRows").value()
        children = node.children().iterator()
        while children.hasNext():
            pending.append(children.next())
    return total


def slowly(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("partition = 0 and offset < 5 or partition = 1 and offset between 90 and 94", 10),
        # At most two minutes of jitter lie between the first that is late enough and the end.
        ("timestamp >= '2026-11-16T08:05:00Z' and partition = 2", 40),
        slowly("partition = 1", 100),
        slowly("offset >= 95", 15),
        slowly("`offset` in (3, 5)", 9),
        slowly("timestamp >= '2026-11-16T08:05:00Z'", 120),
        slowly("timestamp > '2030-01-01'", 0),
        slowly("timestamp < '2026-11-16T08:01:00Z'", RECORDS),  # producers' times bound no end
        slowly("id > 290", RECORDS),
    ],
)
def test_a_query_reads_only_what_can_matter_and_finds_all_of_it(
    spark: "SparkSession", bus: Bus, condition: str, most: int
) -> None:
    topics = TopicQuery(spark, bus)
    query = f"select id, partition, orders.offset from orders where {condition}"

    bounded = topics.answer(query)
    whole = topics.answer(query, is_bounded=False)

    assert sorted(rows_of(bounded)) == sorted(rows_of(whole))
    assert sum(read.records for read in bounded.reads) <= most
    assert rows_scanned(bounded) <= most
    assert rows_scanned(whole) == RECORDS


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bounds_change_no_result_whatever_is_asked(spark: "SparkSession", bus: Bus) -> None:
    topics = TopicQuery(spark, bus, schemas={"orders": "id bigint"})
    dice = random.Random(11)
    conditions = [a_condition(dice, depth=3) for _ in range(30)]
    # All conditions at once over whole topics: one look at what each is to find.
    columns = ", ".join(f"{each} as c{number}" for number, each in enumerate(conditions))
    whole = topics.answer(f"select id, {columns} from orders", is_bounded=False).frame.collect()
    saved = 0

    for number, condition in enumerate(conditions):
        bounded = topics.answer(f"select id from orders where {condition}")
        expected = sorted(row.id for row in whole if row[f"c{number}"])
        assert sorted(id for (id,) in rows_of(bounded)) == expected, condition
        saved += RECORDS - sum(read.records for read in bounded.reads)

    assert saved > 5 * RECORDS  # of 30 times all of them: the bounds were not all empty words


def a_condition(dice: random.Random, depth: int) -> str:
    if depth and dice.random() < 0.5:
        word = dice.choice(["and", "or"])
        return f"({a_condition(dice, depth - 1)} {word} {a_condition(dice, depth - 1)})"
    sign = dice.choice(["<", "<=", "=", ">=", ">", "<>"])
    second = dice.randint(-80, RECORDS + 80)
    leaf = dice.choice(
        [
            f"timestamp {sign} timestamp_millis({BASE_MS + second * 1000})",
            f"orders.offset {sign} {dice.randint(-5, 105)}",
            f"partition {sign} {dice.randint(0, 3)}",
            f"id % 7 {sign} {dice.randint(0, 6)}",
        ]
    )
    return f"not ({leaf})" if dice.random() < 0.2 else leaf


def test_topics_are_joined_with_ctes_and_files(
    spark: "SparkSession", bus: Bus, tmp_path: Path
) -> None:
    spark.range(5).selectExpr("id as person").write.parquet(str(tmp_path / "chosen"))
    query = f"""
        with late as (select * from orders where partition = 0 and offset >= 90)
        select p.name, count(*) as orders
        from late join `eu.people-x` p on late.person = p.id
        where p.id in (select person from parquet.`{tmp_path}/chosen`)
        group by p.name order by p.name
    """

    answer = TopicQuery(spark, bus).answer(query)

    assert rows_of(answer) == [("p0", 1), ("p1", 1), ("p2", 1), ("p3", 1), ("p4", 1)]
    reads = {read.topic: read.records for read in answer.reads}
    assert reads == {"orders": 10, "eu.people-x": 10}


@pytest.mark.slow
def test_a_topic_asked_twice_is_read_for_both(spark: "SparkSession", bus: Bus) -> None:
    query = """
        select count(*) from
        (select id from orders where partition = 0 and offset = 3) a,
        (select id from orders where partition = 2 and offset = 97) b
    """

    answer = TopicQuery(spark, bus).answer(query)

    assert rows_of(answer) == [(1,)]
    assert {key[1]: bounds for key, bounds in answer.reads[0].ranges.items()} == {
        0: (3, 4),
        1: (0, 0),
        2: (97, 98),
    }


def test_an_end_is_cut_where_the_broker_stamps_records(spark: "SparkSession", bus: Bus) -> None:
    topics = TopicQuery(spark, bus)

    before = topics.answer("select count(*) from stamped where timestamp < '2020-01-01'")
    after = topics.answer("select count(*) from stamped where timestamp < now() + interval 1 day")

    assert (rows_of(before), before.reads[0].records) == ([(0,)], 0)
    assert (rows_of(after), after.reads[0].records) == ([(RECORDS,)], RECORDS)


def test_columns_and_fields_are_what_the_page_says(spark: "SparkSession", bus: Bus) -> None:
    topics = TopicQuery(spark, bus)

    (row,) = topics.answer(
        "select * from orders where partition = 0 and offset = 2"
    ).frame.collect()
    raw = topics.answer("select key, value from bytes order by offset")

    assert row.asDict()["id"] == 6
    assert (row.key, row.value_offset, row.offset, row.topic) == ("k6", -1, 2, "orders")
    assert row.headers[0].asDict() == {"key": "from", "value": "web"}
    assert rows_of(raw) == [("0xFE", bytearray(b"\x00\xff\x01")), ("gone", None)]
    assert rows_of(topics.answer("select count(*) from empty")) == [(0,)]


def test_a_schema_and_a_format_can_be_told(spark: "SparkSession", bus: Bus) -> None:
    told = TopicQuery(spark, bus, schemas={"orders": "price string"})
    text = TopicQuery(spark, bus, format="text")

    query = "select * from orders where partition = 0 and offset = 1"
    assert told.answer(query).frame.columns[-1] == "price"
    assert text.answer(query).frame.columns[-1] == "topic"


@pytest.mark.parametrize(
    ("query", "kind", "complaint"),
    [
        ("selec 1", PipelineDefinitionError, r"Syntax error at or near 'selec'.*line 1"),
        ("select * from ordrs", SourceError, r"no topic ordrs .*did you mean orders\?"),
        ("select * from eu.people-x", PipelineDefinitionError, "needs backticks: `people-x`"),
        ("select nope from orders", PipelineDefinitionError, "there is no column nope; did you"),
        ("select * from orders where offset in (1)", PipelineDefinitionError, "needs backticks"),
        ("drop table orders", PipelineDefinitionError, "drop table is refused"),
        ("insert into orders select 1", PipelineDefinitionError, "insert into is refused"),
        ("select REFLECT('java.lang.System', 'gc')", PipelineDefinitionError, "reflect is refused"),
        ("select * from parquet.`/nowhere`", PipelineDefinitionError, "Path does not exist"),
        ("describe parquet.`/a/b`", PipelineDefinitionError, "names files.* describe query select"),
        ("show columns in csv.rel", PipelineDefinitionError, "names files, not a table"),
        ("describe delta.`/a/b`", PipelineDefinitionError, "/a/b"),
        ("select * from `/a/b`", PipelineDefinitionError, "no topic can have this name"),
        ("select * from foo.`/a/b`", PipelineDefinitionError, "no topic can have this name"),
        ("select system.builtin.absent(1)", PipelineDefinitionError, "there is no function system"),
        ("select * from eu.people.y", SourceError, "there is no topic eu.people.y"),
        ("select abs(1, 2)", PipelineDefinitionError, "abs"),
    ],
)
def test_a_mistake_is_one_sentence(
    spark: "SparkSession",
    bus: Bus,
    capfd: pytest.CaptureFixture[str],
    query: str,
    kind: type[Exception],
    complaint: str,
) -> None:
    with pytest.raises(kind, match=complaint) as raised:
        TopicQuery(spark, bus).answer(query)
    assert "\n" not in str(raised.value)
    assert kind is SourceError or "topics create" not in str(raised.value)
    assert told_by_us(capfd.readouterr().err) == []


def test_a_topic_can_be_described(spark: "SparkSession", bus: Bus) -> None:
    rows = rows_of(TopicQuery(spark, bus).answer("describe `eu.people-x`"))

    assert ("name", "string", None) in rows


@pytest.mark.slow
def test_one_query_leaves_nothing_behind_for_the_next(spark: "SparkSession", bus: Bus) -> None:
    topics = TopicQuery(spark, bus)
    topics.answer("select * from orders where partition = 0 and offset = 1")

    assert rows_of(topics.answer("select count(*) from orders")) == [(RECORDS,)]
    assert not spark.catalog.tableExists("orders")
