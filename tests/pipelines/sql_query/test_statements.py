"""What reads is let through, and nothing else, whatever words it is written with."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import PipelineDefinitionError
from headrace.pipelines import Bus
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
