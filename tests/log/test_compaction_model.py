"""Random appends, rolls, compactions and restarts against a dictionary."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.log.compacting import COMPACTED, Pair, compact, records, roll, table, write
from tests.log.conftest import NOW_MS, Bench

from headrace.log.verify import verify_directory
from headrace.records.record import Record

CONFIG = replace(COMPACTED, segment_bytes=900, segment_index_bytes=120)
keys = st.sampled_from([b"a", b"b", b"c", b"a-longer-key" * 6, b""])
values = st.none() | st.binary(max_size=90)
batches = st.lists(st.tuples(keys, values), min_size=1, max_size=5)


class CompactionMachine(RuleBasedStateMachine):
    """`written` is every record there ever was, by offset; `model` the last value of each key."""

    make: Callable[[Path], Any]

    @initialize()
    def create(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="headrace-compaction-"))
        self.bench: Bench = type(self).make(self.root / "t-0")
        self.log = self.bench.create(CONFIG)
        self.written: dict[int, Record] = {}
        self.model: dict[bytes, bytes] = {}
        self.now_ms = NOW_MS
        self.sequence = 0

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    @rule(pairs=batches, codec=st.integers(0, 4), has_producer=st.booleans())
    def append(self, pairs: list[Pair], codec: int, has_producer: bool) -> None:
        fields: dict[str, int] = {}
        if has_producer:
            fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": self.sequence}
            self.sequence += len(pairs)
        base = write(self.bench, self.log, *pairs, codec=codec, timestamp=self.now_ms, **fields)
        for index, (key, value) in enumerate(pairs):
            self.written[base + index] = Record(base + index, self.now_ms + index, key, value, [])
            assert key is not None
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @rule()
    def roll(self) -> None:
        if self.log.segments[-1].size:
            roll(self.log)

    @rule(map_bytes=st.sampled_from([1, 400, 1_000_000]))
    def compact(self, map_bytes: int) -> None:
        compact(self.log, self.now_ms, map_bytes)

    @rule(passed_ms=st.sampled_from([1, 600, 5000]))
    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @rule(is_clean=st.booleans(), remembers_cleaning=st.booleans())
    def reopen(self, is_clean: bool, remembers_cleaning: bool) -> None:
        end, cleaned = self.log.log_end_offset, self.log.cleaner_offset
        producers = {pid: e.last_sequence for pid, e in self.log.producers.entries.items()}
        if is_clean:
            self.log.close()
        self.log = self.bench.open(
            CONFIG,
            was_clean=is_clean,
            recovery_point=end if is_clean else 0,
            cleaner_offset=cleaned if remembers_cleaning else 0,
            now_ms=self.now_ms,
        )
        assert self.log.log_end_offset == end
        found = {pid: e.last_sequence for pid, e in self.log.producers.entries.items()}
        assert found == producers

    @invariant()
    def nothing_else_changes(self) -> None:
        if not hasattr(self, "log"):
            return
        found = records(self.bench, self.log)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        assert all(self.written[record.offset] == record for record in found)
        assert table(found) == self.model

    @rule()
    def verify(self) -> None:
        self.log.flush_indexes()
        findings = verify_directory(self.bench.directory)
        assert [finding for finding in findings if finding.kind != "tail"] == []


def test_the_last_value_of_each_key_is_what_was_written_last(
    make_bench: Callable[[Path], Bench],
) -> None:
    machine = type("Machine", (CompactionMachine,), {"make": staticmethod(make_bench)})

    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=40))
