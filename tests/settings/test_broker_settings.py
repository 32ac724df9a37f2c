from pathlib import Path

import pytest

from headrace.config import LogConfig
from headrace.errors import ConfigError, InvalidConfigError
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.errors import UnknownSettingError

KAFKAS_OWN_FILE = """
process.roles=broker,controller
node.id=7
controller.quorum.voters=7@127.0.0.1:19193
listeners=PLAINTEXT://127.0.0.1:19192,CONTROLLER://127.0.0.1:19193
advertised.listeners=PLAINTEXT://127.0.0.1:19192
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
num.network.threads=3
log.dirs=/srv/kafka
log.retention.hours=5
zookeeper.connect=localhost:2181
super.users=User:admin
listener.name.plaintext.max.connections=5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def test_the_default_log_config_is_kafkas() -> None:
    assert BrokerSettings.load().log_config({}) == LogConfig()


def test_a_stronger_source_wins_over_a_weaker_one(file: Path) -> None:
    file.write_text("num.partitions=2\nlog.segment.bytes=2097152\nlog.roll.hours=2\n")

    settings = BrokerSettings.load(
        file=file,
        env={"HEADRACE_NUM_PARTITIONS": "3", "HEADRACE_LOG_SEGMENT_BYTES": "3145728"},
        overrides={"num.partitions": "4"},
        defaults={"num.partitions": "5", "log.dirs": "/data"},
    )

    assert settings.int("num.partitions") == 4
    assert settings.int("log.segment.bytes") == 3145728
    assert settings.int("log.roll.hours") == 2
    assert settings.list("log.dirs") == ["/data"]


def test_a_default_of_the_caller_is_not_set_by_anybody() -> None:
    settings = BrokerSettings.load(
        overrides={"num.partitions": "4"}, defaults={"headrace.http.port": "9644"}
    )

    assert settings.int("headrace.http.port") == 9644
    assert not settings.is_set("headrace.http.port")
    assert settings.is_set("num.partitions")


def test_a_file_written_for_kafka_works(file: Path) -> None:
    file.write_text(KAFKAS_OWN_FILE)

    settings = BrokerSettings.load(file=file)

    assert settings.int("node.id") == settings.int("broker.id") == 7
    assert settings.log_config({}).retention_ms == 5 * 3_600_000
    assert settings.list("controller.listener.names") == ["CONTROLLER"]
    assert settings.warnings == (
        f"{file}:12: zookeeper.connect has no effect: a setting of earlier versions of Kafka",
        "no effect with plain listeners and no authorizer, here as in Kafka: "
        f"super.users ({file}:13)",
    )


def test_getters_give_the_type_of_the_setting() -> None:
    settings = BrokerSettings.load()

    assert settings.bool("auto.create.topics.enable") is True
    assert settings.str("compression.type") == "producer"
    assert settings.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.list("log.cleanup.policy") == ["delete"]
    assert settings.list("log.dirs") == []
    assert settings.optional_str("broker.rack") is None
    assert settings["log.retention.ms"] is None


@pytest.mark.parametrize("getter", ["int", "bool", "float", "list"])
def test_a_getter_of_the_wrong_type_is_a_mistake_in_the_program(getter: str) -> None:
    with pytest.raises(TypeError, match=r"compression\.type"):
        getattr(BrokerSettings.load(), getter)("compression.type")


def test_a_bool_is_not_an_int_and_none_is_not_text() -> None:
    settings = BrokerSettings.load()

    with pytest.raises(TypeError):
        settings.int("auto.create.topics.enable")
    with pytest.raises(TypeError):
        settings.str("broker.rack")


def test_asking_for_an_unknown_setting_raises() -> None:
    with pytest.raises(UnknownSettingError, match=r"^Unknown broker config name: no\.such$"):
        BrokerSettings.load()["no.such"]


def test_a_bad_value_names_the_line_of_the_file(file: Path) -> None:
    file.write_text("# ours\nlog.segment.bytes=1000\n")

    with pytest.raises(InvalidConfigError) as caught:
        BrokerSettings.load(file=file)

    assert str(caught.value) == (
        f"{file}:2: Invalid value 1000 for configuration log.segment.bytes: "
        "Value must be at least 1048576"
    )


def test_a_bad_value_names_the_variable_or_the_option() -> None:
    with pytest.raises(ConfigError, match=r"^HEADRACE_NUM_PARTITIONS: Invalid value x "):
        BrokerSettings.load(env={"HEADRACE_NUM_PARTITIONS": "x"})
    with pytest.raises(ConfigError, match=r"^--set num\.partitions: Invalid value 0 "):
        BrokerSettings.load(overrides={"num.partitions": "0"})


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(file: Path) -> None:
    file.write_text("log.segmnt.bytes=2097152\n")

    with pytest.raises(UnknownSettingError) as caught:
        BrokerSettings.load(file=file)

    assert str(caught.value) == (
        f"{file}:1: Unknown broker config name: log.segmnt.bytes; did you mean log.segment.bytes?"
    )


def test_a_bad_value_is_an_error_even_where_a_stronger_source_hides_it(file: Path) -> None:
    file.write_text("num.partitions=none\n")

    with pytest.raises(InvalidConfigError):
        BrokerSettings.load(file=file, overrides={"num.partitions": "1"})


def test_the_old_name_of_the_node_id_still_works() -> None:
    assert BrokerSettings.load(overrides={"broker.id": "3"}).int("node.id") == 3


def test_two_different_ids_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"leave broker\.id out"):
        BrokerSettings.load(overrides={"broker.id": "3", "node.id": "4"})


def test_a_topics_override_wins_over_everything() -> None:
    settings = BrokerSettings.load(overrides={"log.retention.ms": "1", "log.roll.ms": "2"})
    settings.set_dynamic({"log.retention.ms": "3"})

    config = settings.log_config({"retention.ms": "-1", "segment.ms": "5"})

    assert (config.retention_ms, config.segment_ms) == (None, 5)


def test_this_brokers_dynamic_value_wins_over_all_brokers_and_that_over_the_static_one() -> None:
    settings = BrokerSettings.load(overrides={"log.segment.bytes": "2097152"})

    settings.set_dynamic({"default:log.segment.bytes": "3145728"})
    assert settings.log_config({}).segment_bytes == 3145728
    settings.set_dynamic({"default:log.segment.bytes": "3145728", "log.segment.bytes": "4194304"})
    assert settings.log_config({}).segment_bytes == 4194304
    settings.set_dynamic({})
    assert settings.log_config({}).segment_bytes == 2097152


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "2"}, 2 * 3_600_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, None),
        ({"log.retention.ms": "-2"}, None),
    ],
)
def test_the_finest_unit_of_retention_wins(
    static: dict[str, str], retention_ms: int | None
) -> None:
    assert BrokerSettings.load(overrides=static).log_config({}).retention_ms == retention_ms


def test_every_field_of_a_log_config_follows_its_setting() -> None:
    config = BrokerSettings.load().log_config(
        {
            "segment.bytes": "2097152",
            "segment.ms": "2",
            "segment.jitter.ms": "3",
            "segment.index.bytes": "80",
            "index.interval.bytes": "512",
            "retention.ms": "4",
            "retention.bytes": "5",
            "file.delete.delay.ms": "6",
            "flush.messages": "7",
            "flush.ms": "8",
            "max.message.bytes": "9",
            "cleanup.policy": "compact",
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "10",
            "message.timestamp.after.max.ms": "11",
            "preallocate": "true",
        }
    )

    assert config == LogConfig(
        segment_bytes=2097152,
        segment_ms=2,
        segment_jitter_ms=3,
        segment_index_bytes=80,
        index_interval_bytes=512,
        retention_ms=4,
        retention_bytes=5,
        file_delete_delay_ms=6,
        flush_messages=7,
        flush_ms=8,
        max_message_bytes=9,
        is_compacted=True,
        is_deleting=False,
        is_log_append_time=True,
        timestamp_before_max_ms=10,
        timestamp_after_max_ms=11,
        preallocate=True,
    )


def test_small_segments_for_tests_come_from_kafkas_internal_setting() -> None:
    assert BrokerSettings.load().log_config({"internal.segment.bytes": "300"}).segment_bytes == 300


def test_dynamic_settings_are_kept_in_the_form_they_were_given() -> None:
    settings = BrokerSettings.load()
    flat = {
        "log.segment.bytes": "2097152",
        "default:message.max.bytes": "5",
        "group:share.session.timeout.ms:a:b": "46000",
        "client-metrics:metrics:m": "x",
    }

    settings.set_dynamic(flat)

    assert settings.dynamic == flat
    assert settings.dynamic_configs.groups == {"a:b": {"share.session.timeout.ms": "46000"}}
