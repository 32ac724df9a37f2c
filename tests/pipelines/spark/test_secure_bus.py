"""Spark's connector logs on to a real Apache Kafka: SASL with a password, TLS with certificates.

Its helper for tokens is of an older Spark than the connector; these prove that the pair works.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Producer
from tests.support.certificates import make_certificates

from headrace.client.bus import Bus
from headrace.kafka.layout import HOST
from headrace.kafka.node import KafkaNode
from headrace.kafka.process import free_ports
from headrace.pipelines.errors import SourceError
from headrace.pipelines.spark.faults import sentence_of
from headrace.pipelines.spark.session import log_file_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

RECORDS = 300
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# A client that is turned away tries for as long as this.
SHORT = {"default.api.timeout.ms": "9000", "request.timeout.ms": "8000"}


class SecureNode(NamedTuple):
    """A node that listens three ways."""

    plain: str
    sasl: str
    tls: str
    certificates: Path


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    directory = tmp_path_factory.mktemp("secure")
    certificates = directory / "certificates"
    make_certificates(certificates)
    plain, controller, sasl, tls = free_ports(4)
    listeners = f"PLAINTEXT://{HOST}:{plain},LOGIN://{HOST}:{sasl},TLS://{HOST}:{tls}"
    settings = {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT,TLS:SSL"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{LOGIN_MODULE} user_alice="secret";',
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(certificates / "broker.pem"),
        "listener.name.tls.ssl.truststore.type": "PEM",
        "listener.name.tls.ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.tls.ssl.client.auth": "required",
    }
    with KafkaNode(directory / "kafka", port=plain, settings=settings):
        producer = Producer({"bootstrap.servers": f"{HOST}:{plain}"})
        for number in range(RECORDS):
            producer.produce("numbers", str(number))
        producer.flush()
        yield SecureNode(f"{HOST}:{plain}", f"{HOST}:{sasl}", f"{HOST}:{tls}", certificates)


def sasl_bus(node: SecureNode, password: str = "secret") -> Bus:
    java = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN_MODULE} username="alice" password="{password}";',
    }
    return Bus(node.sasl, java)


def tls_bus(node: SecureNode, ca: str = "ca.pem") -> Bus:
    java = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(node.certificates / ca),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(node.certificates / "client.pem"),
    }
    return Bus(node.tls, java)


BUSES = {"sasl": sasl_bus, "tls": tls_bus}


@pytest.mark.parametrize("way", BUSES)
def test_the_connector_reads_writes_and_streams(
    spark: "SparkSession", node: SecureNode, way: str, tmp_path: Path
) -> None:
    options = BUSES[way](node).spark_options()
    copy = f"copy-{way}"

    numbers = spark.read.format("kafka").options(**options).option("subscribe", "numbers").load()
    numbers.write.format("kafka").options(**options).option("topic", copy).save()
    stream = spark.readStream.format("kafka").options(**options).option("subscribe", copy)
    stream = stream.option("startingOffsets", "earliest").load()
    query = stream.writeStream.format("parquet").option("path", str(tmp_path / "lake"))
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()

    rows = spark.read.parquet(str(tmp_path / "lake")).collect()
    assert sorted(int(row.value) for row in rows) == list(range(RECORDS))


def refused(spark: "SparkSession", bus: Bus) -> str:
    options = {**bus.spark_options(), **{f"kafka.{key}": value for key, value in SHORT.items()}}
    frame = spark.read.format("kafka").options(**options).option("subscribe", "numbers").load()
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever py4j makes of it
        frame.count()
    error = sentence_of(caught.value, log_file_of(spark))
    assert isinstance(error, SourceError)
    return str(error)


def test_a_wrong_password_is_told(spark: "SparkSession", node: SecureNode) -> None:
    assert refused(spark, sasl_bus(node, "guess")) == (
        "the broker refused the log-on (Authentication failed: Invalid username or password); "
        "check the user name and password in sasl.jaas.config and the mechanism in sasl.mechanism "
        f"(details in {log_file_of(spark)})"
    )


def test_a_stranger_s_certificate_is_told(spark: "SparkSession", node: SecureNode) -> None:
    assert "certificate is not signed by anyone trusted here" in refused(
        spark, tls_bus(node, "other-ca.pem")
    )


def test_sasl_on_a_listener_without_it_is_told(spark: "SparkSession", node: SecureNode) -> None:
    bus = sasl_bus(node)

    assert "does not speak SASL" in refused(spark, Bus(node.plain, bus.properties))


def test_tls_on_a_listener_without_it_is_told(spark: "SparkSession", node: SecureNode) -> None:
    bus = tls_bus(node)

    assert "ends every connection at the log-on" in refused(spark, Bus(node.plain, bus.properties))
