import random

from headrace.kafka.drill.ranges import Ranges


def ranges_of(*numbers: int) -> Ranges:
    ranges = Ranges()
    for number in numbers:
        ranges.add(number)
    return ranges


def test_numbers_in_order_are_one_range() -> None:
    ranges = ranges_of(*range(100_000))

    assert list(ranges) == [(0, 100_000)]
    assert ranges.count == 100_000


def test_a_number_is_taken_once() -> None:
    ranges = ranges_of(1, 2, 5)

    assert not ranges.add(2)
    assert not ranges.add(5)
    assert ranges.count == 3


def test_a_number_that_fills_a_gap_joins_its_neighbours() -> None:
    ranges = ranges_of(0, 1, 3, 4)

    assert ranges.add(2)
    assert list(ranges) == [(0, 5)]


def test_any_order_gives_the_same_set() -> None:
    numbers = [number for number in range(500) if number % 7 and number % 31]
    random.Random(6).shuffle(numbers)

    ranges = ranges_of(*numbers)

    covered = {number for start, end in ranges for number in range(start, end)}
    assert covered == set(numbers)
    assert ranges.count == len(numbers)
    assert all(number in ranges for number in numbers)
    assert 7 not in ranges


def test_what_is_left_of_a_difference_is_exact() -> None:
    chance = random.Random(7)
    for _ in range(300):
        left = {chance.randrange(30) for _ in range(chance.randrange(25))}
        right = {chance.randrange(30) for _ in range(chance.randrange(25))}

        rest = ranges_of(*left).minus(ranges_of(*right))

        assert {n for start, end in rest for n in range(start, end)} == left - right
        assert rest.count == len(left - right)


def test_a_range_with_no_numbers_is_empty() -> None:
    assert list(Ranges.of(3, 3)) == []
    assert Ranges.of(0, 5).minus(Ranges.of(0, 5)).count == 0
