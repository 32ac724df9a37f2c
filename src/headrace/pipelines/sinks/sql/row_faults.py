"""A batch that a database refuses as a whole: written part by part, but for the rows at fault.

Only the database knows which these are: whether a key fits a PostgreSQL index depends on how well
it compresses, and a table may have checks, foreign keys and triggers. A row is not judged by itself
alone, for it may need another of the batch, as a child its parent: what is taken stays in while the
rest is tried, and a row is at fault only if the database still refuses it beside all the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.pipelines.definition import RECORD_COLUMN
from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RefusedRow, RowsRefusedError
from headrace.pipelines.sinks.sql.rows import Changes

# Where more rows of one batch are refused, it is the table that does not fit. Each costs some
# twenty statements.
MAX_REFUSED_ROWS = 1000
# Twenty tries find one row in a million; as many again are for rows that wait for others. Rows that
# take more, such as a long chain of which each needs the next, would hold the table for hours.
MAX_TRIES = 40 * MAX_REFUSED_ROWS
# So many rows are refused in the first round before what is left waits for the next, in which more
# are there: a thousand children before their parent are not tried one by one. Doubled each round.
FIRST_ROUND_ROWS = 8

# Write these beside what was taken before, or undo them and give the reason.
Attempt = Callable[[Changes], str | None]


def write_in_parts(table: str, changes: Changes, attempt: Attempt, sentence: str) -> None:
    """Have `attempt` take all of `changes`, in the order of the log.

    Raises RowsRefusedError with the rows that it does not take beside the others; SinkError if
    there is no telling. `sentence` is what the database said of all of them together.
    """
    refused = []
    for row, reason in _Parts(table, attempt, sentence).write(changes.in_log_order()):
        place = row.place()
        if place is None:
            raise SinkError(
                f"{sentence}, for the key {row.key()[:40]}; filter such rows in the transform, or "
                f"keep {RECORD_COLUMN} there, by which they go to the dead letters"
            )
        refused.append(RefusedRow(*place, reason))
    if refused:
        raise RowsRefusedError(f"table {table}", refused)


@dataclass
class _Parts:
    table: str
    attempt: Attempt
    sentence: str
    tries: int = field(default=0, init=False)

    def write(self, changes: Changes) -> list[tuple[Changes, str]]:
        """The rows at fault, each by itself; all others are taken."""
        left: list[tuple[Changes, str]] = [(changes, "")]
        budget = FIRST_ROUND_ROWS
        while left:
            before = {id(part) for part, _ in left if len(part) == 1}
            left, has_taken = self._round([part for part, _ in left], budget)
            # Refused in two rounds: what they might have waited for had its turn in between.
            self._check_count(sum(id(part) in before for part, _ in left))
            if not has_taken and all(len(part) == 1 for part, _ in left):
                self._check_count(len(left))
                return left
            budget *= 2
        return []

    def _round(self, parts: list[Changes], budget: int) -> tuple[list[tuple[Changes, str]], bool]:
        """Try all parts, in order; those that are refused, and whether anything was taken."""
        refused = list[tuple[Changes, str]]()
        has_taken = False
        stack = parts[::-1]
        while stack:
            part = stack.pop()
            reason = self._try(part) if len(part) else None
            if reason is None:
                has_taken = has_taken or len(part) > 0
            elif len(part) == 1 or budget <= 0:
                refused.append((part, reason))
                budget -= 1
            else:
                middle = len(part) // 2
                stack += [part.part(middle, len(part)), part.part(0, middle)]
        return refused, has_taken

    def _try(self, part: Changes) -> str | None:
        self.tries += 1
        if self.tries > MAX_TRIES:
            raise SinkError(
                f"{self.sentence}; which rows of the batch are at fault was not found in "
                f"{MAX_TRIES} tries, for they need each other: change table {self.table} so that "
                "it takes them in any order, or filter them in the transform"
            )
        return self.attempt(part)

    def _check_count(self, count: int) -> None:
        if count > MAX_REFUSED_ROWS:
            raise SinkError(
                f"{self.sentence}; so are more than {MAX_REFUSED_ROWS} rows of one batch: change "
                f"table {self.table} so that it takes them, or filter them in the transform"
            )
