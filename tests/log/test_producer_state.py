from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from headrace.log.producer_state import ProducerEntry, ProducerStates
from headrace.log.retention import enforce_retention
from headrace.records.batch import peek_header

MAX_SEQUENCE = 2**31 - 1


def idempotent(bench: Any, sequence: int, count: int = 1, epoch: int = 0, pid: int = 5) -> Any:
    return bench.batch(count, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)


def test_each_of_the_last_five_batches_is_known_as_a_duplicate(bench: Any) -> None:
    log = bench.create()
    originals = [bench.append(log, idempotent(bench, 2 * n, 2))[0] for n in range(6)]

    for number, original in enumerate(originals[1:], 1):
        (again,) = bench.append(log, idempotent(bench, 2 * number, 2))
        assert again == original._replace(is_duplicate=True)
    with pytest.raises(OutOfOrderSequenceError):
        bench.stage(log, idempotent(bench, 0, 2))
    assert log.log_end_offset == 12


def test_a_duplicate_with_another_count_is_out_of_order(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0, 3))

    with pytest.raises(OutOfOrderSequenceError):
        bench.stage(log, idempotent(bench, 0, 2))


def test_a_gap_is_refused_and_changes_nothing(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0))

    with pytest.raises(OutOfOrderSequenceError) as caught:
        bench.stage(log, idempotent(bench, 2))

    assert (caught.value.sequence, caught.value.expected) == (2, 1)
    assert bench.append(log, idempotent(bench, 1))[0].base_offset == 1


def test_an_unknown_producer_may_start_anywhere(bench: Any) -> None:
    log = bench.create()

    assert bench.append(log, idempotent(bench, 77))[0].base_offset == 0


def test_a_new_epoch_starts_at_zero(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0))

    with pytest.raises(OutOfOrderSequenceError):
        bench.stage(log, idempotent(bench, 1, epoch=1))
    bench.append(log, idempotent(bench, 0, epoch=1))

    with pytest.raises(InvalidProducerEpochError):
        bench.stage(log, idempotent(bench, 1, epoch=0))


def test_sequences_wrap_to_zero(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, MAX_SEQUENCE - 1, 3))

    assert log.producers.entries[5].last_sequence == 0
    assert not bench.append(log, idempotent(bench, 1))[0].is_duplicate
    assert bench.append(log, idempotent(bench, MAX_SEQUENCE - 1, 3))[0].is_duplicate


def test_staged_batches_count(bench: Any) -> None:
    log = bench.create()
    bench.stage(log, idempotent(bench, 0))
    bench.stage(log, idempotent(bench, 1))

    again = bench.stage(log, idempotent(bench, 1))

    assert (again.base_offset, again.is_duplicate) == (1, True)
    assert log.commit(0) == 2


def test_what_was_discarded_is_forgotten(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0))
    bench.stage(log, idempotent(bench, 1))
    bench.stage(log, idempotent(bench, 0, pid=6))

    log.discard()

    assert set(log.producers.entries) == {5}
    assert log.producers.entries[5].last_sequence == 0


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_last_five_batches_survive_a_restart(bench: Any, is_clean: bool) -> None:
    config = LogConfig(segment_bytes=400, index_interval_bytes=100)
    log = bench.create(config)
    originals = [bench.append(log, idempotent(bench, n))[0] for n in range(6)]
    if is_clean:
        log.close()
        log = bench.open(config)
    else:
        log = bench.crash_open(config)

    for number in (3, 2, 5, 4):
        (again,) = bench.append(log, idempotent(bench, number))
        assert again == originals[number]._replace(is_duplicate=True)
    with pytest.raises(OutOfOrderSequenceError):
        bench.stage(log, idempotent(bench, 7))
    assert bench.append(log, idempotent(bench, 6))[0].base_offset == 6


