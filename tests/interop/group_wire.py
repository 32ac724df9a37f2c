"""Members of groups that send exactly what they are told, each over a connection of its own."""

import dataclasses
import json
import struct
import time
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from kio.index import load_request_schema
from tests.interop.wire import WireClient, entity_in, request

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 8, 9, 10, 11, 12
LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS = 13, 14, 15, 16, 42
OFFSET_DELETE, CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 47, 68, 69

NONE, OFFSET_METADATA_TOO_LARGE, COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE = 0, 12, 14, 15
NOT_COORDINATOR, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP_ID = 16, 22, 23, 24
UNKNOWN_MEMBER, INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS, INVALID_REQUEST = 25, 26, 27, 42
NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE = 68, 69, 79, 81
FENCED_INSTANCE, GROUP_SUBSCRIBED, FENCED_EPOCH, UNRELEASED_INSTANCE = 82, 86, 110, 111
UNSUPPORTED_ASSIGNOR, STALE_EPOCH, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID = 112, 113, 3, 100

SESSION_MS = 60_000  # long enough for a slow machine: it never runs out in a test
# A session that a test lets run out: too long to do so by itself between two requests.
SHORT_SESSION_MS = 4_000
_DEADLINE_S = 120  # ends what hangs
_CAPTURES = Path(__file__).parents[1] / "data" / "kafka-4.3.1"


def versions_of(api_key: int, first: int = 0) -> list[int]:
    """The versions that Kafka 4.3.1 advertises of an API, from `first` on."""
    rows = json.loads((_CAPTURES / "api_versions.json").read_text())["api_keys"]
    row = next(row for row in rows if row["key"] == api_key)
    return list(range(max(first, row["min"]), row["max"] + 1))


def asked(api_key: int, version: int, **fields: Any) -> Any:
    """Build a request and leave out the fields that this version does not have."""
    return request(api_key, version, **_known(load_request_schema(api_key, version), fields))


def ask(wire: WireClient, api_key: int, version: int, **fields: Any) -> Any:
    """Send what `asked` builds and return the answer."""
    wire.send(asked(api_key, version, **fields))
    return wire.receive()


