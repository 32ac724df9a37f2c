import asyncio
import threading

import pytest

from headrace.broker.metadata_changes import MetadataChanges


def test_changes_are_made_one_after_another() -> None:
    steps: list[str] = []

    async def scenario() -> None:
        changes = MetadataChanges()

        async def change(name: str) -> None:
            steps.append(f"{name} checks")
            await changes.write(lambda: None)
            steps.append(f"{name} applies")

        await asyncio.gather(*(changes.make(lambda n=n: change(n)) for n in "abc"))  # type: ignore[misc]

    asyncio.run(scenario())

    assert steps == [f"{name} {what}" for name in "abc" for what in ("checks", "applies")]


def test_what_waits_for_the_disk_runs_in_a_thread_of_its_own() -> None:
    async def scenario() -> int:
        changes = MetadataChanges()
        return await changes.make(lambda: changes.write(threading.get_ident))

    assert asyncio.run(scenario()) != threading.get_ident()


def test_a_change_is_carried_through_when_who_asked_for_it_is_gone() -> None:
    may_write = threading.Event()
    done: list[str] = []

    async def scenario() -> None:
        changes = MetadataChanges()

        async def change() -> None:
            await changes.write(may_write.wait)
            done.append("applied")

        asking = asyncio.create_task(changes.make(change))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert done == []
        may_write.set()
        await changes.drain()

    asyncio.run(scenario())

    assert done == ["applied"]


def test_a_change_that_fails_is_told_and_holds_nobody_up() -> None:
    async def scenario() -> str:
        changes = MetadataChanges()

        async def fails() -> None:
            raise ValueError("no")

        async def works() -> str:
            return "done"

        with pytest.raises(ValueError, match="no"):
            await changes.make(fails)
        return await changes.make(works)

    assert asyncio.run(scenario()) == "done"


def test_a_drain_waits_for_those_in_line_too() -> None:
    done: list[int] = []

    async def scenario() -> None:
        changes = MetadataChanges()

        async def change(number: int) -> None:
            await changes.write(lambda: None)
            done.append(number)

        asking = [
            asyncio.create_task(changes.make(lambda n=n: change(n)))  # type: ignore[misc]
            for n in range(3)
        ]
        await asyncio.sleep(0)
        await changes.drain()
        assert done == [0, 1, 2]
        await asyncio.gather(*asking)

    asyncio.run(scenario())
