import fcntl
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.file_lock import FileLock, LockedError, is_locked

SLEEP = "print(flush=True); import time; time.sleep(600)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def heir(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A child that was started with a lock, whose maker has let go of it since."""
    with FileLock(path) as lock:
        child = subprocess.Popen([sys.executable, "-c", SLEEP], pass_fds=[lock.fileno()])
    yield child
    child.kill()
    child.wait()


def test_one_holds_a_lock_and_many_share_one(path: Path) -> None:
    with FileLock(path, is_shared=True), FileLock(path, is_shared=True):
        assert not is_locked(path)
        with pytest.raises(LockedError):
            FileLock(path)
    with FileLock(path):
        assert is_locked(path)
        with pytest.raises(LockedError):
            FileLock(path, is_shared=True)


def test_nothing_is_made_to_see_whether_there_is_a_lock(path: Path) -> None:
    assert not is_locked(path)
    assert not path.exists()


def test_who_is_refused_is_told_what_the_owner_wrote(path: Path) -> None:
    with FileLock(path) as lock:
        lock.write("a much longer note")
        lock.write("run r")
        with pytest.raises(LockedError) as refused:
            FileLock(path)

    assert (refused.value.note, refused.value.path) == ("run r", path)
    with FileLock(path) as lock:
        assert lock.former_note == ""


def test_the_note_of_an_owner_that_was_killed_is_there_for_the_next(path: Path) -> None:
    path.write_text("run r")

    with FileLock(path) as lock:
        assert lock.former_note == "run r"


def test_a_lock_that_is_let_go_of_meanwhile_is_had(path: Path) -> None:
    lock = FileLock(path)
    closing = threading.Timer(0.05, lock.close)
    closing.start()

    FileLock(path, timeout_s=120).close()

    closing.join()


def test_a_child_that_inherits_the_lock_holds_it(
    path: Path, heir: "subprocess.Popen[bytes]"
) -> None:
    with pytest.raises(LockedError):
        FileLock(path)

    heir.kill()
    heir.wait()

    FileLock(path).close()


def test_javas_kind_of_lock_is_taken_too(path: Path) -> None:
    # lockf(3) asks for another process: one's own locks of this kind are no hindrance.
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", code, str(path)]

    with FileLock(path, for_java=True):
        assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    with FileLock(path):
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_lock_on_a_file_that_was_removed_keeps_nobody_out(path: Path) -> None:
    with FileLock(path):
        path.unlink()
        with FileLock(path) as new:
            assert os.path.samestat(os.fstat(new.fileno()), path.stat())


def test_a_file_that_is_removed_while_it_is_locked_is_made_and_locked_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def remove_first(descriptor: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", remove_first)

    with FileLock(path) as taken:
        assert os.path.samestat(os.fstat(taken.fileno()), path.stat())


def test_a_child_by_fork_does_not_hold_what_its_parent_let_go_of(path: Path) -> None:
    is_over = multiprocessing.get_context("fork").Event()
    child = multiprocessing.get_context("fork").Process(target=is_over.wait, args=[600])
    lock = FileLock(path)
    child.start()
    try:
        with pytest.raises(LockedError):
            FileLock(path)
        lock.close()
        FileLock(path, timeout_s=60).close()
    finally:
        is_over.set()
        child.join()


def test_closing_twice_closes_no_file_of_others(path: Path) -> None:
    lock = FileLock(path)
    lock.close()
    with path.open() as other:
        lock.close()
        os.fstat(other.fileno())


def test_what_a_child_was_to_inherit_it_has_by_fork_too(path: Path) -> None:
    # With a preexec_fn Python starts a child by fork.
    with FileLock(path) as lock:
        child = subprocess.Popen(
            [sys.executable, "-c", SLEEP], pass_fds=[lock.fileno()], preexec_fn=os.getpid
        )
    try:
        assert is_locked(path)
    finally:
        child.kill()
        child.wait()
