import re
from typing import Any

from confluent_kafka import KafkaError
from tests.mirror.conftest import Told

from headrace.client.bus import Bus
from headrace.client.descriptions import GroupList, ListedGroup
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.groups import Groups


class Listing(Endpoint):
    def list_groups(self) -> GroupList:
        silence: Any = KafkaError(KafkaError._TRANSPORT)
        found = [("b", "classic"), ("a", "consumer"), ("s", "share"), ("other", "classic")]
        return GroupList(
            tuple(ListedGroup(name, "Empty", protocol) for name, protocol in found),
            (self.failure(silence),),
        )


def test_groups_that_are_left_out_are_told_of_once() -> None:
    told = Told()
    source = Listing("--from x:1", Bus("x:1"), listener=told)
    groups = Groups(source, source, told, re.compile("."), is_rewinding=False)

    assert groups.names() == groups.names() == ["a", "b"]
    silence, share = told.notes
    assert silence.startswith("groups of a broker that does not answer are left out: --from x:1")
    assert share == "group s is neither classic nor consumer: left out"
