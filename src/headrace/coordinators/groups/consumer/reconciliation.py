"""How one member gets from what it has to what it shall have, one heartbeat at a time.

First it gives up what it may not keep (UnrevokedPartitions) and stays in its epoch until it has
said so. Then it moves to the target's epoch and gets what is free; for what others still hold it
waits (UnreleasedPartitions). So no partition ever has two owners.
"""

from collections.abc import Callable, Container
from uuid import UUID

from headrace.coordinators.errors import FencedMemberEpochError
from headrace.coordinators.groups.consumer.state import (
    STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
)
from headrace.coordinators.groups.records import Assignment, CurrentAssignment

# Partitions of each topic, each with the epoch at which the member got it.
WithEpochs = dict[UUID, dict[int, int]]


def with_epochs(
    partitions: Assignment, epochs: Assignment | None, default_epoch: int
) -> WithEpochs:
    """Join partitions and their epochs; records of older brokers have none."""
    joined: WithEpochs = {}
    for topic, found in partitions.items():
        known = epochs.get(topic, ()) if epochs else ()
        if len(known) == len(found):
            joined[topic] = dict(zip(found, known, strict=True))
        else:
            joined[topic] = dict.fromkeys(found, default_epoch)
    return joined


def owns_any(owned: Assignment | None, among: WithEpochs) -> bool:
    """Whether a member still has one of these; one that does not say is taken to have them."""
    if owned is None:
        return True
    return any(
        partition in among.get(topic, ())
        for topic, partitions in owned.items()
        for partition in partitions
    )


class Reconciliation:
    """One member's way to a target, for one heartbeat. Nothing is changed, `step` returns."""

    def __init__(
        self,
        current: CurrentAssignment,
        target_epoch: int,
        target: Assignment,
        *,
        owned: Assignment | None,
        subscribed: Container[UUID],
        owner_of: Callable[[tuple[UUID, int]], str | None],
        subscription_changed: bool = False,
    ) -> None:
        self._current = current
        self._target_epoch, self._target = target_epoch, target
        self._owned, self._subscribed, self._owner_of = owned, subscribed, owner_of
        self._subscription_changed = subscription_changed
        epoch = current.member_epoch
        self._assigned = with_epochs(current.assigned, current.assigned_epochs, epoch)
        self._pending = with_epochs(current.pending_revocation, current.pending_epochs, epoch)

    def step(self) -> CurrentAssignment:
        """What the member has after this heartbeat; the very same when nothing moves."""
        current = self._current
        if current.state == STABLE:
            if current.member_epoch != self._target_epoch:
                return self._towards_target(current.member_epoch)
            return self._without_unsubscribed() if self._subscription_changed else current
        if current.state == UNREVOKED_PARTITIONS:
            if owns_any(self._owned, self._pending):
                return self._without_unsubscribed() if self._subscription_changed else current
            return self._towards_target(current.member_epoch)
        if current.state == UNRELEASED_PARTITIONS:
            return self._towards_target(current.member_epoch)
        if self._owned is None or self._owned:  # a state that only a newer broker knows
            raise FencedMemberEpochError(
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin."
            )
        return self._towards_target(self._target_epoch)

    def _towards_target(self, epoch_until_revoked: int) -> CurrentAssignment:
        kept: WithEpochs = {}
        revoked: WithEpochs = {}
        gained: WithEpochs = {}
        must_wait = False
        for topic in self._target.keys() | self._assigned.keys():
            wanted = self._target.get(topic, ()) if topic in self._subscribed else ()
            had = self._assigned.get(topic, {})
            keeps = {partition: had[partition] for partition in wanted if partition in had}
            gives = {partition: had[partition] for partition in had if partition not in keeps}
            gets: dict[int, int] = {}
            for partition in wanted:
                if partition in keeps:
                    continue
                if self._is_free(topic, partition):
                    gets[partition] = self._target_epoch
                else:
                    must_wait = True
            for part, found in ((kept, keeps), (revoked, gives), (gained, gets)):
                if found:
                    part[topic] = found

        if revoked and owns_any(self._owned, revoked):
            return self._moved(UNREVOKED_PARTITIONS, epoch_until_revoked, kept, revoked)
        for topic, found in gained.items():
            kept[topic] = {**kept.get(topic, {}), **found}
        state = UNRELEASED_PARTITIONS if must_wait else STABLE
        return self._moved(state, self._target_epoch, kept, {})

    def _is_free(self, topic: UUID, partition: int) -> bool:
        # What the member itself was to give up, and has, it may have back.
        owner = self._owner_of((topic, partition))
        return owner is None or partition in self._pending.get(topic, ())

    def _without_unsubscribed(self) -> CurrentAssignment:
        """Ask back at once what the member no longer subscribes to; the rest waits."""
        kept = {t: found for t, found in self._assigned.items() if t in self._subscribed}
        if len(kept) == len(self._assigned):
            return self._current
        revoked = {t: dict(found) for t, found in self._pending.items()}
        for topic, found in self._assigned.items():
            if topic not in kept:
                revoked[topic] = {**revoked.get(topic, {}), **found}
        epoch = self._current.member_epoch
        if owns_any(self._owned, revoked):
            return self._moved(UNREVOKED_PARTITIONS, epoch, kept, revoked)
        return self._moved(self._current.state, epoch, kept, self._pending)

    def _moved(
        self, state: int, epoch: int, assigned: WithEpochs, pending: WithEpochs
    ) -> CurrentAssignment:
        assigned_partitions, assigned_epochs = _split(assigned)
        pending_partitions, pending_epochs = _split(pending)
        return self._current._replace(
            member_epoch=epoch,
            previous_member_epoch=self._current.member_epoch,
            state=state,
            assigned=assigned_partitions,
            pending_revocation=pending_partitions,
            assigned_epochs=assigned_epochs,
            pending_epochs=pending_epochs,
        )


def _split(part: WithEpochs) -> tuple[Assignment, Assignment]:
    """Partitions in order, and their epochs in the same order. Topics have a fixed order too."""
    partitions: Assignment = {}
    epochs: Assignment = {}
    for topic in sorted(part):
        found = sorted(part[topic].items())
        partitions[topic] = tuple(partition for partition, _ in found)
        epochs[topic] = tuple(epoch for _, epoch in found)
    return partitions, epochs
