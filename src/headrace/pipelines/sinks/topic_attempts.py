"""Whether a task is Spark's first try at it: only that one may write to a topic.

Spark tries a lost task again, and it runs a whole stage again if shuffled rows of it were lost.
Then tasks count their tries from zero, and which attempt of the stage they belong to PySpark does
not say. Java's side of the task knows, and gives it along with the rows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

STAGE_ATTEMPT_COLUMN = "stage_attempt"


def with_stage_attempt(records: "DataFrame") -> "DataFrame":
    """Records with the attempt of the stage that reads them; what comes after must not shuffle."""
    from pyspark.sql.classic.column import Column

    jvm: Any = records.sparkSession._jvm
    types = jvm.org.apache.spark.sql.types
    objects = jvm.org.apache.spark.sql.catalyst.expressions.objects
    no_values = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    none = no_values.headOption()
    context = jvm.java.lang.Class.forName("org.apache.spark.TaskContext")
    # Null stays null, and may be; not deterministic, so that Spark neither works it out in advance
    # nor moves it to another stage.
    rules = (True, True, False)
    here = objects.StaticInvoke(
        context, types.ObjectType(context), "get", no_values, no_values, *rules, none
    )
    attempt = objects.Invoke(
        here, "stageAttemptNumber", types.DataTypes.IntegerType, no_values, no_values, *rules
    )
    column = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(attempt))
    return records.withColumn(STAGE_ATTEMPT_COLUMN, column)


def is_repeated(first: "pyarrow.RecordBatch | None") -> bool:
    """Whether the task that runs this was tried before, by itself or with all of its stage.

    `first` is a batch of its rows; a task without any has nothing to write.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.attemptNumber() > 0:
        return context is not None
    return first is not None and first.column(STAGE_ATTEMPT_COLUMN)[0].as_py() > 0