def test_silent_producers_expire(bench: Any) -> None:
    log = bench.create(LogConfig(retention_ms=None), producer_expiration_ms=1000)
    bench.append(log, idempotent(bench, 0))

    enforce_retention(log, bench.now_ms + 999)
    assert set(log.producers.entries) == {5}
    enforce_retention(log, bench.now_ms + 1000)

    assert log.producers.entries == {}
    assert bench.append(log, idempotent(bench, 40))[0].base_offset == 1


DAY_MS = 86_400_000
OLD_MS = 1_500_000_000_000


def backfill(bench: Any, sequence: int, timestamp: int = OLD_MS, **fields: Any) -> Any:
    return bench.batch(
        1, timestamp=timestamp, producer_id=5, producer_epoch=0, base_sequence=sequence, **fields
    )


@pytest.mark.parametrize("timestamp", [OLD_MS, 0, -1, 2**62])
def test_the_timestamps_of_its_records_expire_nobody(bench: Any, timestamp: int) -> None:
    log = bench.create(LogConfig(retention_ms=None))
    (first,) = bench.append(log, backfill(bench, 0, timestamp))

    enforce_retention(log, bench.now_ms + 300_000)

    assert bench.append(log, backfill(bench, 0, timestamp))[0] == first._replace(is_duplicate=True)


@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize("how", ["clean stop", "kill", "kill, synced"])
def test_a_producer_of_old_records_is_known_after_a_restart(
    bench: Any, how: str, rolls: bool
) -> None:
    config = LogConfig(retention_ms=None, segment_bytes=150 if rolls else 10_000)
    log = bench.create(config)
    originals = [bench.append(log, backfill(bench, n))[0] for n in range(3)]
    hour_later = bench.now_ms + 3_600_000
    if how == "clean stop":
        log.close()
        log = bench.open(config, now_ms=hour_later)
    else:
        point = 3 if how == "kill, synced" else 0
        log = bench.crash_open(config, recovery_point=point, now_ms=hour_later)
    enforce_retention(log, hour_later)

    for number, original in enumerate(originals):
        (again,) = bench.append(log, backfill(bench, number))
        assert again == original._replace(is_duplicate=True)
    assert log.log_end_offset == 3
    assert not bench.append(log, backfill(bench, 3))[0].is_duplicate


def test_silence_counts_over_a_clean_stop(bench: Any) -> None:
    log = bench.create()
    bench.append(log, backfill(bench, 0))
    log.close()

    log = bench.open(now_ms=bench.now_ms + DAY_MS - 1)
    assert set(log.producers.entries) == {5}
    log.close()
    log = bench.open(now_ms=bench.now_ms + DAY_MS)

    assert log.producers.entries == {}


def test_after_a_kill_silence_counts_from_the_recovery(bench: Any) -> None:
    log = bench.create()
    bench.append(log, backfill(bench, 0))
    later = bench.now_ms + 10 * DAY_MS

    log = bench.crash_open(now_ms=later)

    assert log.producers.entries[5].last_append_ms == later


def test_a_recovery_forgets_nobody_before_the_settings_are_known(bench: Any) -> None:
    log = bench.create(LogConfig(segment_bytes=150))
    bench.append(log, backfill(bench, 0))
    bench.append(log, *(bench.batch() for _ in range(3)))  # the first is only in snapshots then
    later = bench.now_ms + 10 * DAY_MS

    log = bench.crash_open(LogConfig(segment_bytes=150), recovery_point=3, now_ms=later)
    assert log.producers.entries[5].last_append_ms == bench.now_ms
    log.producer_expiration_ms = 10 * DAY_MS + 1
    enforce_retention(log, later)
    assert set(log.producers.entries) == {5}

    log.producer_expiration_ms = 10 * DAY_MS
    enforce_retention(log, later)
    assert log.producers.entries == {}


