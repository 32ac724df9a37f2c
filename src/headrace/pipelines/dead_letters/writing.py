"""Bad records on their way to the dead-letter topic, through Spark's own Kafka sink.

At least once: a batch that is tried again writes them again. What is wrong with each is found in
Python, on the workers, and for these few rows only.
"""

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.errors import SinkError
from headrace.pipelines.bus import Bus
from headrace.pipelines.dead_letters.letter import (
    OFFSET,
    PARTITION,
    PIPELINE,
    REASON,
    TIMESTAMP,
    TOPIC,
)
from headrace.pipelines.decoders.record_decoder import CARRIED_COLUMN, RecordDecoder
from headrace.pipelines.definition import (
    ERROR_COLUMN,
    RECORD_COLUMN,
    RECORD_SCHEMA,
    Decoder,
    Run,
)
from headrace.pipelines.sinks.topic import BrokerAwayError
from headrace.pipelines.topic_positions import is_of_the_moment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MAX_REASON_CHARACTERS = 1000  # a header is no place for a page
# A record that just fits its topic is larger as a letter, and must not stop the pipeline.
MAX_LETTER_BYTES = 16 * 1024 * 1024
_ADMIN_TIMEOUT_S = 30.0
_REASON_COLUMN = "_headrace_reason"
_RECORD_COLUMNS = (
    "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
)  # fmt: skip


def bad_records(decoder: Decoder, records: "DataFrame") -> "DataFrame":
    """The records, as they came, that `decoder` cannot decode, each with its `_error`."""
    if isinstance(decoder, RecordDecoder):
        bad = decoder.decode_carrying(records).where(f"{ERROR_COLUMN} is not null")
        flat = bad.select(f"{RECORD_COLUMN}.*", f"{CARRIED_COLUMN}.*", ERROR_COLUMN)
        return flat.select(*_RECORD_COLUMNS, ERROR_COLUMN)
    # A decoder of somebody else's: its rows know where they came from, and nothing of the bytes.
    place = ["topic", "partition", "offset"]
    bad = decoder.decode(records).where(f"{ERROR_COLUMN} is not null")
    places = bad.select(*(f"{RECORD_COLUMN}.{name}" for name in place), ERROR_COLUMN)
    return records.join(places, place).select(*_RECORD_COLUMNS, ERROR_COLUMN)


def write(run: Run, decoder: Decoder, bad_records: "DataFrame", topic: str) -> int:
    """Write records to the dead-letter topic, which is made if missing; return how many."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    schema = f"{RECORD_SCHEMA}, {ERROR_COLUMN} string, {_REASON_COLUMN} string"
    if ERROR_COLUMN not in bad_records.columns:
        bad_records = bad_records.withColumn(ERROR_COLUMN, F.lit(None).cast("string"))
    ordered = bad_records.select(*_RECORD_COLUMNS, ERROR_COLUMN)
    explained = ordered.mapInArrow(_explainer(decoder), schema)
    letters = explained.selectExpr("key", "value", _headers(run.name))
    options = {
        "kafka.max.request.size": str(MAX_LETTER_BYTES),
        **run.bus.spark_options(),
        "topic": topic,
        "includeHeaders": "true",
    }
    # Kept and counted first: within a stream's batch nothing that observes the connector's own
    # write is ever told its count. Bad records are few.
    letters.persist()
    try:
        number = letters.count()
        if number:
            _make_topic(run.bus, topic)
            letters.write.format("kafka").options(**options).save()
    finally:
        letters.unpersist()
    return number


def _headers(pipeline: str) -> str:
    name = pipeline.replace("\\", "\\\\").replace("'", "\\'")
    ours = {
        PIPELINE: f"'{name}'",
        REASON: _REASON_COLUMN,
        TOPIC: "topic",
        PARTITION: "cast(partition as string)",
        OFFSET: "cast(offset as string)",
        TIMESTAMP: "cast(unix_millis(timestamp) as string)",
    }
    entries = ", ".join(
        f"named_struct('key', '{header}', 'value', cast({value} as binary))"
        for header, value in ours.items()
    )
    none = "cast(array() as array<struct<key: string, value: binary>>)"
    return f"concat(coalesce(headers, {none}), array({entries})) as headers"


def _explainer(
    decoder: Decoder,
) -> Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]:
    def explain_batches(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        explain = functools.partial(_explain, decoder)
        for batch in batches:
            values = batch.column("value").to_pylist()
            errors = batch.column(ERROR_COLUMN).to_pylist()
            reasons = list(map(explain, errors, values))
            columns = [*batch.columns, pa.array(reasons, pa.string())]
            names = [*batch.schema.names, _REASON_COLUMN]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return explain_batches


def _explain(decoder: Decoder, error: str | None, value: bytes | None) -> str:
    # What is wrong need not be in the value: a decoder may look at the key too.
    explain_error = getattr(decoder, "explain_error", None)
    try:
        known = explain_error(error, value) if explain_error and error else None
        reason = known or decoder.explain(value)
    except Exception as failure:
        # The letter matters more than its reason, and decoders may be anybody's.
        reason = f"it cannot be decoded, nor explained: {type(failure).__name__}: {failure}"
    # Text cut out of a bad value may hold half a character.
    reason = reason.encode("utf-8", "replace").decode()
    if len(reason) > MAX_REASON_CHARACTERS:
        reason = reason[:MAX_REASON_CHARACTERS] + "…"
    return reason


def _make_topic(bus: Bus, topic: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    config: dict[str, Any] = bus.client_config()
    admin = AdminClient(config)
    # -1: as many partitions and copies as the broker gives a topic by default.
    new = NewTopic(topic, -1, -1, config={"max.message.bytes": str(MAX_LETTER_BYTES)})
    futures = admin.create_topics([new], request_timeout=_ADMIN_TIMEOUT_S)
    try:
        futures[topic].result(_ADMIN_TIMEOUT_S + 1)
    except KafkaException as error:
        kind = error.args[0]
        if kind.code() != kind.TOPIC_ALREADY_EXISTS:
            refusal = BrokerAwayError if is_of_the_moment(kind) else SinkError
            raise refusal(
                f"dead-letter topic {topic} cannot be made: {kind.str() or kind.name()}; create it "
                "yourself or name another with --dead-letter-topic"
            ) from error
