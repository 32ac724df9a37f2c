import base64
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError, PropertyError
from headrace.client.librdkafka import in_thread
from headrace.client.making import make_client
from headrace.testing import RunningBroker, running_broker

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: RunningBroker) -> Admin:
    return Admin(Bus(broker.bootstrap), timeout_s=PATIENCE_S)


def send(admin: Admin, topic: str, count: int) -> None:
    producer = Producer(admin.bus.client_config())
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_000 + number)
    assert producer.flush(PATIENCE_S) == 0


def test_a_topic_is_made_grown_and_deleted(admin: Admin) -> None:
    assert admin.create_topic("made", 2, configs={"retention.ms": "1000"})
    admin.grow_topic("made", 3)

    assert sorted(admin.metadata().topics["made"].partitions) == [0, 1, 2]
    assert not admin.ensure_topic("made")
    with pytest.raises(BusError) as refused:
        admin.create_topic("made")
    assert (refused.value.name, refused.value.is_passing) == ("TOPIC_ALREADY_EXISTS", False)

    outcome = admin.delete_topics(["made", "absent"])
    assert outcome["made"] is None
    assert outcome["absent"] is not None
    assert str(outcome["absent"]).startswith("there is no such topic; 'headrace topics list'")


def test_configs_are_set_and_returned_to_their_defaults(admin: Admin) -> None:
    admin.create_topic("configured", 1)

    def value() -> tuple[str | None, bool]:
        (found,) = (each for each in admin.configs("topic", "configured") if each.name == name)
        return found.value, found.is_set_on("topic")

    name = "retention.ms"
    admin.alter_configs("topic", "configured", {name: "5000"})
    assert value() == ("5000", True)
    admin.alter_configs("topic", "configured", {name: None})
    assert value() == ("604800000", False)


def test_offsets_are_those_of_the_log(admin: Admin) -> None:
    admin.create_topic("counted", 2)
    send(admin, "counted", 10)
    first, second = ("counted", 0), ("counted", 1)
    admin.delete_records({first: 4})

    assert admin.oldest_offsets([first, second]) == {first: 4, second: 0}
    assert admin.end_offsets([first, second]) == {first: 10, second: 0}
    assert admin.offsets_at(1_007, [first, second]) == {first: 7, second: 0}
    assert admin.offsets_at(9_000, [first]) == {first: 10}
    assert admin.offsets_at(-1, [first]) == {first: 4}
    assert admin.end_offsets([]) == {}


@pytest.mark.parametrize("ask", [Admin.oldest_offsets, Admin.end_offsets])
def test_a_partition_nobody_leads_does_not_hide_the_offsets_of_others(
    admin: Admin, ask: Callable[..., dict[tuple[str, int], int]]
) -> None:
    admin.ensure_topic("led", 1)

    found = ask(admin, [("led", 0), ("absent", 0), ("led", 7)], is_partial=True)

    assert list(found) == [("led", 0)]
    assert ask(admin, [("absent", 0)], is_partial=True) == {}


def test_a_groups_offsets_are_set_read_and_deleted(admin: Admin) -> None:
    admin.ensure_topic("grouped", 1)
    send(admin, "grouped", 3)

    admin.set_group_offsets("g", {("grouped", 0): 2})

    assert admin.group_offsets("g") == {("grouped", 0): 2}
    listed, described = admin.list_groups(), admin.describe_group("g")
    assert [(each.name, each.state, each.protocol) for each in listed.groups] == [
        ("g", "Empty", "classic")
    ]
    assert listed.errors == ()
    assert (described.state, described.members) == ("Empty", ())
    assert admin.groups_with_offsets(["g", "absent"]) == {"g": (described, {("grouped", 0): 2})}
    assert admin.delete_groups(["g"]) == {"g": None}
    assert admin.group_offsets("g") == {}


def test_a_topics_id_is_written_as_kafkas_tools_write_it(admin: Admin) -> None:
    """Half of all ids have a letter that two kinds of base64 write differently: so, many topics."""
    names = [f"t{number}" for number in range(20)]
    for name in names:
        admin.create_topic(name, 1)

    found = admin.topic_ids([*names, "absent"])

    assert list(found) == names
    assert all(len(base64.urlsafe_b64decode(f"{each}==")) == 16 for each in found.values())
    assert not any(set(each) & set("+/") for each in found.values())
    assert admin.topic_ids([]) == {}


def test_a_broker_and_its_partitions_are_described(admin: Admin) -> None:
    admin.create_topic("described", 2)

    metadata, cluster = admin.metadata(), admin.describe_cluster()

    (broker,) = cluster.brokers
    assert (broker.host, broker.port) == admin.bus.addresses[0]
    assert (cluster.cluster_id, cluster.controller_id) == (metadata.cluster_id, broker.id)
    assert [*metadata.brokers] == [broker.id]
    assert {("described", 0), ("described", 1)} <= {*metadata.led_partitions()}
    partition = metadata.topics["described"].partitions[1]
    assert (partition.number, partition.leader, partition.replicas, partition.isr) == (
        *(1, broker.id),
        *((broker.id,), (broker.id,)),
    )
    assert not partition.is_under_replicated
    (topic,) = admin.describe_topics(["described", "absent"]).values()
    assert topic.partitions == metadata.topics["described"].partitions
    assert topic.topic_id == admin.topic_ids(["described"])["described"]
    assert topic.replication_factor == 1


