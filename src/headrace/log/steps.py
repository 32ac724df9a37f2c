"""Long work on a log, in steps: what touches the log, and in between what only reads files.

A generator of `Steps` runs on the log's thread. What it yields is a job that sees an open file
and values nobody else changes, so whoever drives the steps may run it in another thread. After
every job the log may be another one: the generator looks before it believes the result.
"""

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar, cast

_Result = TypeVar("_Result")

Job: TypeAlias = Callable[[], object]
Steps: TypeAlias = Generator[Job, object, _Result]


def job(call: Callable[[], _Result]) -> Steps[_Result]:
    """What `call` returns, wherever it is run: `result = yield from job(call)`."""
    return cast(_Result, (yield call))


def run_here(steps: Steps[_Result]) -> _Result:
    """Drive the steps to their end and run every job in this thread."""
    try:
        call = next(steps)
        while True:
            try:
                result = call()
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        return cast(_Result, end.value)
