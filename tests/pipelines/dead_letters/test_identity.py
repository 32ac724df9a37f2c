from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.client.bus import Bus
from headrace.pipelines.dead_letters.identity import topic_ids
from headrace.pipelines.topic_positions import TopicPositions
from headrace.testing import running_broker


def test_a_letter_and_a_checkpoint_give_a_topic_the_same_id() -> None:
    """Half of all ids have a letter that two kinds of base64 write differently: so, many topics."""
    names = [f"t{number}" for number in range(20)]
    with running_broker() as broker:
        admin: Any = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            future.result(120)

        asked = topic_ids(admin, names, 120)

        assert asked == TopicPositions(Bus(broker.bootstrap), 120).identity(names).topic_ids
        assert len(set(asked.values())) == len(names)
