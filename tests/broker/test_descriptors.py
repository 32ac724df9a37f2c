import resource

import pytest

from headrace.broker.descriptors import RESERVED, SocketQuota


def test_what_logs_and_the_broker_itself_need_is_not_given_to_sockets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    quota = SocketQuota(log_files=512)

    taken = [quota.take() for _ in range(1024)]

    assert taken.count(True) == 1024 - 512 - RESERVED
    quota.give_back()
    assert quota.take()
    assert not quota.take()


def test_without_a_limit_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )

    assert SocketQuota(log_files=4096).limit > 10**6


def test_the_smallest_limit_still_lets_somebody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))

    assert SocketQuota(log_files=32).take()
