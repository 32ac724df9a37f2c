from tests.coordinators.groups.consumer.model import Bench, Topics

from headrace.coordinators.groups.consumer.deadlines import MemberDeadlines
from headrace.coordinators.groups.limits import ConsumerLimits


def test_a_silent_member_is_fenced_after_its_session() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    bench.join("b", "apples")
    bench.now_ms += 40_000
    bench.heartbeat("b", 3)
    bench.now_ms += 5_000

    assert bench.tick().records
    assert {member.member_id for member in bench.group.describe().members} == {"b"}


def test_nothing_happens_before_the_first_deadline() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    assert bench.group.next_deadline_ms == bench.now_ms + 45_000
    bench.now_ms += 44_999

    assert not bench.tick().records


def test_one_that_does_not_give_up_partitions_in_time_is_fenced() -> None:
    bench = Bench(Topics(apples=2), ConsumerLimits(assignment_interval_ms=0))
    bench.join("a", "apples")
    bench.join("b", "apples")
    bench.heartbeat("a", 2)  # is asked to give up a partition, within 60 s
    for _ in range(2):
        bench.now_ms += 30_000
        assert bench.group.epoch == 3
        bench.heartbeat("a", 2)
        bench.heartbeat("b", 3)
        bench.tick()

    assert {member.member_id for member in bench.group.describe().members} == {"b"}


def test_one_that_does_is_not() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    bench.join("b", "apples")
    kept = bench.heartbeat("a", 2).assignment
    bench.heartbeat("a", 2, owned=kept)
    for _ in range(3):
        bench.now_ms += 30_000
        bench.heartbeat("a", 3)
        bench.heartbeat("b", 3)
        bench.tick()

    assert len(bench.group.describe().members) == 2


def test_members_have_a_whole_session_after_a_restart() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    bench.now_ms += 40_000
    bench.group = bench.replayed()
    bench.now_ms += 44_000
    bench.tick()

    assert not bench.group.is_empty


def test_a_fencing_that_was_not_written_is_tried_again() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    bench.now_ms += 45_000
    bench.writes_fail = True
    bench.tick()
    bench.writes_fail = False
    due_ms = bench.group.next_deadline_ms
    assert due_ms is not None
    bench.now_ms = due_ms
    bench.tick()

    assert bench.group.is_empty
    assert bench.group.next_deadline_ms is not None


def test_those_whose_join_was_never_written_are_forgotten() -> None:
    deadlines = MemberDeadlines()
    deadlines.session("stranger", 10)
    deadlines.session("member", 20)

    assert deadlines.overdue(15, {"member"}, {}) == []
    assert deadlines.next_ms == 20


def test_a_revocation_counts_only_in_its_epoch() -> None:
    deadlines = MemberDeadlines()
    deadlines.rebalance("member", 10, member_epoch=1)

    assert deadlines.overdue(10, {"member"}, {"member": 2}) == []


def test_a_shorter_session_is_never_noticed_late() -> None:
    deadlines = MemberDeadlines()
    deadlines.session("member", 100)
    deadlines.session("member", 50)

    assert deadlines.is_due(50)
    assert deadlines.overdue(50, {"member"}, {}) == ["member"]


def test_a_revocation_that_was_never_written_fences_nobody() -> None:
    bench = Bench(Topics(apples=2))
    bench.join("a", "apples")
    bench.join("b", "apples")
    bench.writes_fail = True
    bench.heartbeat("a", 2)  # would have to give up a partition
    bench.writes_fail = False
    bench.heartbeat("b", -1)
    for _ in range(3):
        bench.now_ms += 30_000
        bench.heartbeat("a", bench.group._state.current["a"].member_epoch)
        bench.tick()

    assert not bench.group.is_empty
