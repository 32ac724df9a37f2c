"""Members of groups of the new protocol (KIP-848), and what is said of such groups."""

from typing import Any, Self
from uuid import UUID, uuid4

from tests.interop.group_wire import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    NONE,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SESSION_MS,
    ask,
    committed,
    wait_for,
)
from tests.interop.wire import INCREMENTAL_ALTER_CONFIGS, WireClient

GROUP_RESOURCE = 32
LEAVE, LEAVE_FOR_A_WHILE = -1, -2
Partitions = dict[UUID, list[int]]


def configure_group(wire: WireClient, group_id: str, **configs: object) -> None:
    """Set configs of a group; dots in their names are underscores.

    They do not hold at once: the heartbeat interval that a member is told shows when they do.
    """
    resource = {
        "resource_type": GROUP_RESOURCE,
        "resource_name": group_id,
        "configs": [
            {"name": name.replace("_", "."), "config_operation": 0, "value": str(value)}
            for name, value in configs.items()
        ],
    }
    answer = wire.call(INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    assert answer.responses[0].error_code == NONE, answer.responses[0].error_message


def described(wire: WireClient, group_id: str, *, version: int = 1, **options: Any) -> Any:
    """What ConsumerGroupDescribe says of one group."""
    fields = {"group_ids": [group_id], "include_authorized_operations": False, **options}
    return ask(wire, CONSUMER_GROUP_DESCRIBE, version, **fields).groups[0]


def members_of(wire: WireClient, group_id: str) -> dict[str, Any]:
    """The members of a group of the new protocol, by their ids."""
    group = described(wire, group_id)
    assert group.error_code == NONE, group.error_message
    return {member.member_id: member for member in group.members}


def by_name(assignment: Any) -> dict[str, list[int]]:
    """An assignment in ConsumerGroupDescribe, by topic name."""
    return {part.topic_name: sorted(part.partitions) for part in assignment.topic_partitions}


class Consumer:
    """A member of the new protocol. It remembers its epoch and what it was given."""

    def __init__(
        self,
        wire: WireClient,
        group_id: str,
        member_id: str,
        *topics: str,
        instance_id: str | None = None,
        **defaults: Any,
    ) -> None:
        self.wire = wire
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.member_epoch = 0
        self.assignment: Partitions = {}
        self._joining = {
            "rebalance_timeout": SESSION_MS,
            "subscribed_topic_names": list(topics),
            "topic_partitions": [],
            **defaults,
        }

    def fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """What a heartbeat says in which nothing but `fields` has changed."""
        return {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.member_epoch,
            "instance_id": self.instance_id,
            "rack_id": None,
            "rebalance_timeout": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
            **fields,
        }

    def beat(self, *, version: int = 1, **fields: Any) -> Any:
        """Send one heartbeat; nothing but what `fields` say has changed."""
        answer = ask(self.wire, CONSUMER_GROUP_HEARTBEAT, version, **self.fields(fields))
        if answer.error_code == NONE:
            self.member_id = answer.member_id
            self.member_epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assignment = {
                    part.topic_id: sorted(part.partitions)
                    for part in answer.assignment.topic_partitions
                }
        return answer

    def join(self, *, version: int = 1, **fields: Any) -> Any:
        """Send the first heartbeat, with all that it has to say."""
        return self.beat(version=version, **{"member_epoch": 0, **self._joining, **fields})

    def joined(self) -> Self:
        """Join, and fail when that is refused."""
        answer = self.join()
        assert answer.error_code == NONE, answer.error_message
        return self

    def confirm(self, **fields: Any) -> Any:
        """Say that we own exactly what we were given last, and no longer anything else."""
        owned = [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in self.assignment.items()
        ]
        return self.beat(topic_partitions=owned, **fields)

    def leave(self, epoch: int = LEAVE) -> Any:
        """Go, for good or for a while."""
        return self.beat(member_epoch=epoch)

    def commit(self, topic: str, offset: int, *, version: int = 9, **fields: Any) -> int:
        """Commit an offset of partition 0 and return the error code."""
        identity = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.member_epoch,
            "group_instance_id": self.instance_id,
        }
        topics = committed(topic, offset)
        answer = ask(self.wire, OFFSET_COMMIT, version, topics=topics, **{**identity, **fields})
        return int(answer.topics[0].partitions[0].error_code)

    def fetch_error(self, **fields: Any) -> int:
        """Fetch all offsets in this member's name and return the error code."""
        identity = {"member_id": self.member_id, "member_epoch": self.member_epoch, **fields}
        group = {"group_id": self.group_id, "topics": None, **identity}
        return int(ask(self.wire, OFFSET_FETCH, 9, groups=[group]).groups[0].error_code)


def wait_until_known(wire: WireClient, topic: str) -> None:
    """Real Kafka's coordinator hears of a new topic a little later than its log does."""
    witness = Consumer(wire, f"witness-{uuid4()}", "witness", topic)
    wait_for(lambda: witness.join().error_code == NONE and bool(witness.assignment))
    witness.leave()
