"""The check of replicas that a request places by hand: the one broker there is can hold one."""

from collections.abc import Iterable, Sequence

from headrace.broker.errors import InvalidReplicaAssignmentError


def check_assignments(assignments: Iterable[Sequence[int]], node_id: int) -> None:
    """Raise, in Kafka's words, unless each partition is placed on this broker and nowhere else."""
    for broker_ids in assignments:
        if not broker_ids:
            raise InvalidReplicaAssignmentError(
                "The manual partition assignment includes an empty replica list."
            )
        for broker_id in sorted(broker_ids):
            if broker_id != node_id:
                raise InvalidReplicaAssignmentError(
                    f"The manual partition assignment includes broker {broker_id}, "
                    "but no such broker is registered."
                )
        if len(broker_ids) > 1:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes the broker {node_id} more than once."
            )
