"""`kill -9` while groups commit: no committed offset ever goes backwards.

Each kill comes after a number of acknowledged commits drawn from a seeded generator.
"""

import contextlib
import random
import threading
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing import BrokerProcess, broker_process

TOPIC = "orders"
PARTITIONS = 3
GROUPS = 4
DEADLINE_SECONDS = 180.0
NOTHING = OFFSET_INVALID  # librdkafka's "nothing committed", below every offset
PATIENT = {
    "log_level": 0,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "enable.auto.commit": False,
}


class Committer:
    """One group that commits ever higher offsets, and the ledger of what it was promised.

    An observer of its own asks for the offsets meanwhile: what it has once seen, it must see
    for ever.
    """

    def __init__(self, bootstrap: str, group_id: str) -> None:
        config = {"bootstrap.servers": bootstrap, "group.id": group_id, **PATIENT}
        self._committing, self._observing, self._checking = (Consumer(config) for _ in range(3))
        self._changed = threading.Condition()
        self._is_over = threading.Event()
        self.acknowledged = NOTHING  # the offset last promised, of each partition
        self.seen = [NOTHING] * PARTITIONS
        self.commits = 0
        self.faults: list[str] = []
        self._threads = [
            threading.Thread(target=self._commit, name=f"{group_id} commits"),
            threading.Thread(target=self._observe, name=f"{group_id} observes"),
        ]

    def __enter__(self) -> "Committer":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._committing.close()
        self._observing.close()
        self._checking.close()

    def wait_for(self, commits: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.commits >= commits, DEADLINE_SECONDS)

    def committed(self) -> list[int]:
        """What the broker says now; retried, for it may just be starting."""
        asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        return [one.offset for one in self._checking.committed(asked, DEADLINE_SECONDS)]

    def _commit(self) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            offsets = [TopicPartition(TOPIC, one, number) for one in range(PARTITIONS)]
            try:
                self._committing.commit(offsets=offsets, asynchronous=False)
            except KafkaException:
                continue  # nobody knows whether it happened, for the broker died over it
            with self._changed:
                self.acknowledged = number
                self.commits += 1
                self._changed.notify_all()

    def _observe(self) -> None:
        asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        while not self._is_over.is_set():
            promised = self.acknowledged
            try:
                answer = self._observing.committed(asked, timeout=2)
            except KafkaException:
                continue
            for partition, one in enumerate(answer):
                least = max(self.seen[partition], promised)
                if one.error is None and one.offset < least:
                    self.faults.append(f"partition {partition}: {one.offset} after {least}")
                self.seen[partition] = max(self.seen[partition], one.offset)


@pytest.mark.parametrize(
    "kills", [5, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="100")]
)
def test_no_committed_offset_goes_backwards_over_kills(
    tmp_path: Path, port: int, kills: int
) -> None:
    rng = random.Random(kills)
    with contextlib.ExitStack() as brokers, contextlib.ExitStack() as groups:

        def start() -> BrokerProcess:
            # Few partitions and early compaction: kills fall into cleanings too.
            return brokers.enter_context(
                broker_process(
                    tmp_path, port=port, offsets_topic_num_partitions=2, log_cleaner_backoff_ms=100
                )
            )

        broker = start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(DEADLINE_SECONDS)
        committers = [
            groups.enter_context(Committer(broker.bootstrap, f"group-{number}"))
            for number in range(GROUPS)
        ]
        for _ in range(kills):
            victim = rng.choice(committers)
            victim.wait_for(victim.commits + rng.randint(1, 40))
            broker.kill()
            promised = [one.acknowledged for one in committers]
            broker = start()
            for committer, least in zip(committers, promised, strict=True):
                assert all(now >= least for now in committer.committed())

    assert [committer.faults for committer in committers] == [[]] * GROUPS
    print(f"\n{sum(one.commits for one in committers)} commits over {kills} kills")
