"""The mark that a topic sink puts on a record: which record it was made from, and what it is.

One record may be made into several, in any order and in any tasks, so its place alone does not
tell them apart. The digest does, up to rows that are the same in all; how often each mark is there
counts. What a repeat has to write is what it has more of than the topic.

Marks of the version before had no digest. There the first rows of a source are taken for those
that are there, which is right where a record is made into one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

# `<app id>/<topic>/<partition>/<offset>/<digest>`; none of them can hold a slash.
SOURCE_HEADER = "headrace-source"
# Only rows of one source are told apart by it: 64 bits are ample for a million of them.
_DIGEST_BYTES = 8

Headers = list[tuple[str, bytes | None]]


class RecordPlace(NamedTuple):
    """The place of the record that a row was made from."""

    topic: str
    partition: int
    offset: int


class SourceMark(NamedTuple):
    """A mark as it is read."""

    app_id: str
    source: RecordPlace
    digest: str  # empty: of the version before


def digest_of(
    log_id: str,
    topic: str,
    partition: int | None,
    key: bytes | None,
    value: bytes | None,
    time_ms: int | None,
    headers: Headers,
) -> str:
    """What the record is: where it goes, and all that the sink was given of it.

    `log_id` is the source's own, which a topic that was deleted and made again does not share.
    """
    # The size before each piece keeps "ab" + "c" apart from "a" + "bc".
    pieces = [
        f"{log_id}/{topic}/{partition}/{time_ms}/".encode(),
        _sized(key),
        _sized(value),
        *(_sized(name.encode()) + _sized(content) for name, content in headers),
    ]
    return blake2b(b"".join(pieces), digest_size=_DIGEST_BYTES).hexdigest()


def mark_of(app_id: str, source: RecordPlace, digest: str) -> bytes:
    """The header's value."""
    return f"{app_id}/{_name(source, digest)}".encode()


def read_mark(headers: Iterable[tuple[str, bytes | None]] | None) -> SourceMark | None:
    """The last mark among a record's headers: one that was copied along stands before ours."""
    found = None
    for name, value in headers or ():
        if name == SOURCE_HEADER and value is not None:
            found = value
    words = found.decode(errors="replace").split("/") if found is not None else []
    if len(words) not in (4, 5) or not (words[2].isdecimal() and words[3].isdecimal()):
        return None
    source = RecordPlace(words[1], int(words[2]), int(words[3]))
    return SourceMark(words[0], source, words[4] if len(words) == 5 else "")


@dataclass(slots=True)
class Marks:
    """How often each mark of one app is on a topic. All rows of a source must ask one Marks."""

    _counts: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, source: RecordPlace, digest: str) -> None:
        """Count one that is there."""
        self._counts[_name(source, digest)] += 1

    def add_all(self, others: "Marks") -> None:
        """Count those that are elsewhere too."""
        self._counts.update(others._counts)

    def take(self, source: RecordPlace, digest: str) -> bool:
        """Whether a row is there already; then the next one like it has to find another."""
        if not self._counts:
            return False
        for name in (_name(source, digest), _name(source, "")):
            if self._counts[name] > 0:
                self._counts[name] -= 1
                return True
        return False


def _name(source: RecordPlace, digest: str) -> str:
    topic, partition, offset = source
    return f"{topic}/{partition}/{offset}/{digest}"


def _sized(piece: bytes | None) -> bytes:
    return b"-" if piece is None else b"%d:%b" % (len(piece), piece)
