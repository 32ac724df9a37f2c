"""Which rows of a batch a database refuses: found by halves, each tried and undone.

Only the database knows: whether a key fits a PostgreSQL index depends on how well it compresses,
and a table may have checks, foreign keys and triggers.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from headrace.errors import SinkError
from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.refusal import RefusedRow, RowsRefusedError
from headrace.pipelines.sinks.sql.rows import Changes

# Where more rows of one batch are refused, it is the table that does not fit. Each costs some
# twenty statements.
MAX_REFUSED_ROWS = 1000

# Try to write these and undo it; the reason if the database refuses.
Attempt = Callable[[Changes], str | None]


def refuse_rows(table: str, changes: Changes, attempt: Attempt, sentence: str) -> NoReturn:
    """Raise RowsRefusedError with the rows that `attempt` fails for; SinkError if it cannot be.

    `sentence` is what the database said of all of them together.
    """
    faults = _find(changes, attempt)
    if not faults:
        raise SinkError(sentence)  # together they break a rule, and none of them alone
    if len(faults) > MAX_REFUSED_ROWS:
        raise SinkError(
            f"{sentence}; so are more than {MAX_REFUSED_ROWS} rows of one batch: change table "
            f"{table} so that it takes them, or filter them in the transform"
        )
    refused = []
    for row, reason in faults:
        place = row.place()
        if place is None:
            raise SinkError(
                f"{sentence}, for the key {row.key()[:40]}; filter such rows in the transform, or "
                f"keep {RECORD_COLUMN} there, by which they go to the dead letters"
            )
        refused.append(RefusedRow(*place, reason))
    raise RowsRefusedError(f"table {table}", refused)


def _find(changes: Changes, attempt: Attempt) -> Sequence[tuple[Changes, str]]:
    faults = list[tuple[Changes, str]]()
    left = [changes]
    while left and len(faults) <= MAX_REFUSED_ROWS:
        some = left.pop()
        reason = attempt(some) if len(some) else None
        if reason is None:
            continue
        if len(some) == 1:
            faults.append((some, reason))
        else:
            middle = len(some) // 2
            left += [some.part(middle, len(some)), some.part(0, middle)]
    return faults
