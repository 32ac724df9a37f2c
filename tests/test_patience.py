import threading
import time

import pytest

from headrace.patience import Patience, StoppedError


def test_what_comes_in_time_is_returned_at_once() -> None:
    answers = iter([None, 0, "", "there"])

    assert Patience(None, first_pause_s=0.001).until(lambda: next(answers)) == "there"


def test_time_that_is_over_ends_the_wait_after_a_last_look() -> None:
    looks = list[float]()

    assert Patience(0.05).until(lambda: looks.append(time.monotonic())) is None
    assert looks[-1] - looks[0] >= 0.05
    assert not Patience(0).pause()
    assert Patience(0).until(lambda: "there") == "there"


def test_each_pause_is_longer_up_to_a_limit() -> None:
    patience = Patience(None, first_pause_s=0.01, longest_pause_s=0.04)
    pauses = list[float]()
    for _ in range(4):
        began = time.monotonic()
        assert patience.pause()
        pauses.append(time.monotonic() - began)

    for pause, least in zip(pauses, (0.01, 0.02, 0.04, 0.04), strict=True):
        assert pause >= least


def test_a_stop_interrupts_a_pause_of_hours() -> None:
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()

    with pytest.raises(StoppedError):
        Patience(None, is_stopped=stop.is_set, first_pause_s=3600, longest_pause_s=3600).pause()


def test_what_is_looked_after_meanwhile_may_end_the_wait() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError):
        Patience(None, meanwhile=fail).pause()


def test_what_is_left_is_never_negative() -> None:
    assert Patience(0).left_s == 0
    assert Patience(0).is_over
    assert Patience(None).left_s == float("inf")
