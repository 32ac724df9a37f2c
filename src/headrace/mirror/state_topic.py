"""The state topic at the target: read whole at the start, appended to since.

Kafka's cleaner keeps it short. headrace's own broker compacts only its internal topics, so a log
that has grown far beyond its entries is written anew and cut at its start, on either engine.
"""

from headrace.client.admin import BROKERS_DEFAULT
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.identity import TARGET, is_other, made_anew
from headrace.mirror.reading import read
from headrace.mirror.state import (
    STATE_TOPIC,
    CheckpointKey,
    Entry,
    Key,
    NoteKey,
    PartitionCheckpoint,
    StateRow,
    TopicNote,
    decode,
    encode_key,
    encode_row,
)
from headrace.mirror.writer import Writer
from headrace.model import TopicPartition

_PLACE = TopicPartition(STATE_TOPIC, 0)
_CONFIGS = {
    "cleanup.policy": "compact,delete",  # "delete" only so that its start may be cut
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
}
_MOST_STALE = 20_000  # records: a second's reading


class StateTopic:
    """`rows` has the newest entry of each key, of every mirror that writes to this target.

    `topic_id` is that of the topic it was read from or made as.
    """

    def __init__(self, end: Endpoint) -> None:
        self._end = end
        self.topic_id = ""
        self.rows: dict[Key, StateRow] = {}
        self._length = 0
        self._end_offset = 0

    def load(self) -> None:
        """Read what there is; a target without the topic has seen no mirror yet."""
        self.rows.clear()
        if STATE_TOPIC not in self._end.topic_names():
            return
        self._identify()
        start = self._end.oldest_offsets([_PLACE])[_PLACE]
        stop = self._end.visible_ends([_PLACE])[_PLACE]
        self._length, self._end_offset = stop - start, stop
        for _, messages in read(self._end, {_PLACE: range(start, stop)}):
            for message in messages:
                key, row = decode(message.key() or b"", message.value() or b"")
                known = self.rows.get(key)
                if known is None or row.revision >= known.revision:
                    self.rows[key] = row

    def create(self, replication_factor: int | None) -> None:
        """Make the topic where there is none."""
        self._end.ensure_topic(STATE_TOPIC, 1, replication_factor or BROKERS_DEFAULT, _CONFIGS)
        self._identify()

    def note(self, source_id: str, topic: str) -> TopicNote | None:
        row = self.rows.get(NoteKey(source_id, topic))
        return row.entry if row and isinstance(row.entry, TopicNote) else None

    def checkpoint(self, source_id: str, partition: TopicPartition) -> PartitionCheckpoint | None:
        """Where to go on with the topic that is noted; None for one that had its name before."""
        row = self.rows.get(CheckpointKey(source_id, *partition))
        note = self.note(source_id, partition.topic)
        if row is None or note is None or not isinstance(row.entry, PartitionCheckpoint):
            return None
        is_stale = is_other(row.entry.source_topic_id, note.source_topic_id) or is_other(
            row.entry.target_topic_id, note.target_topic_id
        )
        return None if is_stale else row.entry

    def notes_of(self, topic: str) -> dict[str, TopicNote]:
        """The notes on a topic, by the cluster it came from."""
        return {
            key.source_id: row.entry
            for key, row in self.rows.items()
            if isinstance(row.entry, TopicNote) and key.topic == topic
        }

    def put(self, writer: Writer, key: Key, entry: Entry) -> None:
        """Append a new entry; it has arrived when the writer is flushed."""
        known = self.rows.get(key)
        self._append(writer, key, StateRow(known.revision + 1 if known else 1, entry))

    def remember(self, key: Key, entry: Entry) -> None:
        """Know something that could not be written; the next entry of this key will be."""
        known = self.rows.get(key)
        self.rows[key] = StateRow(known.revision + 1 if known else 1, entry)

    def shrink(self, writer: Writer, own_source_id: str) -> None:
        """Write each entry anew and let go of what was before, if that is much."""
        if self._length - len(self.rows) < _MOST_STALE:
            return
        writer.flush()
        self.load()
        loaded_end = self._end_offset
        for key, row in list(self.rows.items()):
            entry = row.entry
            if key.source_id != own_source_id and isinstance(entry, PartitionCheckpoint):
                # Its mirror may have gone on since: what is known may be old, so not final.
                entry = entry._replace(is_clean=False)
            self._append(writer, key, StateRow(row.revision, entry))
        writer.flush()
        self._end.delete_records({_PLACE: loaded_end})
        self._length = len(self.rows)

    def _identify(self) -> None:
        found = self._end.topic_ids([STATE_TOPIC]).get(STATE_TOPIC, "")
        if is_other(self.topic_id, found):
            raise made_anew(TARGET, STATE_TOPIC, self.topic_id, found)
        self.topic_id = self.topic_id or found

    def _append(self, writer: Writer, key: Key, row: StateRow) -> None:
        self.rows[key] = row
        self._length += 1
        writer.send(STATE_TOPIC, 0, encode_key(key), encode_row(row))
