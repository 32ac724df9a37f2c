"""One member of a group with aiokafka. Its rebalances run beside the loop that processes, so a
lock keeps a partition from being given away between a message and its commit."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, KafkaError
from tests.interop.groups.members.session import Session

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
_BATCH = 20


class AiokafkaMember(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.session = Session()
        config = self.session.config
        self.pending: dict[TopicPartition, int] = {}
        self.is_leaving = False
        self.lock = asyncio.Lock()
        self.consumer = AIOKafkaConsumer(
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
        )

    async def run(self) -> None:
        session = self.session
        self.consumer.subscribe([session.config.topic], listener=self)
        session.emit("subscribed")
        await self.consumer.start()
        try:
            while not self.is_leaving or self.pending:
                for command in session.commands():
                    self.obey(command)
                await self.poll()
        finally:
            await self.consumer.stop()
        session.emit("left")

    async def poll(self) -> None:
        # Not under the lock: it waits for a rebalance to end, and gives nothing during one.
        polled = await self.consumer.getmany(timeout_ms=100, max_records=_BATCH)
        async with self.lock:
            for records in polled.values():
                for record in records:
                    self.session.processed(
                        record.topic, record.partition, record.offset, record.value
                    )
                    self.pending[TopicPartition(record.topic, record.partition)] = record.offset + 1
            await self.commit()

    async def commit(self) -> None:
        if not self.pending:
            return
        try:
            await self.consumer.commit(self.pending)
        except KafkaError as error:
            self.session.emit("commit failed", name=type(error).__name__, text=str(error))
            if isinstance(error, CommitFailedError):  # no member any more: others go on from there
                self.pending.clear()
        else:
            positions = {each.partition: offset for each, offset in self.pending.items()}
            self.session.emit("committed", offsets=positions)
            self.pending.clear()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.session.assigned(assigned)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        async with self.lock:
            await self.commit()
        self.session.revoked(revoked)

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


async def _main() -> None:
    await AiokafkaMember().run()


if __name__ == "__main__":
    asyncio.run(_main())
