"""What SQL may be asked: what reads. Spark's parser says what a text is, whatever words it has.

Known to read is a list, so that a statement nobody here has heard of is refused. All there is is
looked at: the parts of every node, not what Spark counts as its children and expressions. Those
leave out the windows that `window` names, what `|> set` sets, and how a table that is given to a
function is partitioned.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.pipelines.errors import PipelineDefinitionError
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
# Statements that only tell of columns, functions and files, and how they name these. They run
# nothing of a query they tell of but what has to be known of it: `timestamp as of (select …)`.
_TELLING = frozenset(
    re.findall(
        r"\w+",
        """
    DescribeColumn DescribeDeltaDetailCommand DescribeDeltaHistory DescribeFunction
    DescribeQueryCommand DescribeRelation ShowColumns ShowFunctions
        """,
    )
)
_NAMING = frozenset(
    {
        "CurrentNamespace$",
        "UnresolvedFunctionName",
        "UnresolvedNamespace",
        "UnresolvedTable",
        "UnresolvedTableOrView",
    }
)
# Parts of expressions that hold texts and numbers only: looking into each takes time.
_PLAIN = frozenset({"ExprId", "Literal", "NumericEvalContext", "UnresolvedAttribute"})
# It makes an expression of a name that is yet to be computed, and of expressions, which it shows.
_SHOWS_ITS_PARTS = "ExpressionWithUnresolvedIdentifier"
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
    if other := _find_other(plan):
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


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a class of Spark's or Scala's is to us."""

    name: str
    is_plan: bool = False
    is_collection: bool = False
    has_parts: bool = False
    is_code: bool = False  # what it will make nobody can see

    @classmethod
    def of(cls, value: Any) -> "_Kind":
        from py4j.java_gateway import is_instance_of
        from pyspark import SparkContext

        def is_a(name: str) -> bool:
            return bool(is_instance_of(SparkContext._gateway, value, name))

        name = str(value.getClass().getSimpleName())
        if name in _PLAIN:
            return cls(name)
        if is_a("scala.collection.Iterable"):  # before code: lists and maps are functions, too
            return cls(name, is_collection=True, has_parts=True)
        if is_a("scala.Product"):
            is_plan = is_a("org.apache.spark.sql.catalyst.plans.QueryPlan")
            return cls(name, is_plan=is_plan, has_parts=True)
        return cls(name, is_code=any(is_a(f"scala.Function{count}") for count in range(4)))


def _find_other(plan: Any) -> str | None:
    """The first node that is not known to read, wherever in what was parsed it stands."""
    kinds = dict[str, _Kind]()
    root = _Kind.of(plan).name
    allowed = _READING | _NAMING | {root} if root in _TELLING else _READING
    pending: list[tuple[Any, str]] = [(plan, root)]
    while pending:
        value, holder = pending.pop()
        of_class = value.getClass().getName()
        if of_class not in kinds:
            kinds[of_class] = _Kind.of(value)
        kind = kinds[of_class]
        if kind.is_code and holder != _SHOWS_ITS_PARTS:
            return holder
        if kind.is_plan and kind.name not in allowed:
            return kind.name
        if kind.has_parts:
            parts = value.iterator() if kind.is_collection else value.productIterator()
            name = holder if kind.is_collection else kind.name
            pending.extend((part, name) for part in _objects(_each(parts)))
    return None


def _objects(values: Iterable[Any]) -> Iterator[Any]:
    """Those that are Java's; texts and numbers come as Python's own."""
    from py4j.java_collections import JavaArray
    from py4j.java_gateway import JavaObject

    for value in values:
        if isinstance(value, JavaArray):
            yield from _objects(value)
        elif isinstance(value, JavaObject):
            yield value


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


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
