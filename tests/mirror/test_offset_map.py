from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.mirror.offset_map import MAX_PAIRS, OffsetMap


def test_without_gaps_two_pairs_say_everything() -> None:
    offsets = OffsetMap([(40, 0)])
    for count in range(1, 1000):
        offsets.add(40 + count * 10, count * 10)

    assert len(offsets.pairs) == 2
    assert [offsets.exact(at) for at in (0, 40, 41, 5555, 10_030, 99_999)] == [
        0,
        0,
        1,
        5515,
        9990,
        9990,
    ]


def test_among_gaps_it_takes_a_reading_between_two_pairs() -> None:
    offsets = OffsetMap([(0, 0)])
    offsets.add(100, 90)
    offsets.add(150, 90)
    offsets.add(160, 100)

    assert offsets.exact(50) is None
    assert offsets.interval(50) == ((0, 0), (100, 90))
    assert [offsets.exact(at) for at in (100, 120, 155, 160, 200)] == [90, 90, 95, 100, 100]


def test_going_back_is_ignored() -> None:
    offsets = OffsetMap([(0, 0)])
    offsets.add(10, 10)
    offsets.add(5, 5)

    assert offsets.newest == (10, 10)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=400))
def test_it_stays_bounded_and_never_wrong(steps: list[tuple[int, bool]]) -> None:
    """Against a plain table of every offset."""
    offsets = OffsetMap([(0, 0)])
    table = [0]  # table[s]: visible records before s
    for length, is_visible in steps:
        for _ in range(length):
            table.append(table[-1] + is_visible)
        offsets.add(len(table) - 1, table[-1])

    assert len(offsets.pairs) <= MAX_PAIRS
    assert all(offsets.exact(at) in (None, count) for at, count in enumerate(table))
    for at, count in enumerate(table):
        low, high = offsets.interval(at)
        assert low.target <= count <= (high or low).target
