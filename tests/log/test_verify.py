from typing import Any

from headrace.config import LogConfig
from headrace.log.verify import verify_directory

SMALL_SEGMENTS = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def closed(bench: Any) -> Any:
    log = bench.create(SMALL_SEGMENTS)
    for number in range(40):
        bench.append(log, bench.batch(timestamp=bench.now_ms + number))
    log.close()
    return log


def test_a_sound_directory_has_no_findings(bench: Any) -> None:
    closed(bench)
    progress: list[tuple[int, int]] = []

    findings = verify_directory(bench.directory.parent, lambda *step: progress.append(step))

    assert findings == []
    assert progress[-1][0] == progress[-1][1] > 3000


def test_a_directory_without_segments_is_none_of_its_business(bench: Any) -> None:
    closed(bench)
    (bench.directory.parent / "kafka" / "default").mkdir(parents=True)  # a cluster of Kafka

    assert verify_directory(bench.directory.parent) == []


def test_each_damaged_batch_is_named_with_file_and_position(bench: Any) -> None:
    log = closed(bench)
    second = log.segments[1].base_offset
    size = len(bench.batch())
    bench.flip(size + 70)
    bench.flip(3 * size + 70)
    bench.flip(70, second)

    findings = verify_directory(bench.directory)

    damage = [(f.path, f.position) for f in findings if f.kind == "damage"]
    assert damage == [(bench.path(0), size), (bench.path(0), 3 * size), (bench.path(second), 0)]
    assert str(findings[0]).startswith(f"{bench.path(0)}: damage at byte {size}: ")


def test_an_unfinished_batch_at_the_end_is_a_tail(bench: Any) -> None:
    log = closed(bench)
    last = log.segments[-1]
    with last.path.open("ab") as file:
        file.write(bytes(bench.batch())[:70])

    (finding,) = verify_directory(bench.directory)

    assert (finding.path, finding.position, finding.kind) == (last.path, last.size, "tail")


def test_index_and_snapshot_faults_are_found(bench: Any) -> None:
    log = closed(bench)
    second, third = (segment.base_offset for segment in log.segments[1:3])
    bench.path(0, ".index").write_bytes(b"\x00" * 9)
    index = bytearray(bench.path(second, ".index").read_bytes())
    index[7] -= 1
    bench.path(second, ".index").write_bytes(index)
    times = bytearray(bench.path(third, ".timeindex").read_bytes())
    times[-5] += 1
    bench.path(third, ".timeindex").write_bytes(times)
    bench.path(third, ".snapshot").write_bytes(b"short")

    found = [(finding.path.name, finding.kind) for finding in verify_directory(bench.directory)]

    assert found == [
        (bench.path(0, ".index").name, "index"),
        (bench.path(second, ".index").name, "index"),
        (bench.path(third, ".timeindex").name, "index"),
        (bench.path(third, ".snapshot").name, "snapshot"),
    ]


def test_verifying_changes_nothing(bench: Any) -> None:
    closed(bench)
    bench.flip(70)
    before = {path: path.read_bytes() for path in bench.directory.iterdir()}

    verify_directory(bench.directory)

    assert {path: path.read_bytes() for path in bench.directory.iterdir()} == before
