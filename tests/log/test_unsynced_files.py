from pathlib import Path

from headrace.log.unsynced_files import UnsyncedFiles

A, B, C = (Path(name) for name in "abc")


def test_a_file_stays_until_a_sync_that_began_with_its_data() -> None:
    files = UnsyncedFiles()
    files.note(10, A)
    files.note(20, B, C)

    files.forget(10)
    assert list(files) == [A, B, C]
    files.forget(11)
    assert list(files) == [B, C]
    files.forget(100)
    assert list(files) == []


def test_a_file_that_changes_again_needs_the_later_sync() -> None:
    files = UnsyncedFiles()
    files.note(10, A)
    files.note(20, A)

    files.forget(11)

    assert list(files) == [A]


def test_what_was_noted_since_a_mark_can_be_taken_back() -> None:
    files = UnsyncedFiles()
    files.note(10, A)
    mark = files.mark()
    files.note(20, A, B)

    files.reset(mark)
    files.forget(11)

    assert len(files) == 0
