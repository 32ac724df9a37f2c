import json
from typing import cast

import pytest

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import FileStatus, HadoopFiles
from headrace.pipelines.sinks.topic_notes import (
    OtherAttemptError,
    TopicEnd,
    TopicNotes,
    TopicSinkNote,
    unknown_from,
)
from headrace.pipelines.spans import Batch, Log, Spans, Written

ENDS = {"t": TopicEnd("id", {0: 5, 1: 7})}


class Files:
    """A directory in memory, with the words of HadoopFiles."""

    def __init__(self) -> None:
        self.texts = dict[str, str]()

    def list(self, folder: str) -> list[FileStatus]:
        names = [name.removeprefix(f"{folder}/") for name in sorted(self.texts)]
        return [FileStatus(name, is_directory=False, size_bytes=1, modified_ms=0) for name in names]

    def path(self, name: str) -> str:
        return name

    def exists(self, name: str) -> bool:
        return name in self.texts

    def read(self, name: str) -> str:
        return self.texts[name]

    def write_whole(self, name: str, text: str) -> None:
        if name in self.texts:
            raise SinkError(f"{name} is there already")
        self.texts[name] = text

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)


def notes_in(files: Files) -> TopicNotes:
    return TopicNotes(cast("HadoopFiles", files), "n")


def test_the_last_note_counts_and_those_before_it_go() -> None:
    files = Files()
    notes = notes_in(files)
    assert notes.last is None
    written = Written().after(Batch(9, Spans.of({Log("s", 0, "i"): (0, 4)})))

    notes.put(TopicSinkNote(ends=ENDS))
    notes.put(TopicSinkNote(written, ENDS, frozenset({"t"})))
    notes.begin()

    assert len(files.texts) == 1
    assert notes_in(files).last == TopicSinkNote(written, ENDS, frozenset({"t"}), is_begun=True)


def test_a_batch_is_begun_once() -> None:
    files = Files()
    notes = notes_in(files)
    notes.put(TopicSinkNote(ends=ENDS))
    notes.begin()
    before = dict(files.texts)

    notes.begin()

    assert files.texts == before


def test_of_two_attempts_that_are_alive_the_second_learns_of_the_first() -> None:
    files = Files()
    notes_in(files).put(TopicSinkNote())
    slow, quick = notes_in(files), notes_in(files)
    quick.put(TopicSinkNote(Written(1)))

    with pytest.raises(OtherAttemptError, match="slow to end") as caught:
        slow.put(TopicSinkNote(Written(0)))

    assert caught.value.is_retriable
    assert notes_in(files).last == TopicSinkNote(Written(1))


def test_notes_of_the_version_before_are_understood() -> None:
    files = Files()
    files.texts["n/batch-0000000000000000004.done"] = json.dumps({"t": {"0": 1}})
    files.texts["n/batch-0000000000000000005.json"] = json.dumps({"t": {"0": 3}})

    notes = notes_in(files)
    assert notes.last == TopicSinkNote(
        Written.former(4), {"t": TopicEnd("", {0: 3})}, frozenset({"t"}), is_begun=True
    )
    notes.put(TopicSinkNote(Written(5)))

    assert list(files.texts) == [f"n/note-{0:019}.json"]
    assert notes_in(files).last == TopicSinkNote(Written(5))


def test_behind_the_noted_ends_nothing_is_known() -> None:
    found = {"t": TopicEnd("id", {0: 9, 1: 7, 2: 4}), "new": TopicEnd("n", {0: 3})}

    starts, renewed = unknown_from(ENDS, found)

    assert starts == {("t", 0): 5, ("t", 1): 7, ("t", 2): 0, ("new", 0): 0}
    assert renewed == []


def test_ends_of_a_topic_that_was_made_again_mean_nothing() -> None:
    found = {"t": TopicEnd("other", {0: 9, 1: 9})}

    assert unknown_from(ENDS, found) == ({("t", 0): 0, ("t", 1): 0}, ["t"])
    assert unknown_from({"t": TopicEnd("", {0: 5})}, found)[0] == {("t", 0): 5, ("t", 1): 0}


def test_an_end_that_is_no_longer_reached_means_nothing() -> None:
    found = {"t": TopicEnd("id", {0: 4, 1: 7})}

    assert unknown_from(ENDS, found)[0] == {("t", 0): 0, ("t", 1): 7}
