from headrace.log.byte_ranges import ByteRanges


def test_ranges_merge_where_they_touch() -> None:
    ranges = ByteRanges()
    for start, end in ((10, 20), (30, 40), (20, 25), (50, 60), (24, 31), (5, 5)):
        ranges.add(start, end)

    assert list(ranges) == [(10, 40), (50, 60)]
    assert [ranges.end_of(p) for p in (9, 10, 39, 40, 55)] == [9, 40, 40, 40, 60]
    assert [ranges.start_behind(p) for p in (0, 10, 45, 50)] == [10, 50, 50, None]
