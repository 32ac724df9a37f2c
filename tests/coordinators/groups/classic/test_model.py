"""The group among clients that follow the protocol, crash, come back, leave or just wait.

The model knows nothing of how the group works. It knows what each client was told and when it was
last heard of, and from that what may not be.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.coordinators.groups.classic.driver import RANGE, READS_T, Driver

from headrace.coordinators.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    GroupError,
    GroupFullError,
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.messages import JoinReply, SyncReply

FIRST_JOIN_MS = 5 * 60_000
SILENCE_MS = 60 * 60_000
LONGEST_SESSION_MS = 30_000
BOTH = (*RANGE, ("sticky", READS_T))
INSTANCES = ("blue", "green")
RETRY = RebalanceInProgressError | CoordinatorNotAvailableError | MemberIdRequiredError
rarely = st.sampled_from([False] * 7 + [True])
numbers = st.integers(0, 5)


@dataclass(eq=False)
class Client:
    """A consumer: it does what the answer to its last request tells it to do."""

    instance: str | None
    version: int
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    member_id: str = ""
    generation: int = -1
    protocol_name: str | None = None
    must_assign_to: list[str] = field(default_factory=list)
    next_step: str = "join"
    waits_since_ms: int = 0


class GroupMachine(RuleBasedStateMachine):
    """Clients, and what may be concluded from what they were told."""

    @initialize(delay_ms=st.sampled_from([0, 0, 3_000]))
    def create(self, delay_ms: int) -> None:
        self.driver = Driver(initial_rebalance_delay_ms=delay_ms, max_size=4)
        self.group = self.driver.group
        self.clients: list[Client] = []
        self.waiting: dict[object, Client] = {}  # by ticket; the client may be gone meanwhile
        self.session_ends_ms: dict[str, int] = {}  # by member id
        self.generation = 0
        self.protocols: dict[int, str | None] = {}
        self.leaders: dict[int, str] = {}
        self.told_to_leader: dict[int, set[str]] = {}
        self.is_disk_behind = False

    @precondition(lambda self: len(self.clients) < 6)
    @rule(
        instance=st.sampled_from([None, None, *INSTANCES]),
        version=st.sampled_from([3, 5, 8, 9]),
        session_ms=st.sampled_from([6_000, 10_000, LONGEST_SESSION_MS]),
        rebalance_ms=st.sampled_from([0, 5_000, 60_000, 700_000]),
        protocols=st.sampled_from([RANGE, BOTH, BOTH[::-1]]),
    )
    def start(
        self,
        instance: str | None,
        version: int,
        session_ms: int,
        rebalance_ms: int,
        protocols: tuple[tuple[str, bytes], ...],
    ) -> None:
        self.clients.append(Client(instance, version, session_ms, rebalance_ms, protocols))

    @precondition(lambda self: self.clients)
    @rule(number=numbers, write_fails=rarely)
    def act(self, number: int, write_fails: bool) -> None:
        """One client does its next step, unless it waits for an answer."""
        client = self.clients[number % len(self.clients)]
        if client in self.waiting.values():
            return
        {"join": self.join, "sync": self.sync, "heartbeat": self.heartbeat}[client.next_step](
            client
        )
        self.hear(write_fails)

    @rule(rounds=st.integers(1, 6), ms=st.sampled_from([0, 1_000, 3_000]), sleeper=numbers)
    def everyone_works(self, rounds: int, ms: int, sleeper: int) -> None:
        """All clients do what they should for a while, but perhaps for one of them."""
        for _ in range(rounds):
            for number in range(len(self.clients)):
                if number != sleeper:
                    self.act(number, False)
            self.time_passes(ms)

    @precondition(lambda self: len(self.clients) > 1)
    @rule(number=numbers)
    def crash(self, number: int) -> None:
        """Gone without a word. Another with the same instance may start later."""
        self.clients.pop(number % len(self.clients))

    @precondition(lambda self: len(self.clients) > 1)
    @rule(number=numbers, write_fails=rarely)
    def leave(self, number: int, write_fails: bool) -> None:
        client = self.clients.pop(number % len(self.clients))
        if client.member_id:
            self.driver.leave(client.member_id, instance=client.instance)
            assert client.member_id not in self.group.members
            self.hear(write_fails)

    @rule(ms=st.sampled_from([1, 500, 2_999, 4_000, 6_000, 10_000, 60_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.pass_time(ms)
        self.hear(False)
        self.nobody_outlives_its_session()

    def teardown(self) -> None:
        """After a while nobody is left in the group, and no request without its answer."""
        if not hasattr(self, "clients"):
            return
        self.clients.clear()
        for _ in range(SILENCE_MS // 10_000):
            self.time_passes(10_000)
        assert not self.waiting
        assert self.group.is_vacant
        assert self.group.next_deadline_ms is None

    def join(self, client: Client) -> None:
        ticket = self.driver.join(
            client.member_id,
            instance=client.instance,
            version=client.version,
            protocols=client.protocols,
            session_ms=client.session_ms,
            rebalance_ms=client.rebalance_ms,
        )
        self.wait(client, ticket)

    def sync(self, client: Client) -> None:
        assignments = {m: f"{client.generation} {m}".encode() for m in client.must_assign_to}
        ticket = self.driver.sync(
            client.member_id,
            assignments,
            instance=client.instance,
            generation=client.generation,
            protocol_name=client.protocol_name,
        )
        self.wait(client, ticket)

    def heartbeat(self, client: Client) -> None:
        try:
            self.driver.heartbeat(
                client.member_id, instance=client.instance, generation=client.generation
            )
        except RebalanceInProgressError as error:
            self.renew(client)
            self.obey(client, error)
        except GroupError as error:
            self.obey(client, error)
        else:
            self.renew(client)

    def wait(self, client: Client, ticket: str) -> None:
        self.waiting[ticket] = client
        client.waits_since_ms = self.driver.now_ms

    def renew(self, client: Client) -> None:
        self.session_ends_ms[client.member_id] = self.driver.now_ms + client.session_ms

    def hear(self, write_fails: bool) -> None:
        """Hand out the answers. Those that came with a write that failed are not given."""
        outcomes, self.driver.outcomes = self.driver.outcomes, []
        has_failed = False
        for outcome in outcomes:
            if outcome.records:
                self.is_disk_behind = has_failed = write_fails
            for ticket, reply in outcome.answers:
                client = self.waiting.pop(ticket)  # fails if it was answered before
                if isinstance(reply, JoinReply) and reply.error is None:
                    self.check_generation(reply)
                error = CoordinatorNotAvailableError() if has_failed else reply.error
                if error is not None:
                    self.turn_back(client, reply, error)
                elif isinstance(reply, JoinReply):
                    self.enter(client, reply)
                else:
                    self.take_assignment(client, reply)
        if has_failed:
            self.driver.take(self.group.write_failed(self.driver.now_ms))
            for member in self.group.members.values():
                self.session_ends_ms[member.member_id] = self.driver.now_ms + LONGEST_SESSION_MS
            self.hear(False)

    def enter(self, client: Client, reply: JoinReply) -> None:
        client.member_id, client.generation = reply.member_id, reply.generation_id
        client.protocol_name = reply.protocol_name
        told = [] if reply.skip_assignment else reply.members
        client.must_assign_to = [member.member_id for member in told]
        client.next_step = "sync"
        self.renew(client)

    def take_assignment(self, client: Client, reply: SyncReply) -> None:
        generation, _, member_id = reply.assignment.decode().partition(" ")
        assert int(generation) == client.generation, "an assignment of another generation"
        assert who(member_id) == who(client.member_id), "an assignment of someone else"
        client.next_step = "heartbeat"
        self.renew(client)

    def turn_back(self, client: Client, reply: JoinReply | SyncReply, error: GroupError) -> None:
        if isinstance(error, MemberIdRequiredError):
            assert isinstance(reply, JoinReply)
            client.member_id = reply.member_id
        elif isinstance(reply, SyncReply):
            self.renew(client)
        self.obey(client, error)

    def obey(self, client: Client, error: GroupError) -> None:
        client.next_step = "join"
        if isinstance(error, UnknownMemberError):
            client.member_id = ""
        elif isinstance(error, FencedInstanceError | GroupFullError):
            self.clients = [other for other in self.clients if other is not client]
        else:
            assert isinstance(error, RETRY | IllegalGenerationError), error

    def check_generation(self, reply: JoinReply) -> None:
        generation = reply.generation_id
        assert generation >= self.generation, "a generation came back"
        self.generation = generation
        assert self.protocols.setdefault(generation, reply.protocol_name) == reply.protocol_name
        leader = who(reply.leader)
        assert self.leaders.setdefault(generation, leader) == leader, "two leaders"
        if reply.members:
            assert reply.leader == reply.member_id, "a follower was told of all members"
            told = {member.member_id for member in reply.members}
            self.told_to_leader[generation] = {who(member_id) for member_id in told}
            # Static members that did not come are part of it: their session begins anew, too.
            for member_id in told:
                end_ms = self.driver.now_ms + LONGEST_SESSION_MS
                self.session_ends_ms[member_id] = end_ms
        if generation in self.told_to_leader:
            assert who(reply.member_id) in self.told_to_leader[generation], "unknown to the leader"

    @precondition(lambda self: hasattr(self, "group"))
    @invariant()
    def nobody_outlives_its_session(self) -> None:
        now_ms = self.driver.now_ms
        waiting = {client.member_id for client in self.waiting.values()}
        unknown = [m for m in self.group.members if m not in self.session_ends_ms]
        assert len(unknown) <= len(self.waiting), "a member that nobody is"
        for member_id in self.group.members:
            if member_id not in waiting and member_id not in unknown:
                assert self.session_ends_ms[member_id] > now_ms
        for client in self.waiting.values():
            if not client.instance and client.generation == -1:
                assert now_ms < client.waits_since_ms + FIRST_JOIN_MS

    @precondition(lambda self: hasattr(self, "group"))
    @invariant()
    def requests_wait_only_where_something_will_come(self) -> None:
        for ticket in self.waiting:
            is_join = str(ticket).startswith("join")
            awaited = "PreparingRebalance" if is_join else "CompletingRebalance"
            assert self.group.state == awaited
        if self.group.members or self.waiting:
            assert self.group.leader in self.group.members
            assert self.group.next_deadline_ms is not None

    @precondition(lambda self: hasattr(self, "group") and self.driver.records)
    @invariant()
    def the_group_would_come_back_from_disk(self) -> None:
        if self.is_disk_behind or self.group.state not in ("Stable", "Empty"):
            return
        again = self.driver.restored(self.driver.last_record())
        assert (again.state, again.generation_id) == (self.group.state, self.group.generation_id)
        assert again.leader == self.group.leader
        assert sorted(again.describe().members) == sorted(self.group.describe().members)
        assert again.subscribed_topics() == self.group.subscribed_topics()


def who(member_id: str) -> str:
    """Static members change their id and stay who they are."""
    name = member_id.rpartition("-")[0]
    return name if name in INSTANCES else member_id


def test_the_group_keeps_its_promises_whatever_its_clients_do() -> None:
    run_state_machine_as_test(
        GroupMachine, settings=settings(max_examples=100, stateful_step_count=50, deadline=None)
    )
