from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from tests.coordinators.groups.consumer.model import GROUP, Bench, Client, Topics, durable

from headrace.coordinators.groups.consumer.membership import newcomer, removal
from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.records import CurrentAssignment, GroupRecord, Tombstone


def a_long_life() -> Bench:
    """A group in which members came, shared, left and came back."""
    bench = Bench(Topics(apples=5, pears=2))
    clients = [Client(bench, name, ["apples", "pears"]) for name in "abc"]
    clients[2].instance_id = "one"
    for client in clients:
        for _ in range(4):
            for other in clients[: clients.index(client) + 1]:
                other.heartbeat()
                other.reconcile()
    clients[0].leave()
    clients[2].leave(-2)
    again = Client(bench, "d", ["apples"])
    again.instance_id = "one"
    for _ in range(3):
        for other in (again, clients[1]):
            other.heartbeat()
            other.reconcile()
    bench.heartbeat("b", clients[1].epoch, topic_regex="p.*")
    bench.resolve()
    return bench


def key_of(record: GroupRecord) -> tuple[object, ...]:
    if isinstance(record, Tombstone):
        return record.kind, record.key
    size = 1 if type(record).__name__.endswith(("Metadata", "Epoch")) else 2
    return type(record), tuple(record[:size])


LIFE = a_long_life()


@given(cleaned=st.integers(0, len(LIFE.log)), keeps_tombstones=st.booleans())
def test_a_compacted_log_tells_the_same(cleaned: int, keeps_tombstones: bool) -> None:
    """Compaction leaves the last of each key in the part that it has cleaned."""
    last = {key_of(record): index for index, record in enumerate(LIFE.log[:cleaned])}
    log = [
        record
        for index, record in enumerate(LIFE.log[:cleaned])
        if last[key_of(record)] == index and (keeps_tombstones or not isinstance(record, Tombstone))
    ] + LIFE.log[cleaned:]
    state = GroupState(GROUP)

    for record in log:
        state.apply(record)

    assert vars(state) == durable(LIFE.group)


def test_a_late_tombstone_takes_nothing_from_the_one_that_came_after() -> None:
    """Another has the partition and the instance id when the end of the first is read."""
    state = GroupState(GROUP)
    topic = UUID(int=1)
    for member_id in ("before", "after"):
        state.apply(newcomer(GROUP, member_id)._replace(instance_id="one"))
        state.apply(CurrentAssignment(GROUP, member_id, 2, 1, 0, {topic: (0,)}, {}))
    for record in removal(GROUP, "before"):
        state.apply(record)

    assert state.owners == {(topic, 0): "after"}
    assert state.static_members == {"one": "after"}


def test_a_group_without_records_is_void() -> None:
    assert GroupState(GROUP).is_void


def test_the_tombstones_of_a_group_leave_nothing() -> None:
    bench = a_long_life()

    for record in bench.group.tombstones():
        bench.group.apply(record)

    assert bench.group.is_void
    left = durable(bench.group)
    assert not any(left[part] for part in ("members", "current", "target", "owners", "regexes"))
