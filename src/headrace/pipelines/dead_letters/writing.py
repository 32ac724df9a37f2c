"""Bad records on their way to the dead-letter topic: found by Spark, sent by its workers.

At least once: a batch that is tried again writes them again. What is wrong with each is found in
Python, on the workers, and for these few rows only.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.dead_letters.sending import COLUMNS, RESULT_SCHEMA, LetterSender
from headrace.pipelines.decoders.record_decoder import CARRIED_COLUMN, RecordDecoder
from headrace.pipelines.definition import ERROR_COLUMN, RECORD_COLUMN, Decoder, Run
from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.topic import BrokerAwayError
from headrace.pipelines.spans import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def write(
    run: Run, decoder: Decoder, bad_records: "DataFrame", topic: str, batch: Batch | None = None
) -> int:
    """Write records to the dead-letter topic, which is made if missing; return how many.

    `batch` is the one they are from: it knows the ids of their topics and of the cluster.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    if ERROR_COLUMN not in bad_records.columns:
        bad_records = bad_records.withColumn(ERROR_COLUMN, F.lit(None).cast("string"))
    # Milliseconds, as the wire has them; not a timestamp, which Arrow would give a time zone.
    timed = bad_records.withColumn("timestamp_ms", F.unix_millis("timestamp"))
    batch = batch or Batch(0)
    sender = LetterSender(
        decoder,
        run.bus,
        run.name,
        topic,
        batch.cluster_id,
        {log.topic: log.topic_id for log, _ in batch.holds or ()},
    )
    results = timed.select(*COLUMNS).mapInArrow(sender, RESULT_SCHEMA).collect()
    for row in results:
        if row["error"]:
            raise (BrokerAwayError if row["is_retriable"] else SinkError)(row["error"])
    if cut := sum(row["cut"] for row in results):
        are = "dead letter was" if cut == 1 else "dead letters were"
        run.tell(
            f"{cut:,} {are} cut to what topic {topic} takes: raise its max.message.bytes to have "
            "them whole"
        )
    return sum(row["written"] for row in results)
