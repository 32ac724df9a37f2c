"""Jobs beside the loop: in few threads, and with errors that arrive."""

import asyncio
import threading

import pytest

from headrace.broker.lookups import LOOKUP_THREADS, run_beside
from headrace.log.steps import Steps, job


def test_jobs_run_in_another_thread_and_steps_on_the_loop() -> None:
    seen: list[str] = []

    def steps() -> Steps[str]:
        seen.append(threading.current_thread().name)
        seen.append((yield from job(lambda: threading.current_thread().name)))
        seen.append(threading.current_thread().name)
        return "done"

    assert asyncio.run(run_beside(steps())) == "done"
    here = threading.current_thread().name
    assert seen[0] == seen[2] == here
    assert seen[1].startswith("headrace-lookup")


def test_many_lookups_at_once_share_a_few_threads() -> None:
    lock = threading.Lock()
    running = most = 0
    both_busy = threading.Event()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == LOOKUP_THREADS:
                both_busy.set()
        both_busy.wait(60)
        with lock:
            running -= 1

    def steps() -> Steps[None]:
        yield from job(work)
        yield from job(work)

    async def run() -> None:
        await asyncio.gather(*(run_beside(steps()) for _ in range(40)))

    asyncio.run(run())
    assert most == LOOKUP_THREADS


def test_the_loop_turns_while_a_job_takes_its_time() -> None:
    may_end = threading.Event()

    def steps() -> Steps[bool]:
        return (yield from job(lambda: may_end.wait(60)))

    async def run() -> bool:
        lookup = asyncio.create_task(run_beside(steps()))
        await asyncio.sleep(0)
        may_end.set()
        return await lookup

    assert asyncio.run(run())


def test_an_error_reaches_the_steps_and_who_waits() -> None:
    cleaned_up: list[bool] = []

    def fail() -> None:
        raise OSError("no such disk")

    def steps() -> Steps[None]:
        try:
            yield from job(fail)
        finally:
            cleaned_up.append(True)

    with pytest.raises(OSError, match="no such disk"):
        asyncio.run(run_beside(steps()))
    assert cleaned_up == [True]


def test_who_stops_waiting_ends_the_steps() -> None:
    may_end = threading.Event()
    cleaned_up: list[bool] = []

    def steps() -> Steps[None]:
        try:
            yield from job(lambda: may_end.wait(60))
        finally:
            cleaned_up.append(True)

    async def run() -> None:
        lookup = asyncio.create_task(run_beside(steps()))
        await asyncio.sleep(0)
        lookup.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lookup
        may_end.set()

    asyncio.run(run())
    assert cleaned_up == [True]
