"""What SQL may be asked: what reads. Spark's parser says what a text is, whatever words it has.

Known to read is a list, so that a statement nobody here has heard of is refused. All there is is
looked at: behind `with`, in subqueries, and each of several inserts from one table.
"""

import re
from typing import TYPE_CHECKING, Any

from headrace.errors import PipelineDefinitionError
from headrace.pipelines.sql_query.failures import place_of, sentence_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The nodes of a parsed query. `identifier('a')` in place of a table's name is none of them: it
# hides what it stands in, which may be an insert.
_READING = frozenset(
    re.findall(
        r"\w+",
        """
    Aggregate AsOfJoin Deduplicate Distinct Except Filter Generate GlobalLimit Intersect Join
    LateralJoin LimitAll LocalLimit LocalRelation NearestByJoin Offset OneRowRelation PipeOperator
    Pivot Project Range RelationTimeTravel Repartition RepartitionByExpression Sample Sort
    SubqueryAlias Tail Transpose Union UnionLoop UnionLoopRef Unpivot UnresolvedEventTimeWatermark
    UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
    UnresolvedTranspose UnresolvedWith Window WithWindowDefinition
        """,
    )
)
# Statements that only tell of columns, functions and files. They run nothing of what they tell of.
_TELLING = frozenset(
    re.findall(
        r"\w+",
        """
    DescribeColumn DescribeDeltaDetailCommand DescribeDeltaHistory DescribeFunction
    DescribeQueryCommand DescribeRelation ShowColumns ShowFunctions
        """,
    )
)
# These call any method of any class of Java; `identifier('ref' || 'lect')` would get past a look
# at names, so they are taken from the session instead.
_CALLING_JAVA = ("java_method", "reflect", "try_reflect")

_WORDS = {
    "CompoundBody": "begin … end",
    "CreateSQLFunctionCommand": "create function",
    "InsertIntoDir": "insert overwrite directory",
    "PlanWithUnresolvedIdentifier": "identifier(…) in place of a name",
    "ScriptTransformation": "transform … using (it runs a program)",
    "SetCatalogAndNamespace": "use",
}
_NOT_IN_WORDS = re.compile(r"^(Unresolved|Parsed)|(Command|Statement)?\$?$")
_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SETTING = "--conf NAME=VALUE sets what Spark takes"
_WRITING = "headrace pipeline run writes what a query gives, to its sinks"
# By the words, or else by the first of them.
_INSTEAD = {
    "add jars": "--conf spark.jars=FILE adds a jar",
    "create view": "with NAME as (…) names a query",
    "reset": _SETTING,
    "set": _SETTING,
}
_INSTEAD_OF_FIRST = {
    "create": _WRITING,
    "explain": "headrace sql --explain shows what a query reads",
    "identifier(…)": "write the name itself",
    "insert": _WRITING,
    "merge": _WRITING,
    "show": "headrace topics list shows the tables there are, describe NAME the columns of one",
}
_READS = "a query only reads (select, with, values, table, describe)"


def refuse_statements(spark: "SparkSession", query: str) -> str:
    """Raise PipelineDefinitionError for all that does more than read, and for what is no SQL.

    Return Spark's own picture of the parsed query.
    """
    from pyspark.errors import AnalysisException

    session: Any = spark._jsparkSession
    try:
        plan = session.sessionState().sqlParser().parsePlan(query)
    except AnalysisException as error:  # a ParseException is one, too
        raise PipelineDefinitionError(_second_of(query, error) or sentence_of(error)) from error
    kind = _kind_of(plan)
    if kind not in _TELLING and (other := _find_other(plan)):
        raise PipelineDefinitionError(_refusal(other))
    return str(plan.toString())


def forget_java_calls(spark: "SparkSession") -> None:
    """Take the functions that call Java out of this session; its parent keeps them."""
    from pyspark import SparkContext

    session: Any = spark._jsparkSession
    registry = session.sessionState().functionRegistry()
    java: Any = SparkContext._jvm
    some = java.scala.Option.apply
    for name in _CALLING_JAVA:
        # Known under all three parts, however a query writes it.
        known = java.org.apache.spark.sql.catalyst.FunctionIdentifier(
            name, some("builtin"), some("system")
        )
        registry.dropFunction(known)


def called_java(routine: str) -> str | None:
    """The sentence for a function that is not there because it calls Java; None for others."""
    name = routine.replace("`", "").rpartition(".")[2].lower()
    if name not in _CALLING_JAVA:
        return None
    return f"{name} is refused: it calls any method of Java, and {_READS}"


def _find_other(plan: Any) -> str | None:
    """The first node that is not known to read."""
    pending = [plan]
    while pending:
        node = pending.pop()
        kind = _kind_of(node)
        if kind not in _READING:
            return kind
        # Inner ones are subqueries in conditions, and what `with` names.
        for children in (node.innerChildren(), node.children()):
            each = children.iterator()
            while each.hasNext():
                pending.append(each.next())
    return None


def _kind_of(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _refusal(kind: str) -> str:
    words = _WORDS.get(kind) or _NEXT_WORD.sub(" ", _NOT_IN_WORDS.sub("", kind)).lower()
    instead = _INSTEAD.get(words) or _INSTEAD_OF_FIRST.get(words.partition(" ")[0])
    return f"{words} is refused: {_READS}" + (f"; {instead}" if instead else "")


def _second_of(query: str, error: Any) -> str | None:
    """The sentence for a second statement behind a semicolon."""
    place = place_of(error)
    if place is None:
        return None
    line, column = place
    lines = query.split("\n")[:line]
    before = "\n".join([*lines[:-1], lines[-1][: column - 1]]).rstrip() if lines else ""
    if not before.endswith(";"):
        return None
    return f"one query at a time; a second one begins in line {line}, column {column}"