class Answering:
    """Answers a question after topics with an error, in place of confluent_kafka's AdminClient."""

    def __init__(self, *answers: str) -> None:
        self._answers = [getattr(KafkaError, name) for name in answers]

    def describe_topics(self, asked: Any, request_timeout: float) -> dict[str, Future[Any]]:
        future = Future[Any]()
        future.set_exception(KafkaException(KafkaError(self._answers.pop(0))))
        return {"t": future}


def test_a_topic_that_is_not_to_be_seen_is_not_taken_for_absent_unless_wanted() -> None:
    class Hidden(Admin):
        raw: Any = property(lambda _: Answering("TOPIC_AUTHORIZATION_FAILED"))

    assert Hidden(Bus()).topic_ids(["t"]) == {}
    with pytest.raises(BusError, match="not allowed on the topic"):
        Hidden(Bus()).describe_topics(["t"])


def test_who_waits_in_another_way_replaces_how_a_question_is_asked() -> None:
    """The mirror does so: every method asks by `ask`, and waits by `result`."""
    results = list[object]()

    class Patient(Admin):
        raw: Any = Answering("REQUEST_TIMED_OUT", "_TRANSPORT", "UNKNOWN_TOPIC_OR_PART")

        def ask(self, question: Callable[[], Any]) -> Any:
            while True:
                try:
                    return self.ask_once(question)
                except BusError as error:
                    results.append(error.kind.name)

        def result(self, future: Future[Any]) -> Any:
            results.append("result")
            return future.result()

        def failure(self, reason: Any) -> BusError:
            return BusError(reason, is_passing=True)

    assert Patient(Bus()).topic_ids(["t"]) == {}
    assert results == ["result", "MOVING", "result", "SILENT", "result"]


def test_an_end_before_the_beginning_is_asked_for_again() -> None:
    """librdkafka's answer now and then, where it has no error."""

    class Offsets:
        def __init__(self) -> None:
            self.answers = [-1, 7]

        def list_offsets(self, asked: Any, **_: Any) -> dict[Any, Future[Any]]:
            future = Future[Any]()
            future.set_result(SimpleNamespace(offset=self.answers.pop(0)))
            return dict.fromkeys(asked, future)

    class Asking(Admin):
        raw: Any = Offsets()

    assert Asking(Bus()).end_offsets([("t", 0)]) == {("t", 0): 7}


def test_a_call_that_blocks_is_waited_for_beside_it() -> None:
    come = threading.Event()

    future = in_thread(lambda: come.wait(PATIENCE_S))
    assert not future.done()
    come.set()

    assert future.result(PATIENCE_S)
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0).result(PATIENCE_S)


def test_where_nobody_listens_that_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        bootstrap = f"127.0.0.1:{unused.getsockname()[1]}"

    with pytest.raises(BusError, match=f"^no broker answers at {bootstrap}$") as raised:
        Admin(Bus(bootstrap)).metadata()
    assert (raised.value.name, raised.value.is_passing) == ("", True)


def test_who_listens_and_says_nothing_is_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        bootstrap = f"127.0.0.1:{mute.getsockname()[1]}"

        with pytest.raises(
            BusError, match=r"gave no answer within 0\.3 s; is it a Kafka"
        ) as raised:
            Admin(Bus(bootstrap), timeout_s=0.3).metadata()

    assert (raised.value.is_passing, raised.value.is_timeout) == (True, True)


def test_a_property_that_librdkafka_does_not_take_is_named(broker: RunningBroker) -> None:
    bus = Bus(broker.bootstrap, {"no.such": "1"}, {"no.such": "client.properties:3"})

    with pytest.raises(
        PropertyError, match=r"client.properties:3: no client property is called no"
    ):
        Admin(bus).metadata()


def test_what_a_caller_relies_on_wins_over_the_users_properties() -> None:
    made = dict[str, object]()
    bus = Bus(properties={"acks": "0", "request.required.acks": "1", "client.id": "mine"})

    make_client(bus, made.update, {"client.id": "headrace", "linger.ms": 5}, {"acks": "all"})

    assert made["client.id"] == "mine"
    assert made["linger.ms"] == 5
    # librdkafka has two names for it, and takes what comes last.
    assert list(made.items())[-1] == ("acks", "all")


def test_what_is_only_good_to_know_is_left_out_where_no_broker_tells(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (admin.api_versions() or {})[18] == (0, 4)

    def refuse(*_: object) -> None:
        raise BusError(None, "no", is_passing=False)

    monkeypatch.setattr("headrace.client.wire.WireConnection", refuse)

    assert admin.api_versions() is None
    assert admin.log_sizes() == {}
