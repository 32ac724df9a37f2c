"""One member of a group with kafka-python."""

import sys
import warnings

from tests.interop.groups.members.session import Session

with warnings.catch_warnings():
    # Its import reads schemas through a function of importlib that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaError
    from kafka.structs import OffsetAndMetadata

    from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_BATCH = 20


class KafkaPythonMember(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.session = Session()
        config = self.session.config
        self.pending: dict[TopicPartition, int] = {}
        self.is_leaving = False
        self.consumer = KafkaConsumer(
            bootstrap_servers=config.bootstrap,
            group_id=config.group,
            group_instance_id=config.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[_ASSIGNORS[config.assignor]],
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            metadata_max_age_ms=1000,
            fetch_max_wait_ms=100,
            max_poll_records=_BATCH,
        )

    def run(self) -> None:
        session = self.session
        self.consumer.subscribe([session.config.topic], listener=self)
        session.emit("subscribed")
        try:
            while not self.is_leaving:
                for command in session.commands():
                    self.obey(command)
                self.poll()
            while self.pending:  # a rebalance may be in its way; it goes on inside poll
                self.poll()
        except FencedInstanceIdError as error:
            session.emit("error", name="FENCED_INSTANCE_ID", text=str(error), fatal=True)
        self.consumer.close(autocommit=False)
        session.emit("left")

    def poll(self) -> None:
        coordinator = self.consumer._coordinator
        if coordinator._join_task is not None:
            # 3.0.12 forgets a join that outlived a poll when new metadata was its only reason, and
            # hangs; Java's client had the same fault (KAFKA-9815).
            coordinator.request_rejoin()
        for records in self.consumer.poll(timeout_ms=200).values():
            for record in records:
                self.session.processed(record.topic, record.partition, record.offset, record.value)
                self.pending[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self.commit()

    def commit(self) -> None:
        if not self.pending:
            return
        offsets = {
            partition: OffsetAndMetadata(offset, "", -1)
            for partition, offset in self.pending.items()
        }
        try:
            self.consumer.commit(offsets)
        except FencedInstanceIdError:
            raise
        except KafkaError as error:
            self.session.emit("commit failed", name=type(error).__name__, text=str(error))
            if isinstance(error, CommitFailedError):  # no member any more: others go on from there
                self.pending.clear()
        else:
            positions = {each.partition: offset for each, offset in self.pending.items()}
            self.session.emit("committed", offsets=positions)
            self.pending.clear()

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self.session.assigned(assigned)

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.commit()
        self.session.revoked(revoked)

    def on_partitions_lost(self, lost: list[TopicPartition]) -> None:
        self.pending.clear()
        self.session.lost(lost)

    def obey(self, command: dict) -> None:
        what = command["do"]
        if what == "leave":
            self.is_leaving = True
            return
        partition = TopicPartition(self.session.config.topic, command["partition"])
        if what == "pause":
            self.consumer.pause(partition)
        elif what == "resume":
            self.consumer.resume(partition)
        elif what == "seek":
            self.consumer.seek(partition, command["offset"])
        self.session.emit("done", **command)


if __name__ == "__main__":
    sys.exit(KafkaPythonMember().run())