def _known(schema: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(schema)
    return {
        field.name: _known_in(hints[field.name], fields[field.name])
        for field in dataclasses.fields(schema)
        if field.name in fields
    }


def _known_in(hint: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _known(entity_in(hint), value)
    if isinstance(value, list):
        return [_known_in(hint, item) for item in value]
    return value


def wait_for(claim: Callable[[], bool]) -> None:
    """Ask until it is true; the test fails when it does not become so."""
    deadline = time.monotonic() + _DEADLINE_S
    while not claim():
        assert time.monotonic() < deadline, "it did not come about in time"


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """What a classic consumer says of itself: v0 of Kafka's ConsumerProtocolSubscription."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    tail = struct.pack(">i", len(user_data)) + user_data
    return struct.pack(">hi", 0, len(topics)) + names + tail


# Not any bytes will do: 4.3.1 never ends the join of a "consumer" whose wishes it cannot read.
WISHES = subscription("wished")


class Member:
    """A member of a classic group. It remembers its id and generation, and tells them."""

    def __init__(
        self, bootstrap: str, group_id: str, *, instance_id: str | None = None, **defaults: Any
    ) -> None:
        self.wire = WireClient(bootstrap)
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self._protocol: str | None = None
        self._defaults = {
            "session_timeout": SESSION_MS,
            "rebalance_timeout": SESSION_MS,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": WISHES}],
            **defaults,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.__exit__()

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "generation_id": self.generation_id,
            "generation_id_or_member_epoch": self.generation_id,
        }

    def send(self, api_key: int, version: int, **fields: Any) -> None:
        """Send a request in this member's name without waiting; `receive` waits."""
        self.wire.send(asked(api_key, version, **{**self._identity, **fields}))

    def receive(self) -> Any:
        """Return the oldest answer outstanding."""
        return self.wire.receive()

    def send_join(self, *, version: int = 9, **fields: Any) -> None:
        """Ask to be in the next generation."""
        self.send(JOIN_GROUP, version, **{**self._defaults, **fields})

    def joined(self) -> Any:
        """Return the answer to `send_join` and remember who we are."""
        answer = self.receive()
        if answer.error_code in (NONE, MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
            self.generation_id = answer.generation_id
            self._protocol = answer.protocol_name
        return answer

    def join(self, *, version: int = 9, **fields: Any) -> Any:
        """Ask once to be in the next generation, and wait for it."""
        self.send_join(version=version, **fields)
        return self.joined()

    def enter(self, *, version: int = 9, **fields: Any) -> Any:
        """Join as a client does: a second time with the id the first one brought (KIP-394)."""
        answer = self.join(version=version, **fields)
        if answer.error_code == MEMBER_ID_REQUIRED:
            answer = self.join(version=version, **fields)
        assert answer.error_code == NONE
        return answer

    def send_sync(
        self, shares: Mapping[str, bytes] | None = None, *, version: int = 5, **fields: Any
    ) -> None:
        """Ask for our share; the leader brings those of all, by member id."""
        given = [
            {"member_id": member_id, "assignment": share}
            for member_id, share in (shares or {}).items()
        ]
        chosen = {"protocol_type": self._defaults["protocol_type"], "protocol_name": self._protocol}
        self.send(SYNC_GROUP, version, **{"assignments": given, **chosen, **fields})

    def sync(
        self, shares: Mapping[str, bytes] | None = None, *, version: int = 5, **fields: Any
    ) -> Any:
        """Ask for our share and wait for it."""
        self.send_sync(shares, version=version, **fields)
        return self.receive()

    def heartbeat(self, *, version: int = 4, **fields: Any) -> int:
        """Return the error code of one heartbeat."""
        self.send(HEARTBEAT, version, **fields)
        return int(self.receive().error_code)

    def leave(self, *, version: int = 5) -> Any:
        """Leave, and return the whole answer."""
        member = {"member_id": self.member_id, "group_instance_id": self.instance_id}
        self.send(LEAVE_GROUP, version, members=[{**member, "reason": "the test says so"}])
        return self.receive()

    def commit(self, topic: str, offset: int, *, version: int = 9, **fields: Any) -> int:
        """Commit an offset of partition 0 and return the error code."""
        self.send(OFFSET_COMMIT, version, topics=committed(topic, offset), **fields)
        return int(self.receive().topics[0].partitions[0].error_code)

    def wait_for_heartbeat(self, code: int) -> None:
        """Send heartbeats until one is answered with `code`."""
        wait_for(lambda: self.heartbeat() == code)


def committed(
    topic: str, offset: int, *, partition: int = 0, metadata: str | None = "", epoch: int = -1
) -> list[dict[str, Any]]:
    """The topics of an OffsetCommit of one partition."""
    part = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": epoch,
        "committed_metadata": metadata,
    }
    return [{"name": topic, "partitions": [part]}]


def form(members: Iterable[Member]) -> list[Any]:
    """Bring members into one generation, the first as its leader; return their answers."""
    leader, *others = members
    leader.enter()
    for other in others:
        if other.instance_id is None:
            assert other.join().error_code == MEMBER_ID_REQUIRED
        # From here on the group waits for this member too, so that all come in together.
        other.send_join()
    if others:
        leader.wait_for_heartbeat(REBALANCE_IN_PROGRESS)
        leader.send_join()
    answers = [member.joined() for member in (leader, *others) if others]
    assert all(answer.error_code == NONE for answer in answers)
    return answers


def settle(members: Iterable[Member]) -> None:
    """Bring members into one generation and give each its share, `share of <n>`: Stable."""
    everyone = list(members)
    form(everyone)
    shares = {
        member.member_id: f"share of {index}".encode() for index, member in enumerate(everyone)
    }
    for index, member in enumerate(everyone):
        answer = member.sync(shares if index == 0 else None)
        assert (answer.error_code, answer.assignment) == (NONE, shares[member.member_id])


def state_of(wire: WireClient, group_id: str) -> str:
    """The state of a group as DescribeGroups tells it."""
    described = ask(
        wire, DESCRIBE_GROUPS, 6, groups=[group_id], include_authorized_operations=False
    )
    return str(described.groups[0].group_state)


def kind_of(wire: WireClient, group_id: str) -> str:
    """`classic` or `consumer`, as ListGroups tells it."""
    groups = ask(wire, LIST_GROUPS, 5, states_filter=[], types_filter=[]).groups
    (group,) = [group for group in groups if group.group_id == group_id]
    return str(group.group_type)
