"""One member of a group with confluent-kafka, in the classic or in the next protocol."""

import confluent_kafka as ck
from tests.interop.groups.members.session import Session

_BATCH = 20
# What a commit is answered with while the group is on its way to its next generation.
_RETRIABLE = {
    ck.KafkaError.REBALANCE_IN_PROGRESS,
    ck.KafkaError.ILLEGAL_GENERATION,
    ck.KafkaError.STALE_MEMBER_EPOCH,
    ck.KafkaError._WAIT_COORD,
}


class ConfluentMember:
    def __init__(self) -> None:
        self.session = Session()
        config = self.session.config
        self.pending: dict[int, int] = {}  # partition -> next offset, processed and not committed
        self.is_leaving = False
        settings = {
            "bootstrap.servers": config.bootstrap,
            "group.id": config.group,
            "group.protocol": config.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
            "fetch.wait.max.ms": 100,
        }
        if config.protocol == "classic":
            settings["partition.assignment.strategy"] = config.assignor
            settings["session.timeout.ms"] = config.session_timeout_ms
            settings["heartbeat.interval.ms"] = config.heartbeat_interval_ms
        elif config.assignor:
            settings["group.remote.assignor"] = config.assignor
        if config.instance_id:
            settings["group.instance.id"] = config.instance_id
        self.consumer = ck.Consumer(settings)

    def run(self) -> None:
        session = self.session
        self.consumer.subscribe(
            [session.config.topic],
            on_assign=lambda _, partitions: session.assigned(partitions),
            on_revoke=lambda _, partitions: self.revoke(partitions),
            on_lost=lambda _, partitions: self.lose(partitions),
        )
        session.emit("subscribed")
        while not self.is_leaving:
            for command in session.commands():
                self.obey(command)
            self.process(self.consumer.poll(0.1))
            for _ in range(_BATCH):
                if (message := self.consumer.poll(0)) is None:
                    break
                self.process(message)
            self.commit()
        while self.pending:  # a rebalance may be in its way; the callbacks run inside poll
            self.process(self.consumer.poll(0.1))
            self.commit()
        self.consumer.close()
        session.emit("left")

    def process(self, message: ck.Message | None) -> None:
        if message is None:
            return
        if error := message.error():
            self.session.emit("error", name=error.name(), text=error.str(), fatal=error.fatal())
            self.is_leaving = self.is_leaving or error.fatal()
            return
        partition, offset = message.partition(), message.offset()
        self.session.processed(message.topic(), partition, offset, message.value())
        self.pending[partition] = offset + 1

    def commit(self) -> None:
        if not self.pending:
            return
        topic = self.session.config.topic
        offsets = [ck.TopicPartition(topic, *position) for position in self.pending.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except ck.KafkaException as failure:
            error = failure.args[0]
            self.session.emit("commit failed", name=error.name())
            if error.code() not in _RETRIABLE:
                self.pending.clear()
        else:
            self.session.emit("committed", offsets=self.pending)
            self.pending.clear()

    def revoke(self, partitions: list[ck.TopicPartition]) -> None:
        self.commit()
        self.session.revoked(partitions)

    def lose(self, partitions: list[ck.TopicPartition]) -> None:
        self.pending.clear()
        self.session.lost(partitions)

    def obey(self, command: dict) -> None:
        what, topic = command["do"], self.session.config.topic
        if what == "leave":
            self.is_leaving = True
            return
        partition = ck.TopicPartition(topic, command["partition"], command.get("offset", 0))
        if what == "pause":
            self.consumer.pause([partition])
        elif what == "resume":
            self.consumer.resume([partition])
        elif what == "seek":
            self.consumer.seek(partition)
        self.session.emit("done", **command)


if __name__ == "__main__":
    ConfluentMember().run()
