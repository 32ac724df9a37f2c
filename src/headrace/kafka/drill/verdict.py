"""The promises that a drill puts to the test, and whether they were kept."""

from collections.abc import Sequence

from headrace.kafka.drill.election import BEYOND_EXCUSE, FAR_BEYOND
from headrace.kafka.drill.ledger import Balance, LiveReading
from headrace.kafka.drill.report import Check, ScenarioReport


def judge(
    balance: Balance,
    live: LiveReading,
    scenarios: Sequence[ScenarioReport],
    fatal_errors: Sequence[str] = (),
) -> tuple[Check, ...]:
    """One check for each promise. A drill without a single message proves nothing."""
    return (
        _check(
            "acknowledged",
            balance.acknowledged > 0 and balance.waiting == 0 and balance.failed == 0,
            _acknowledged_text(balance),
        ),
        _check(
            "no loss",
            balance.lost == 0,
            f"{balance.lost:,} lost{_where(balance)}",
        ),
        _check("no duplicate", balance.duplicated == 0, f"{balance.duplicated:,} duplicated"),
        _check("order", balance.reordered == 0, f"{balance.reordered:,} reordered"),
        *_unusual(balance, fatal_errors),
        _check("consumers", _is_well_read(live), _live_text(live)),
        *_waits(scenarios),
    )


def _check(name: str, is_kept: bool, text: str) -> Check:
    return Check(name, is_kept, text)


def _acknowledged_text(balance: Balance) -> str:
    text = f"{balance.acknowledged:,} of {balance.sent:,} acknowledged"
    if balance.failed:
        text += f", {balance.failed:,} failed"
    if balance.waiting:
        text += f", {balance.waiting:,} never answered"
    return text


def _where(balance: Balance) -> str:
    if not balance.examples:
        return ""
    first = balance.examples[0]
    return (
        f", such as sequences {first.start} to {first.end - 1} of {first.key} "
        f"in partition {first.partition}"
    )


def _unusual(balance: Balance, fatal_errors: Sequence[str]) -> list[Check]:
    """What is worth a word only when it happened."""
    checks = list[Check]()
    if balance.stray:
        checks.append(_check("no stray", False, f"{balance.stray:,} in a place not theirs"))
    checks += [_check("publishers", False, f"a publisher gave up: {text}") for text in fatal_errors]
    return checks


def _is_well_read(live: LiveReading) -> bool:
    return not (live.missed or live.vanished or live.reordered)


def _live_text(live: LiveReading) -> str:
    text = f"{live.read:,} read live"
    if live.missed:
        text += f", {live.missed:,} missed"
    if live.vanished:
        text += f", {live.vanished:,} gone from the topic afterwards"
    if live.reordered:
        text += f", {live.reordered:,} out of order"
    return text


def _waits(scenarios: Sequence[ScenarioReport]) -> list[Check]:
    """Waiting is no loss: it fails a drill only far beyond its limit, on a machine with time.

    Ten times its limit is too long for any machine.
    """
    late = [each for each in scenarios if not each.is_within_limit]
    if late:
        return [_check("wait", _is_excused(each), _late_text(each)) for each in late]
    if not scenarios:
        return []
    worst = max(scenarios, key=lambda each: each.longest_wait.seconds)
    return [
        _check(
            "wait",
            True,
            f"longest wait {worst.longest_wait.seconds:.1f} s of {worst.limit.seconds:.1f} s "
            f"({worst.title})",
        )
    ]


def _is_excused(each: ScenarioReport) -> bool:
    if each.is_beyond_excuse:
        return False
    return not each.is_far_beyond_limit or bool(each.busyness)


def _late_text(each: ScenarioReport) -> str:
    text = f"{each.title}: a publisher waited {each.longest_wait.seconds:.1f} s, more than "
    text += str(each.limit)
    if each.is_beyond_excuse:
        return f"{text} and more than {BEYOND_EXCUSE:g} times that, which no busy machine excuses"
    if each.busyness:
        return f"{text}, on a busy machine: {each.busyness}"
    if each.is_far_beyond_limit:
        return f"{text} and more than {FAR_BEYOND:g} times that, on a machine that was not busy"
    return f"{text}, but less than {FAR_BEYOND:g} times that"
