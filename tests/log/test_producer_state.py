from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from headrace.log.producer_snapshot import SnapshotError, decode_snapshot, encode_snapshot
from headrace.log.producer_state import ProducerBatch, ProducerEntry, ProducerStates

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

    log.enforce_retention(bench.now_ms + 999)
    assert set(log.producers.entries) == {5}
    log.enforce_retention(bench.now_ms + 1000)

    assert log.producers.entries == {}
    assert bench.append(log, idempotent(bench, 40))[0].base_offset == 1


def test_an_open_transaction_does_not_expire() -> None:
    entry = ProducerEntry(0, (), 0, txn_first_offset=3)
    states = ProducerStates({1: entry, 2: entry._replace(txn_first_offset=-1)})

    assert states.expire(10**6, 1) == 1
    assert set(states.entries) == {1}


def test_a_damaged_snapshot_is_replaced_by_the_log(bench: Any) -> None:
    log = bench.create()
    bench.append(log, idempotent(bench, 0), idempotent(bench, 1))
    log.close()
    bench.path(2, ".snapshot").write_bytes(b"\x00\x01garbage that is no snapshot")

    log = bench.open()

    assert "its checksum does not match" in bench.repairs[0]
    assert log.producers.entries[5].last_sequence == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:9],
        lambda data: b"\x00\x02" + data[2:],
        lambda data: data[:-1],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    ],
    ids=["short", "version", "cut", "flipped"],
)
def test_a_snapshot_that_was_changed_is_refused(change: Any) -> None:
    entry = ProducerEntry(1, (ProducerBatch(3, 9, 1, 50),), 50)
    data = encode_snapshot({4: entry})
    assert decode_snapshot(data) == {4: entry._replace(is_partial=True)}

    with pytest.raises(SnapshotError):
        decode_snapshot(change(data))
