import random

from headrace.log.key_map import KeyMap, LiveOffsets


def nothing() -> None:
    return


def test_a_range_has_a_live_offset_or_none() -> None:
    random.seed(1)
    live = {random.randrange(100_000) for _ in range(2_000)}
    offsets = list(live)
    random.shuffle(offsets)

    found = LiveOffsets(offsets, nothing)

    for _ in range(3_000):
        first = random.randrange(100_000)
        last = first + random.choice((0, 1, 40, 30_000))
        assert found.has_any(first, last) == any(first <= offset <= last for offset in live)


def test_sorting_and_freeing_a_million_offsets_lets_others_run_in_between() -> None:
    """In one go either would keep the interpreter's lock for a tenth of a second and more."""
    turns: list[None] = []
    live = LiveOffsets(range(1_000_000), lambda: turns.append(None))
    assert len(turns) > 200

    turns.clear()
    live.clear(lambda: turns.append(None))

    assert len(turns) > 100
    assert not live.has_any(0, 10**9)


def test_the_map_of_keys_is_spread_over_tables_that_grow_and_go_one_at_a_time() -> None:
    keys = KeyMap(0)
    for number in range(50_000):
        keys._tables[hash(b"%d" % number) % len(keys._tables)][b"%d" % number] = number

    assert max(len(table) for table in keys._tables) < 2_000
    assert sorted(keys.offsets()) == list(range(50_000))
    assert keys.get(b"77", -1) == 77
    turns: list[None] = []
    keys.clear(lambda: turns.append(None))
    assert len(turns) == len(keys._tables)
    assert keys.get(b"77", -1) == -1
