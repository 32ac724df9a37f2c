"""Access: who asks in the wrong way, or for what is not his, is told so and harms nobody."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.contracts.bus import PATIENCE_S, Bus, Deliveries, numbered, poll, values, wait_for

SASL = {"sasl.username": "somebody", "sasl.password": "secret"}


def refusal(bus: Bus, words: str, **config: object) -> KafkaError:
    """The error with these words that a client is told which cannot come in."""
    errors: list[KafkaError] = []
    named = {name.replace("_", "."): value for name, value in config.items()}
    client = AdminClient(
        {"bootstrap.servers": bus.bootstrap, "log_level": 0, "error_cb": errors.append, **named}
    )

    def told() -> KafkaError | None:
        client.poll(0.02)
        return next((error for error in errors if words in error.str()), None)

    return wait_for(told)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_client_that_speaks_tls_to_a_plain_port_is_told_what_is_wrong(
    bus: Bus, protocol: str
) -> None:
    more = {**SASL, "sasl.mechanism": "PLAIN"} if protocol == "SASL_SSL" else {}

    error = refusal(bus, "PLAINTEXT broker listener", security_protocol=protocol, **more)

    assert error.code() == KafkaError._TRANSPORT
    assert "SSL handshake failed" in error.str()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_client_that_wants_to_log_in_where_nobody_does_is_refused(
    bus: Bus, mechanism: str
) -> None:
    error = refusal(
        bus, "SASL", security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **SASL
    )

    assert error.code() == KafkaError._AUTHENTICATION


def test_others_go_on_while_somebody_knocks_in_vain(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(group) as member:
        member.subscribe([topic])
        refusal(bus, "SSL", security_protocol="SSL")
        bus.send(topic, numbered(5))

        assert values(poll(member, 5)) == numbered(5)


def test_a_topic_with_an_impossible_name_is_not_written_to(bus: Bus) -> None:
    with pytest.raises(KafkaException) as refused:
        bus.send("no such name!", [b"v"])

    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


def test_a_partition_that_is_not_there_is_not_written_to(bus: Bus, topic: str) -> None:
    bus.send(topic, [b"v"])
    producer = bus.producer()
    deliveries = Deliveries()
    producer.produce(topic, b"v", partition=7, on_delivery=deliveries)
    producer.flush(PATIENCE_S)

    assert [error.code() for error in deliveries.errors] == [KafkaError._UNKNOWN_PARTITION]


def test_nobody_writes_into_the_topic_of_the_groups(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(group) as member:
        member.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)

    with pytest.raises(KafkaException) as refused:
        bus.send("__consumer_offsets", [b"v"], key=b"k")

    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


def test_a_client_may_ask_what_it_may_do(bus: Bus) -> None:
    answer = bus.admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)

    assert len(answer.nodes) == bus.engine.brokers
    assert answer.controller.id in {node.id for node in answer.nodes}
    assert {operation.name for operation in answer.authorized_operations} == {
        "ALTER",
        "ALTER_CONFIGS",
        "CLUSTER_ACTION",
        "CREATE",
        "DESCRIBE",
        "DESCRIBE_CONFIGS",
        "IDEMPOTENT_WRITE",
    }


@pytest.mark.differs("users and access rules")
def test_users_are_kept(bus: Bus, group: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    wish = UserScramCredentialUpsertion(group, info, b"secret")
    bus.done(bus.admin.alter_user_scram_credentials([wish]))

    wait_for(lambda: group in bus.admin.describe_user_scram_credentials().result(PATIENCE_S))


@pytest.mark.differs("users and access rules")
def test_access_rules_are_listed(bus: Bus) -> None:
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )

    assert bus.admin.describe_acls(everything).result(PATIENCE_S) == []
