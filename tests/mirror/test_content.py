from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from headrace.mirror.content import Headers, content, writable_ms

TEXTS = st.none() | st.binary(max_size=4)
RECORDS = st.tuples(
    TEXTS,
    TEXTS,
    st.integers(-1, 3),
    st.lists(st.tuples(st.text(max_size=2), TEXTS), max_size=3),
)


def bytes_of(record: tuple[bytes | None, bytes | None, int, Headers]) -> bytes:
    return b"".join(content(*record))


@given(RECORDS, RECORDS)
def test_only_the_same_record_has_the_same_bytes(
    one: tuple[bytes | None, bytes | None, int, Headers],
    other: tuple[bytes | None, bytes | None, int, Headers],
) -> None:
    assert (bytes_of(one) == bytes_of(other)) == (one == other)


def test_null_and_empty_and_the_order_of_headers_count() -> None:
    records: list[tuple[bytes | None, bytes | None, int, Headers]] = [
        (None, b"", 1, []),
        (b"", None, 1, []),
        (b"", b"", 1, []),
        (None, None, 1, []),
        (None, None, 1, [("a", None)]),
        (None, None, 1, [("a", b"")]),
        (None, None, 1, [("a", b"1"), ("a", b"2")]),
        (None, None, 1, [("a", b"2"), ("a", b"1")]),
    ]
    for one, other in combinations(records, 2):
        assert bytes_of(one) != bytes_of(other)


def test_no_headers_are_an_empty_list_of_them() -> None:
    assert content(b"k", b"v", 1, None) == content(b"k", b"v", 1, [])


def test_only_the_first_millisecond_cannot_be_written() -> None:
    assert [writable_ms(time) for time in (-1, 0, 1, 2)] == [-1, 1, 1, 2]
