"""What reads is let through, and nothing else, whatever words it is written with."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.pipelines import Bus
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sql_query.query import TopicQuery
from headrace.pipelines.sql_query.statements import refuse_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

READING = [
    "select 1",
    "values (1), (2)",
    "table t",
    "from t select a where a > 1",
    "(select 1)",
    "with a as (select 1) select * from a",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select * from r",
    "select a, count(*) from t group by a having count(*) > 1 order by a limit 5 offset 1",
    "select a from t group by grouping sets ((a), ())",
    "select a from t distribute by a sort by a",
    "select a from t cluster by a",
    "select row_number() over w from t window w as (order by a)",
    "select a from t qualify row_number() over (order by a) = 1",
    "select 1 union all select 2 except select 3 intersect select 4",
    "select * from t natural join u, lateral (select t.a)",
    "select * from t unpivot (v for n in (a, b))",
    "select * from t pivot (sum(b) for a in (1))",
    "select * from t tablesample (5 percent)",
    "select * from t lateral view explode(array(1)) x as y",
    "select * from explode(array(1)), range(5)",
    "select * from t where a in (select b from u where exists (select 1))",
    "select (select max(a) from t)",
    "select /*+ broadcast(t), repartition(2) */ * from t",
    "select * from t |> where a = 1 |> aggregate sum(a) |> order by 1",
    "select distinct a from t limit all",
    "select * from parquet.`/a` version as of 1",
    "select * from identifier('t')",
    "select 'insert into t', `drop` from `create table`",
    "describe t",
    "describe query select 1",
    "describe function abs",
    "describe history delta.`/a`",
    "show columns in t",
    "show functions",
]
REFUSED = {
    "insert overwrite directory '/a' using csv select 1": "insert overwrite directory is refused",
    "with a as (select 1) insert overwrite directory '/a' using csv table a": (
        "insert overwrite directory is refused"
    ),
    "from t insert overwrite directory '/a' using csv select a": "insert overwrite directory",
    "from t insert into x select a insert into y select a": "insert into is refused",
    "insert into t select 1": "headrace pipeline run writes what a query gives",
    "insert into identifier('t' || 'u') select 1": "is refused",
    "insert into t replace where a = 1 select 1": "is refused",
    "with a as (select 1) insert into t table a": "insert into is refused",
    "create table x using parquet as select 1": "create table as select is refused",
    "create temp view v as select 1": "create view is refused",
    "create temporary function f() returns int return 1": "create function is refused",
    "drop table t": "drop table is refused",
    "truncate table t": "truncate table is refused",
    "alter table t add columns (b int)": "add columns is refused",
    "cache table t": "cache table is refused",
    "clear cache": "clear cache is refused",
    "set a = 1": "--conf NAME=VALUE",
    "reset": "--conf NAME=VALUE",
    "add jar '/a.jar'": "--conf spark.jars=FILE",
    "add file '/a'": "add files is refused",
    "refresh table t": "refresh table is refused",
    "load data inpath '/a' into table t": "load data is refused",
    "merge into t using s on t.a = s.a when matched then delete": "merge into table is refused",
    "delete from t": "delete from table is refused",
    "update t set a = 1": "update table is refused",
    "call a.b()": "call is refused",
    "analyze table t compute statistics": "analyze table is refused",
    "use x": "use is refused",
    "vacuum delta.`/a`": "vacuum table is refused",
    "optimize delta.`/a`": "optimize table is refused",
    "restore table delta.`/a` to version as of 1": "restore table is refused",
    "create table delta.`/b` shallow clone delta.`/a`": "clone table is refused",
    "declare variable v int": "create variable is refused",
    "begin insert into t select 1; end": "begin … end is refused",
    "execute immediate 'insert into t select 1'": "execute immediate is refused",
    "select transform(a) using 'sh -c true' as (b) from t": "it runs a program",
    "select 1 where exists (select transform(a) using 'sh' as (b) from t)": "it runs a program",
    "with x as (select transform(a) using 'sh' as (b) from t) table x": "it runs a program",
    "explain select 1": "headrace sql --explain",
    "show tables": "headrace topics list",
    "select 1; insert into t select 1": "one query at a time; a second one begins in line 1, col",
    "select 1\n;\n select 2": "a second one begins in line 3, column 2",
}
# Every place in a query where another may stand.
PLACES = {
    "scalar": "select {}",
    "nested": "select (select (select {}))",
    "exists": "select 1 where exists {}",
    "in": "select 1 where 1 in {}",
    "like any": "select 1 like any ({})",
    "case": "select case when {} = 1 then 1 end",
    "struct": "select struct({})",
    "cast": "select cast({} as string)",
    "lambda": "select transform(array(1), x -> {})",
    "filter of an aggregate": "select sum(a) filter (where a = {}) from t",
    "within group": "select percentile_cont(0.5) within group (order by {}) from t",
    "having": "select a from t group by a having a > {}",
    "grouping sets": "select count(*) from t group by grouping sets (({}))",
    "group by all": "select {} group by all",
    "qualify": "select a from t qualify row_number() over (order by {}) = 1",
    "window": "select sum(a) over (order by {}) from t",
    "named window": "select sum(a) over w from t window w as (order by {})",
    "partition of a named window": "select sum(a) over w from t window w as (partition by {})",
    "unused window": "select sum(a) over v from t window v as (order by a), w as (order by {})",
    "window in a window": (
        "select sum(a) over w from t window w as (order by sum(a) over (order by {}))"
    ),
    "order by": "select 1 order by {}",
    "sort by": "select a from t sort by {}",
    "cluster by": "select a from t cluster by {}",
    "distribute by": "select 1 distribute by {}",
    "limit": "select 1 limit {}",
    "offset": "select 1 limit 1 offset {}",
    "hint": "select /*+ repartition({}) */ 1",
    "values": "values ({})",
    "inline table": "select * from values ({}) as t(a)",
    "function": "select * from range({})",
    "named argument": "select * from f(x => {})",
    "table argument": "select * from f(table{})",
    "partition of a table argument": "select * from f(table(values(1)) partition by {})",
    "order of a table argument": "select * from f(table(t) partition by a order by {})",
    "sample": "select * from {} tablesample (10 rows)",
    "pivot": "select * from t pivot (sum(a) for b in ({}))",
    "unpivot": "select * from {} unpivot (v for n in (y))",
    "lateral": "select * from t, lateral {}",
    "lateral view": "select * from t lateral view explode(array({})) e as z",
    "join": "select * from t join {} on true",
    "condition of a join": "select * from t join u on a = {}",
    "union": "select 1 union all {}",
    "except": "select 1 except (select {})",
    "with": "with c as {} select * from c",
    "unused with": "with c as {} select 1",
    "recursion": (
        "with recursive c(n) as (select 1 union all select n+1 from c where n < {}) table c"
    ),
    "time travel": "select * from delta.`/a` timestamp as of {}",
    "time travel that is told of": "describe query select * from delta.`/a` timestamp as of {}",
    "identifier": "select identifier({})",
    "argument of identifier": "select identifier('su' || 'm')(distinct {})",
    "filter of identifier": "select identifier('su' || 'm')(a) filter (where a = {}) from t",
    "order of identifier": "select identifier('a' || 'b')(a) within group (order by {}) from t",
    "window of identifier": "select identifier('su' || 'm')(a) over (order by {}) from t",
    "pipe where": "from t |> where a = {}",
    "pipe select": "from t |> select {}",
    "pipe extend": "from t |> extend {} as b",
    "pipe set": "from t |> set a = {}",
    "pipe aggregate": "from t |> aggregate sum(a) group by {}",
    "pipe window": "from t |> select sum(a) over w window w as (order by {})",
    "pipe join": "from t |> join {} on true",
    "pipe union": "from t |> union all {}",
}
PROGRAM = "(select transform(x) using 'touch {}; cat' as (y int) from values (1) as u(x))"
# Under every name there is for them.
CALLING_JAVA = [
    "select {}('java.lang.System', 'setProperty', 'headrace.test', 'x')",
    "select system.builtin.{}('java.lang.System', 'setProperty', 'headrace.test', 'x')",
    "select builtin.{}('java.lang.System', 'setProperty', 'headrace.test', 'x')",
    "select 1 where exists (select {}('java.lang.System', 'setProperty', 'headrace.test', 'x'))",
]


def test_what_reads_is_let_through(spark: "SparkSession") -> None:
    for query in READING:
        refuse_statements(spark, query)


def test_what_does_more_is_refused_by_name_and_with_what_to_use(spark: "SparkSession") -> None:
    for query, sentence in REFUSED.items():
        with pytest.raises(PipelineDefinitionError) as raised:
            refuse_statements(spark, query)
        assert sentence in str(raised.value), query


@pytest.mark.parametrize("place", PLACES)
def test_a_program_is_refused_wherever_it_stands(spark: "SparkSession", place: str) -> None:
    query = PLACES[place]

    with pytest.raises(PipelineDefinitionError, match="it runs a program"):
        refuse_statements(spark, query.format(PROGRAM.format("a")))
    if place not in ("values", "inline table"):  # where Spark itself takes no query
        refuse_statements(spark, query.format("(select 1 as y)"))


def test_what_is_yet_to_be_made_of_a_name_is_refused(spark: "SparkSession") -> None:
    query = f"select * from identifier('ran' || 'ge')({PROGRAM.format('a')})"

    with pytest.raises(PipelineDefinitionError, match=r"^identifier\(…\) in place of a name is"):
        refuse_statements(spark, query)


def test_a_program_in_a_named_window_is_not_run(spark: "SparkSession", tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for place in ("named window", "pipe window", "pipe set"):
        query = PLACES[place].replace(" t", " values (1), (2) as t(a)", 1)

        with pytest.raises(PipelineDefinitionError, match="it runs a program"):
            TopicQuery(spark, Bus()).answer(query.format(PROGRAM.format(mark))).frame.collect()

    assert not mark.exists()


def test_a_refused_statement_has_done_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    query = f"with a as (select 1) insert overwrite directory '{tmp_path}/out' using csv table a"

    with pytest.raises(PipelineDefinitionError):
        TopicQuery(spark, Bus()).answer(query)

    assert list(tmp_path.iterdir()) == []


def test_functions_that_call_java_are_not_there(spark: "SparkSession") -> None:
    for name in ("java_method", "reflect", "try_reflect"):
        for query in CALLING_JAVA:
            with pytest.raises(PipelineDefinitionError, match=f"^{name} is refused: it calls any"):
                TopicQuery(spark, Bus()).answer(query.format(name))
    hidden = "select identifier('ref' || 'lect')('java.lang.System', 'gc')"
    with pytest.raises(PipelineDefinitionError, match="reflect is refused"):
        TopicQuery(spark, Bus()).answer(hidden)
    # The user's own session, in a notebook, keeps them.
    assert spark.sql("select reflect('java.lang.Math', 'abs', -1) as a").collect()[0].a == "1"
