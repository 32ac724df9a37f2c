"""A cluster as a block: what happens at its ends; nothing is started here."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import Cluster


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of any cluster, whose nodes never start."""
    done = list[str]()

    def noting(name: str, act: Callable[[Cluster], None]) -> Callable[[Cluster], None]:
        def noted(cluster: Cluster) -> None:
            done.append(name)
            act(cluster)

        return noted

    monkeypatch.setattr(Cluster, "up", noting("up", lambda _cluster: None))
    monkeypatch.setattr(Cluster, "down", noting("down", lambda _cluster: None))
    monkeypatch.setattr(Cluster, "destroy", noting("destroy", Cluster.destroy))
    return done


def test_a_cluster_in_a_directory_of_the_callers_is_down_afterwards(
    acts: list[str], tmp_path: Path
) -> None:
    cluster = Cluster.create(tmp_path / "mine", brokers=2)
    with cluster as bus:
        assert bus.bootstrap == cluster.bootstrap
    with Cluster.open(str(tmp_path / "mine")):
        pass

    assert acts == ["up", "down"] * 2
    assert cluster.is_there


def test_any_other_is_destroyed_also_when_it_does_not_start(
    acts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster.create(brokers=1)
    with cluster:
        assert cluster.directory.is_dir()
    assert acts == ["up", "destroy"]
    assert not cluster.directory.exists()

    def fail(_cluster: Cluster) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Cluster, "up", fail)
    broken = Cluster.create(brokers=1)
    with pytest.raises(ZeroDivisionError), broken:
        pass
    assert not broken.directory.exists()


def test_one_that_was_destroyed_inside_its_block_is_gone(acts: list[str]) -> None:
    cluster = Cluster.create(brokers=1)
    with cluster:
        cluster.destroy()
    assert acts == ["up", "destroy"]


def test_it_goes_up_and_down_beside_an_event_loop(acts: list[str]) -> None:
    async def main() -> None:
        async with Cluster.create(brokers=1) as bus:
            assert len(bus.addresses) == 1

    asyncio.run(main())
    assert acts == ["up", "destroy"]
