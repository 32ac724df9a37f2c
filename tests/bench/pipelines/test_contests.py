from bench.pipelines.contests import Contest, Contestant, run_contests, total_passes
from bench.pipelines.metering import Pass

ONE_PASS = Pass(1_000, 2.0, 3.0)


def contest(*keys: str, log: list[str], without_jit: tuple[str, ...] = ()) -> Contest:
    def run(key: str) -> Pass:
        log.append(key)
        return ONE_PASS

    contestants = tuple(
        Contestant(key=key, title=key, run=lambda key=key: run(key), has_jit=key not in without_jit)
        for key in keys
    )
    return Contest(key="c", title="c", contestants=contestants)


def test_contestants_take_turns_and_the_order_is_swapped():
    log: list[str] = []

    run_contests([contest("a", "b", log=log)], warm_ups=0, rounds=3, say=lambda *_: None)

    assert log == ["a", "b", "b", "a", "a", "b"]


def test_a_warm_up_is_no_figure_and_only_for_those_who_need_it():
    log: list[str] = []
    one = contest("a", "plain", log=log, without_jit=("plain",))

    results = run_contests([one], warm_ups=2, rounds=1, say=lambda *_: None)

    assert log == ["a", "a", "a", "plain"]
    assert {key: len(passes) for key, passes in results.passes.items()} == {"a": 1, "plain": 1}
    assert total_passes([one], warm_ups=2, rounds=1) == len(log)


def test_every_pass_is_told_at_its_beginning_and_its_end():
    told: list[tuple[str, bool, bool]] = []

    run_contests(
        [contest("a", log=[])],
        warm_ups=1,
        rounds=1,
        say=lambda _, each, measured, is_over: told.append((each.key, is_over, bool(measured))),
    )

    assert told == [("a", False, False), ("a", True, False), ("a", False, False), ("a", True, True)]
