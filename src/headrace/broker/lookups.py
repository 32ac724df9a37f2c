"""Long questions to logs, answered beside the loop: their jobs run in a few threads of their own.

Logs belong to the loop's thread, and so do the steps between two jobs; a thread sees open files
and values. What a job needs most (checksums, decompression, the search in records) is native and
lets go of the interpreter's lock.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from headrace.log.steps import Job, Steps

# All brokers of the process together. Each thread holds one batch, 100 MiB at most as it was sent
# and 128 MiB decompressed (records/codecs.py): two keep a bad day below half a gigabyte, and one
# slow disk or one large segment does not yet keep everybody else's questions waiting. Jobs are
# short and served in turn, so more threads would not be fairer, only hungrier.
LOOKUP_THREADS = 2

_Result = TypeVar("_Result")
_pool = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="headrace-lookup")


async def run_beside(steps: Steps[_Result]) -> _Result:
    """Drive the steps on this loop to their end, and run each job in a thread."""
    loop = asyncio.get_running_loop()
    try:
        job: Job = next(steps)
        while True:
            try:
                result = await loop.run_in_executor(_pool, job)
            except Exception as error:
                job = steps.throw(error)
            else:
                job = steps.send(result)
    except StopIteration as end:
        return cast(_Result, end.value)
    finally:
        steps.close()
