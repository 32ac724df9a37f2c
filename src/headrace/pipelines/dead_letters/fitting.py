"""A letter that fits into its topic: what is too large is cut, and the letter says so.

The record itself stays where it was; its place and the hash of its value are in the letter.
"""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.pipelines.dead_letters.letter import CUT, REASON, VALUE_SHA256, VALUE_SIZE, Headers
from headrace.pipelines.errors import SinkError

# What the wire adds at most: a batch's head, a record's lengths and times, a header's two lengths.
_BATCH_BYTES, _RECORD_BYTES, _HEADER_BYTES = 61, 36, 10
# Of the sentence about what was cut; its numbers are not known before it is cut.
_CUT_WORDS_BYTES = 150
# A topic that takes hardly more than our own headers gets the beginning of the reason.
_SHORT_REASON_CHARACTERS = 80


class LetterTooLargeError(SinkError):
    """Not even what headrace itself has to say of a record fits into the topic."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A letter before it is written: the record's own key, value and headers, and ours."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    ours: Mapping[str, str]

    @property
    def all_headers(self) -> Headers:
        """The record's own, then ours."""
        return [*self.headers, *((name, text.encode()) for name, text in self.ours.items())]

    @property
    def size(self) -> int:
        """Bytes of a batch that holds this letter alone, at most."""
        body = len(self.key or b"") + len(self.value or b"")
        return _BATCH_BYTES + _RECORD_BYTES + body + _size_of(self.all_headers)


def fit(draft: Draft, limit: int) -> Draft:
    """The letter as it is, or cut to `limit` bytes with a note of what is missing.

    Raises LetterTooLargeError where not even the note fits.
    """
    if draft.size <= limit:
        return draft
    noted = dict(draft.ours)
    if draft.value is not None:
        noted[VALUE_SIZE] = str(len(draft.value))
        noted[VALUE_SHA256] = hashlib.sha256(draft.value).hexdigest()
    bare = Draft(None, None, [], {**noted, CUT: "x" * _CUT_WORDS_BYTES})
    if bare.size > limit:
        noted[REASON] = _short(noted.get(REASON, ""))
        bare = replace(bare, ours={**bare.ours, REASON: noted[REASON]})
    room = limit - bare.size
    if room < 0:
        raise LetterTooLargeError(
            f"a dead letter needs {bare.size:,} bytes to say where its record is, and its topic "
            f"takes {limit:,}; raise the topic's max.message.bytes"
        )
    # The key and the headers tell records apart and are small as a rule; at worst each has half
    # of what is there.
    key = _start(draft.key, room // 2)
    room -= len(key or b"")
    headers = _first(draft.headers, room // 2)
    room -= _size_of(headers)
    value = _start(draft.value, room)
    words = "; ".join(
        [
            *_cut_words("value", draft.value, value),
            *_cut_words("key", draft.key, key),
            *_missing_words(len(draft.headers), len(headers)),
        ]
    )
    return Draft(key, value, headers, {**noted, CUT: words})


def _size_of(headers: Headers) -> int:
    return sum(
        _HEADER_BYTES + len(name.encode("utf-8", "replace")) + len(value or b"")
        for name, value in headers
    )


def _first(headers: Headers, room: int) -> Headers:
    sizes = itertools.accumulate(_size_of([each]) for each in headers)
    return headers[: sum(size <= room for size in sizes)]


def _start(data: bytes | None, room: int) -> bytes | None:
    return data if data is None or len(data) <= room else data[:room]


def _short(reason: str) -> str:
    is_long = len(reason) > _SHORT_REASON_CHARACTERS
    return f"{reason[:_SHORT_REASON_CHARACTERS]}…" if is_long else reason


def _cut_words(what: str, before: bytes | None, after: bytes | None) -> list[str]:
    if before == after:
        return []
    return [f"{what} cut at {len(after or b'')} of {len(before or b'')} bytes"]


def _missing_words(before: int, after: int) -> list[str]:
    return [] if before == after else [f"{before - after} of {before} headers left out"]
