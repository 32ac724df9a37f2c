"""Who is measured beside whom, and the loop that lets them run in turn.

Invariant: a pass whose result was not checked is no figure. Each contestant's `run` checks the
rows it left behind and raises BenchError when they are not the ones on the topic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.pipelines.metering import Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One way to do a job. `run` does it once, checks it, cleans up and returns its cost."""

    key: str
    title: str
    run: Callable[[], Pass]
    # Whether it runs in the JVM, which becomes fast only while it runs.
    has_jit: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Contestants that do the same job with the same rows."""

    key: str
    title: str
    contestants: tuple[Contestant, ...]


@dataclass(frozen=True, slots=True)
class ContestResults:
    """Measured passes by contestant, in the order they were taken."""

    passes: dict[str, list[Pass]] = field(default_factory=dict)

    def add(self, key: str, one: Pass) -> None:
        self.passes.setdefault(key, []).append(one)


def total_passes(contests: Sequence[Contest], *, warm_ups: int, rounds: int) -> int:
    """How many passes `run_contests` will make."""
    return sum(
        rounds + (warm_ups if contestant.has_jit else 0)
        for contest in contests
        for contestant in contest.contestants
    )


Say = Callable[[Contest, Contestant, Pass | None, bool], None]


def run_contests(
    contests: Sequence[Contest], *, warm_ups: int, rounds: int, say: Say
) -> ContestResults:
    """Run every contest: warm up, then rounds in alternating order.

    `say` is called before each pass, and after it (its last argument) with the figures, which
    a warm-up has not.
    """
    results = ContestResults()
    for contest in contests:
        for _ in range(warm_ups):
            for contestant in contest.contestants:
                if contestant.has_jit:
                    say(contest, contestant, None, False)
                    contestant.run()
                    say(contest, contestant, None, True)
        for number_of_round in range(rounds):
            # Whatever drifts over a run must not always hit the same one.
            order = contest.contestants[:: 1 if number_of_round % 2 == 0 else -1]
            for contestant in order:
                say(contest, contestant, None, False)
                measured = contestant.run()
                results.add(contestant.key, measured)
                say(contest, contestant, measured, True)
    return results
