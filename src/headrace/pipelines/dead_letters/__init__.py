"""Records that could not be decoded: written to a topic, listed, sent again.

A dead letter is the record as it was (key, value, headers, byte for byte) with headers of ours
that say where it came from and what is wrong with it. They are written at least once; whoever
lists or re-submits them takes each `Source` once.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.dead_letters.letter import DeadLetter, Source, default_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.pipelines.definition import Decoder, Run
    from headrace.pipelines.spans import Batch

__all__ = ["DeadLetter", "Source", "bad_records", "default_topic", "write"]


# The command that lists them needs no decoder: these two import when they are called.
def bad_records(decoder: "Decoder", records: "DataFrame") -> "DataFrame":
    """The records, as they came, that `decoder` cannot decode, each with its `_error`."""
    from headrace.pipelines.dead_letters import writing

    return writing.bad_records(decoder, records)


def write(
    run: "Run",
    decoder: "Decoder",
    bad_records: "DataFrame",
    topic: str,
    batch: "Batch | None" = None,
) -> int:
    """Write records to the dead-letter topic, which is made if missing; return how many."""
    from headrace.pipelines.dead_letters import writing

    return writing.write(run, decoder, bad_records, topic, batch)
