"""Letters that are too large for their topic."""

import hashlib

import pytest

from headrace.pipelines.dead_letters.fitting import Draft, LetterTooLargeError, fit
from headrace.pipelines.dead_letters.letter import CUT, REASON, VALUE_SHA256, VALUE_SIZE

OURS = {REASON: "not JSON", "headrace.topic": "orders", "headrace.offset": "7"}


def test_a_letter_that_fits_is_left_as_it_is() -> None:
    draft = Draft(b"k", b"v" * 500, [("h", b"1")], OURS)

    assert fit(draft, draft.size) is draft


def test_a_value_is_cut_and_the_letter_says_how_it_was() -> None:
    value = bytes(range(256)) * 40
    draft = Draft(b"k", value, [("h", b"1")], OURS)

    letter = fit(draft, 2000)

    assert letter.size <= 2000
    assert letter.value
    assert value.startswith(letter.value)
    assert (letter.key, letter.headers) == (b"k", [("h", b"1")])
    assert letter.ours[CUT] == f"value cut at {len(letter.value)} of 10240 bytes"
    assert letter.ours[VALUE_SIZE] == "10240"
    assert letter.ours[VALUE_SHA256] == hashlib.sha256(value).hexdigest()


@pytest.mark.parametrize("limit", [900, 2000, 50_000])
@pytest.mark.parametrize("value", [None, b"", b"v" * 100_000])
def test_whatever_is_large_in_it_it_fits(value: bytes | None, limit: int) -> None:
    headers: list[tuple[str, bytes | None]] = [(f"h{n}", b"x" * 100) for n in range(5_000)]
    draft = Draft(b"k" * 60_000, value, [*headers, ("null", None)], OURS)

    letter = fit(draft, limit)

    assert letter.size <= limit
    assert "key cut at " in letter.ours[CUT]
    assert "of 5001 headers left out" in letter.ours[CUT]
    assert (letter.value is None) == (value is None)
    assert letter.headers == draft.headers[: len(letter.headers)]


def test_a_reason_gives_way_before_the_place_does() -> None:
    draft = Draft(None, b"v" * 5000, [], {**OURS, REASON: "r" * 1000})

    letter = fit(draft, 800)

    assert letter.size <= 800
    assert letter.ours[REASON] == "r" * 80 + "…"
    assert letter.ours["headrace.offset"] == "7"


def test_a_topic_that_takes_next_to_nothing_is_named_as_the_problem() -> None:
    with pytest.raises(LetterTooLargeError, match=r"takes 100; raise the topic's max.message"):
        fit(Draft(None, b"v" * 5000, [], OURS), 100)
