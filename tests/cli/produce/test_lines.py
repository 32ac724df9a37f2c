import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.escapes import unescape
from headrace.cli.produce.lines import LineSplitter

MAX = 1000


def split(blocks: list[bytes], delimiter: bytes | None, max_line_bytes: int = MAX) -> list[bytes]:
    splitter = LineSplitter(delimiter, max_line_bytes)
    lines = [line for block in blocks for line in splitter.feed(block)]
    return lines + splitter.finish()


def test_a_delimiter_at_the_end_makes_no_empty_line() -> None:
    assert split([b"a\nb\n"], b"\n") == [b"a", b"b"]


def test_a_last_line_without_its_delimiter_counts() -> None:
    assert split([b"a\nb"], b"\n") == [b"a", b"b"]


def test_empty_lines_stay() -> None:
    assert split([b"a\n\n\nb\n"], b"\n") == [b"a", b"", b"", b"b"]


def test_no_input_is_no_line() -> None:
    assert split([], b"\n") == []


def test_without_a_delimiter_all_is_one_line_even_when_empty() -> None:
    assert split([b"a\n", b"b\n"], None) == [b"a\nb\n"]
    assert split([], None) == [b""]


@given(st.lists(st.binary(max_size=8)), st.sampled_from([b"\n", b"\0", b"\r\n", b"aba"]))
def test_where_the_input_is_cut_into_blocks_does_not_matter(
    blocks: list[bytes], delimiter: bytes
) -> None:
    assert split(blocks, delimiter) == split([b"".join(blocks)], delimiter)


@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n", None])
def test_an_overlong_line_is_seen_to_be_so_and_not_kept(delimiter: bytes | None) -> None:
    splitter = LineSplitter(delimiter, 10)
    for _ in range(100):
        assert splitter.feed(b"x" * 50) == []
        assert splitter.pending_bytes <= 12

    (line,) = splitter.feed(b"x\r\n")[:1] or splitter.finish()

    assert len(line) > 10


def test_a_delimiter_cut_in_two_ends_an_overlong_line() -> None:
    blocks = [b"x" * 50, b"x" * 50 + b"\r", b"\nshort\r\n"]

    long, short = split(blocks, b"\r\n", max_line_bytes=10)

    assert len(long) > 10
    assert short == b"short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\n", b"\n"),
        (r"a\tb\0", b"a\tb\0"),
        (r"\x00\xfF", b"\x00\xff"),
        (r"\\n", b"\\n"),
        ("ü", "ü".encode()),
        ("", b""),
    ],
)
def test_escapes_stand_for_bytes(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


@pytest.mark.parametrize("text", [r"\q", r"\x1", "\\"])
def test_an_unknown_escape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="means nothing"):
        unescape(text)
