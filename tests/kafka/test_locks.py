import os

from headrace.kafka import locks


def test_one_holds_a_lock_and_many_share_one(tmp_path):
    path = tmp_path / "lock"
    first, second = locks.take(path, locks.SHARED), locks.take(path, locks.SHARED)
    assert first is not None
    assert second is not None
    assert locks.take(path) is None

    os.close(first)
    os.close(second)

    alone = locks.take(path)
    assert alone is not None
    assert locks.take(path, locks.SHARED) is None
    os.close(alone)


def test_a_lock_on_a_file_that_was_removed_keeps_nobody_out(tmp_path):
    path = tmp_path / "lock"
    old = locks.take(path)
    assert old is not None
    path.unlink()

    new = locks.take(path)

    assert new is not None
    assert os.path.samestat(os.fstat(new), path.stat())
    os.close(old)
    os.close(new)


def test_a_file_that_is_removed_while_it_is_locked_is_made_and_locked_again(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    is_granted = locks.is_granted

    def remove_first(lock, kind):
        monkeypatch.setattr(locks, "is_granted", is_granted)
        path.unlink()
        return is_granted(lock, kind)

    monkeypatch.setattr(locks, "is_granted", remove_first)

    taken = locks.take(path)

    assert taken is not None
    assert os.path.samestat(os.fstat(taken), path.stat())
    os.close(taken)