def test_a_cut_of_the_log_renews_nobody(bench: Any) -> None:
    log = bench.create()
    bench.append(log, backfill(bench, 0))
    bench.append(log, bench.batch())

    log.truncate(1)

    assert log.producers.entries[5].last_append_ms == bench.now_ms


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("restarts", [0, 1, 2])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_duplicate_has_the_append_time_of_its_original(
    bench: Any, codec: int, restarts: int, is_clean: bool
) -> None:
    config = LogConfig(is_log_append_time=True, retention_ms=None)
    log = bench.create(config)
    originals = [bench.append(log, backfill(bench, n, codec=codec))[0] for n in range(2)]
    assert originals[0].log_append_time == bench.now_ms
    for restart in range(1, restarts + 1):
        if is_clean:
            log.close()
        open_again = bench.open if is_clean else bench.crash_open
        log = open_again(config, now_ms=bench.now_ms + restart * 3_600_000)

    for number in (1, 0):
        (again,) = bench.append(log, backfill(bench, number, codec=codec))
        assert again == originals[number]._replace(is_duplicate=True)


def silent(**last_append_ms: int) -> ProducerStates:
    """States of producers 1, 2, ... that were last heard of then."""
    times = last_append_ms.values()
    return ProducerStates({at: ProducerEntry(0, (), ms) for at, ms in enumerate(times, 1)})


def test_a_clock_set_forward_makes_nobody_silent_for_longer() -> None:
    states = silent(a=1_000_000, b=1_050_000)
    assert states.expire(1_050_000, DAY_MS, 50_000) == 0
    states.entries[3] = ProducerEntry(0, (), 1_060_000 + 2 * DAY_MS)  # heard of since

    assert states.expire(1_070_000 + 2 * DAY_MS, DAY_MS, 70_000) == 0
    assert states.expire(1_000_000 + 3 * DAY_MS - 1, DAY_MS, DAY_MS - 1) == 0
    assert states.expire(1_000_000 + 3 * DAY_MS, DAY_MS, DAY_MS) == 1
    assert states.expire(1_050_000 + 3 * DAY_MS, DAY_MS, DAY_MS + 50_000) == 1
    assert set(states.entries) == {3}


def test_a_clock_set_back_keeps_nobody_for_ever_and_forgets_nobody_early() -> None:
    states = silent(a=10 * DAY_MS)
    assert states.expire(10 * DAY_MS, DAY_MS, 0) == 0
    states.entries[2] = ProducerEntry(0, (), 5 * DAY_MS)  # heard of after it was set back

    assert states.expire(5 * DAY_MS + 1000, DAY_MS, 1000) == 0
    assert states.expire(6 * DAY_MS, DAY_MS, DAY_MS) == 1
    assert set(states.entries) == {1}
    assert states.expire(6 * DAY_MS + 1000, DAY_MS, DAY_MS + 1000) == 1


def test_a_clock_that_was_wrong_for_a_moment_forgets_nobody(bench: Any) -> None:
    log = bench.create(LogConfig(retention_ms=None))
    bench.append(log, idempotent(bench, 0))
    batch = idempotent(bench, 1)
    log.stage(memoryview(batch), peek_header(batch), bench.now_ms - 2 * DAY_MS)
    log.commit(bench.now_ms)

    enforce_retention(log, bench.now_ms + 300_000)

    assert bench.append(log, idempotent(bench, 1))[0].is_duplicate


def test_a_time_in_the_future_counts_as_now() -> None:
    states = silent(a=2**62)

    assert states.expire(5000, 1000, 0) == 0
    assert states.expire(6000, 1000, 1000) == 1


def test_an_open_transaction_does_not_expire() -> None:
    entry = ProducerEntry(0, (), 0, txn_first_offset=3)
    states = ProducerStates({1: entry, 2: entry._replace(txn_first_offset=-1)})

    assert states.expire(10**6, 1, 0) == 1
    assert set(states.entries) == {1}


def test_a_damaged_snapshot_is_replaced_by_the_log(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0), idempotent(bench, 1))
    log.close()
    bench.path(2, ".snapshot").write_bytes(b"\x00\x01garbage that is no snapshot")

    log = bench.open()

    assert "its checksum does not match" in bench.repairs[0]
    assert log.producers.entries[5].last_sequence == 1
