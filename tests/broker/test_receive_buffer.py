from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.memory import MemoryBudget
from headrace.broker.receive_buffer import FIRST_SIZE, ReceiveBuffer


def feed(buffer: ReceiveBuffer, content: bytes) -> int:
    """One read of the socket: as much as fits."""
    room = buffer.make_room()
    taken = min(len(room), len(content))
    room[:taken] = content[:taken]
    buffer.end += taken
    return taken


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=6), st.integers(1, 70_000))
def test_frames_of_any_size_come_through_whole_however_they_are_cut(
    sizes: list[int], cut: int
) -> None:
    buffer = ReceiveBuffer(MemoryBudget(10**9))
    stream = b"".join(bytes([at + 1]) * size for at, size in enumerate(sizes))
    frames: list[bytes] = []
    position = 0
    while position < len(stream):
        position += feed(buffer, stream[position : position + cut])
        while len(frames) < len(sizes):
            size = sizes[len(frames)]
            if buffer.end - buffer.start < size:
                buffer.wanted = size
                break
            frames.append(bytes(buffer.view[buffer.start : buffer.start + size]))
            buffer.start += size
        assert buffer.grow()

    assert frames == [bytes([at + 1]) * size for at, size in enumerate(sizes)]


def test_it_grows_only_as_bytes_arrive() -> None:
    buffer = ReceiveBuffer(MemoryBudget(10**9))
    buffer.end = 100
    buffer.wanted = 50 * 1024 * 1024

    assert buffer.grow()

    assert len(buffer.data) == FIRST_SIZE


def test_it_does_not_grow_beyond_the_budget() -> None:
    budget = MemoryBudget(100)
    assert budget.take(90)
    buffer = ReceiveBuffer(budget)
    buffer.end = FIRST_SIZE
    buffer.wanted = 2 * FIRST_SIZE

    assert not buffer.grow()

    assert budget.used_bytes == 90


def test_what_was_taken_is_given_back_when_the_connection_goes() -> None:
    budget = MemoryBudget(10**9)
    buffer = ReceiveBuffer(budget)
    buffer.end = FIRST_SIZE
    buffer.wanted = 3 * FIRST_SIZE
    assert buffer.grow()
    assert budget.used_bytes == FIRST_SIZE

    buffer.release()

    assert budget.used_bytes == 0


def test_a_quiet_connection_goes_back_to_the_first_size() -> None:
    budget = MemoryBudget(10**9)
    buffer = ReceiveBuffer(budget)
    buffer.end = FIRST_SIZE
    buffer.wanted = 2 * FIRST_SIZE
    assert buffer.grow()
    buffer.start = buffer.end

    buffer.shrink()

    assert (len(buffer.data), budget.used_bytes) == (FIRST_SIZE, 0)


def test_growing_leaves_views_into_the_old_bytes_good() -> None:
    buffer = ReceiveBuffer(MemoryBudget(10**9))
    feed(buffer, b"a" * FIRST_SIZE)
    staged = buffer.view[:10]
    buffer.start = 10
    buffer.wanted = 2 * FIRST_SIZE

    assert buffer.grow()
    feed(buffer, b"b" * FIRST_SIZE)

    assert bytes(staged) == b"a" * 10


def test_those_who_wait_for_memory_are_called_when_some_comes_back() -> None:
    budget = MemoryBudget(100)
    assert budget.take(100)
    called = []
    budget.wait(lambda: called.append(1))

    budget.give_back(10)
    budget.give_back(10)

    assert called == [1]


def test_a_single_request_larger_than_the_budget_is_not_starved() -> None:
    assert MemoryBudget(100).take(1000)


def test_a_block_that_is_lent_is_not_read_into() -> None:
    buffer = ReceiveBuffer(MemoryBudget(10**9))
    feed(buffer, b"a" * 1_000 + b"b" * 500)
    staged = buffer.view[:1_000]
    buffer.block.loans += 1
    lent = buffer.block
    buffer.start = 1_000

    feed(buffer, b"c" * 2_000)

    assert bytes(staged) == b"a" * 1_000
    assert buffer.block is not lent
    assert bytes(buffer.view[buffer.start : buffer.end]) == b"b" * 500 + b"c" * 2_000


def test_a_large_request_is_copied_once_on_its_way_to_its_full_size() -> None:
    budget = MemoryBudget(10**9)
    buffer = ReceiveBuffer(budget)
    size = 20 * 1024 * 1024
    blocks = set()
    while buffer.end < size:
        buffer.wanted = size
        feed(buffer, b"x" * 300_000)
        assert buffer.grow()
        if buffer.block.is_large:
            blocks.add(id(buffer.block))

    assert len(blocks) == 1
    assert budget.used_bytes == size - FIRST_SIZE
    buffer.release()
    assert budget.used_bytes == 0


def test_what_is_not_paid_for_is_not_read_into() -> None:
    budget = MemoryBudget(3 * 1024 * 1024)
    assert budget.take(1)
    buffer = ReceiveBuffer(budget)
    while buffer.grow():
        buffer.wanted = 100 * 1024 * 1024
        feed(buffer, b"x" * 100_000)

    assert buffer.end <= 4 * 1024 * 1024
    assert len(buffer.make_room()) + buffer.end <= 4 * 1024 * 1024
