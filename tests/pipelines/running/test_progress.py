from typing import Any

from headrace.pipelines.running.metrics import run_samples
from headrace.pipelines.running.progress import RunProgress
from headrace.pipelines.running.view import figures_line, totals_line


def a_report(
    batch_id: int = 0,
    rows: int = 100,
    start: object = None,
    end: object = None,
    latest: object = None,
    **more: object,
) -> dict[str, Any]:
    source = {"startOffset": start, "endOffset": end, "latestOffset": latest}
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 2000, "addBatch": 1500},
        "sources": [source],
        "stateOperators": [],
        **more,
    }


def test_a_batch_gives_rates_lag_and_totals() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(
        a_report(0, 100, None, {"t": {"0": 60, "1": 40}}, {"t": {"0": 90, "1": 40}}), now=10
    )
    progress.take_in(
        a_report(1, 30, {"t": {"0": 60, "1": 40}}, {"t": {"0": 90, "1": 40}}, {"t": {"0": 90}}),
        now=12,
    )

    assert (progress.batches, progress.rows, progress.batch_rows) == (2, 130, 30)
    assert (progress.rows_per_s, progress.batch_s, progress.lag) == (15.0, 2.0, 0)
    assert progress.offsets == {"t": {"0": 90, "1": 40}}
    assert progress.last_batch_at == 12


def test_lag_is_what_lies_between_the_offset_and_the_end() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(end='{"t": {"0": 60}}', latest='{"t": {"0": 90}}'), now=1)

    assert [(each.partition, each.offset, each.lag) for each in progress.partitions] == [
        (0, 60, 30)
    ]


def test_rows_that_were_read_twice_count_once() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(1, 200, {"t": {"0": 0}}, {"t": {"0": 100}}), now=1)

    assert progress.rows == 100


def test_gaps_between_offsets_are_no_rows() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(1, 7, {"t": {"0": 0}}, {"t": {"0": 100}}), now=1)

    assert progress.rows == 7


def test_what_the_batch_itself_counted_is_believed() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(0, 200, None, {"t": {"0": 100}}), now=1, counted=100)

    assert progress.rows == 100


def test_a_look_that_found_nothing_is_no_batch() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(0, 5, None, {"t": {"0": 5}}, {"t": {"0": 5}}), now=1)
    progress.take_in(a_report(1, 0, {"t": {"0": 5}}, {"t": {"0": 5}}, {"t": {"0": 9}}), now=9)

    assert (progress.batches, progress.last_batch_at, progress.lag) == (1, 1, 4)
    assert progress.last_report == 1


def test_state_is_the_sum_of_all_operators() -> None:
    progress = RunProgress(started_at=0)
    operators = [{"numRowsTotal": 2, "memoryUsedBytes": 10}, {"numRowsTotal": 3}]

    progress.take_in(a_report(stateOperators=operators), now=1)

    assert (progress.state_rows, progress.state_bytes) == (5, 10)


def test_a_source_that_is_no_topic_has_no_partitions() -> None:
    progress = RunProgress(started_at=0)

    progress.take_in(a_report(end=17, latest="abc"), now=1)

    assert (progress.rows, progress.partitions, progress.lag) == (100, [], None)


def test_every_figure_is_a_sample_and_the_important_ones_a_line() -> None:
    progress = RunProgress(started_at=0, dead_letters=3, restarts=1)
    progress.take_in(a_report(4, 100, None, {"t": {"0": 60}}, {"t": {"0": 90}}), now=1)

    samples = {each.name: each for each in run_samples("r", "running", progress)}

    assert samples["headrace_pipeline_rows_total"].value == 100
    assert samples["headrace_pipeline_rows_total"].kind == "counter"
    assert samples["headrace_pipeline_up"].value == 1
    assert samples["headrace_pipeline_lag"].labels == {
        "pipeline": "r",
        "topic": "t",
        "partition": "0",
    }
    assert figures_line(progress) == (
        "100 rows · 50 rows/s · batch 4 in 2.0 s · lag 30 · 3 dead letters · 1 restarts"
    )
    assert totals_line(progress).startswith("100 rows in 1 batch, 3 dead letters, ")
