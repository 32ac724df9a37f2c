import subprocess
import sys

import psutil
import pytest

from headrace.process_lookup import Process, process_of


def test_a_process_is_alive_until_it_has_ended_even_if_nobody_clears_it_away() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = process_of(child.pid)
        assert found.is_alive
        assert not found.wait(0)

        child.kill()

        assert found.wait(120)
        assert process_of(child.pid) == Process(child.pid, "")
    assert not found.is_alive


def test_another_process_with_the_same_number_is_not_taken_for_it() -> None:
    this = process_of()

    assert this.is_alive
    assert not this._replace(start="1").is_alive


def test_a_process_stays_the_same_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    this = process_of()
    # To psutil the boot and every process with it are an hour later then.
    boot_time, create_time = psutil.boot_time, psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time() + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: create_time(self) + 3600)

    assert this.is_alive


def test_a_boot_that_moves_while_it_is_looked_at_makes_no_other_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    this = process_of()
    boot_time = psutil.boot_time
    early = iter([1.0])
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time() - next(early, 0.0))

    assert process_of() == this
