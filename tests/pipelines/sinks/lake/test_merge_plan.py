from headrace.pipelines.hadoop_files import FileStatus
from headrace.pipelines.sinks.lake.merge_plan import (
    MIB,
    TARGET_BYTES,
    TINY_FILES,
    end_of_hour_ms,
    is_quiet,
    merge_all,
    merge_tiny,
)

FOLDER = "date=2026-11-16/hour=10"
END_MS = 1_794_826_800_000  # 2026-11-16T11:00Z
MINUTE_MS = 60_000


def files(*sizes: int) -> list[FileStatus]:
    return [FileStatus(f"{number}.parquet", False, size, 0) for number, size in enumerate(sizes)]


def test_an_hour_is_quiet_ten_minutes_after_its_end_and_its_last_file() -> None:
    assert end_of_hour_ms(FOLDER) == END_MS
    assert not is_quiet(FOLDER, 0, END_MS + 9 * MINUTE_MS)
    assert is_quiet(FOLDER, 0, END_MS + 10 * MINUTE_MS)
    assert not is_quiet(FOLDER, END_MS + 60 * MINUTE_MS, END_MS + 65 * MINUTE_MS)


def test_rows_without_a_time_are_in_a_folder_that_is_over() -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    assert end_of_hour_ms(f"date={null}/hour={null}") == 0


def test_small_files_are_put_together_up_to_the_target_and_large_ones_left() -> None:
    groups = merge_all(files(*[30 * MIB] * 5, 40 * MIB, MIB))

    assert [[entry.size_bytes // MIB for entry in group] for group in groups] == [
        [30, 30, 30, 30],
        [30, 1],
    ]
    assert all(sum(entry.size_bytes for entry in group) <= TARGET_BYTES for group in groups)


def test_one_small_file_is_not_worth_it() -> None:
    assert merge_all(files(MIB, 100 * MIB)) == []


def test_tiny_files_are_merged_with_their_like_once_there_are_many() -> None:
    assert merge_tiny(files(*[9_000] * (TINY_FILES - 1), 500_000)) == []
    (group,) = merge_tiny(files(*[9_000] * TINY_FILES, 500_000, 5 * MIB))
    assert len(group) == TINY_FILES


def test_however_small_the_batches_a_row_is_rewritten_few_times() -> None:
    sizes = list[int]()
    rewritten = 0
    for _ in range(3_000):
        sizes.append(2_000)
        for group in merge_tiny(files(*sizes)):
            merged = sum(entry.size_bytes for entry in group)
            for entry in group:
                sizes.remove(entry.size_bytes)
            sizes.append(merged)
            rewritten += merged

    assert rewritten <= 3 * 3_000 * 2_000
    assert len(sizes) < 4 * TINY_FILES
