from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.describe import ConfigEntry
from headrace.settings.layers import ConfigSource


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [each for each in entries if each.name == name]
    return found


def places(found: ConfigEntry) -> list[tuple[str, str | None, int]]:
    return [(name, value, int(source)) for name, value, source in found.synonyms]


def test_all_that_stands_behind_a_topics_retention_is_listed_in_kafkas_order() -> None:
    settings = BrokerSettings.load(overrides={"log.retention.hours": "5"})
    settings.set_dynamic({"log.retention.ms": "1000", "default:log.retention.ms": "2000"})

    found = entry(settings.describe_topic({"retention.ms": "99"}), "retention.ms")

    assert (found.value, found.source) == ("99", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert places(found) == [
        ("retention.ms", "99", 1),
        ("log.retention.ms", "1000", 2),
        ("log.retention.ms", "2000", 3),
        ("log.retention.hours", "5", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_retention_that_comes_from_hours_alone_is_a_default_without_synonyms() -> None:
    settings = BrokerSettings.load(overrides={"log.retention.hours": "5"})

    found = entry(settings.describe_topic({}), "retention.ms")

    assert (found.value, found.source) == ("18000000", ConfigSource.DEFAULT_CONFIG)
    assert places(found) == []


def test_a_value_is_shown_as_it_was_understood_and_the_brokers_as_it_was_written() -> None:
    settings = BrokerSettings.load()
    settings.set_dynamic({"log.cleaner.io.max.bytes.per.second": "5"})

    topic = entry(settings.describe_topic({"retention.ms": " 7 "}), "retention.ms")
    broker = entry(settings.describe_broker(), "log.cleaner.io.max.bytes.per.second")

    assert (topic.value, places(topic)[0]) == ("7", ("retention.ms", "7", 1))
    assert broker.value == "5.0"
    assert places(broker)[0] == ("log.cleaner.io.max.bytes.per.second", "5", 2)


def test_a_secret_is_never_shown() -> None:
    settings = BrokerSettings.load(overrides={"ssl.key.password": "hunter2"})
    settings.set_dynamic({"some.plug.in": "hunter2", "default:other.plug.in": "hunter2"})

    described = settings.describe_broker() + settings.describe_default()

    assert "hunter2" not in str(described)
    found = entry(settings.describe_broker(), "some.plug.in")
    assert (found.value, found.is_sensitive, found.is_read_only) == (None, True, True)
    assert places(found) == [("some.plug.in", None, 2)]


def test_an_internal_setting_is_described_only_where_it_is_set() -> None:
    settings = BrokerSettings.load()

    names = {each.name for each in settings.describe_topic({})}
    found = entry(
        settings.describe_topic({"internal.segment.bytes": "300"}), "internal.segment.bytes"
    )

    assert "internal.segment.bytes" not in names
    assert (found.value, places(found)) == ("300", [("internal.segment.bytes", "300", 1)])


def test_one_listeners_setting_stands_before_the_general_one() -> None:
    settings = BrokerSettings.load(overrides={"listener.name.plaintext.max.connections": "9"})

    found = entry(settings.describe_broker(), "listener.name.plaintext.max.connections")

    assert (found.value, found.is_read_only) == ("9", True)
    assert places(found) == [
        ("listener.name.plaintext.max.connections", "9", 4),
        ("max.connections", "2147483647", 5),
    ]


def test_the_default_for_all_brokers_lists_only_what_was_set_there() -> None:
    settings = BrokerSettings.load(overrides={"log.segment.bytes": "2097152"})
    settings.set_dynamic({"default:log.segment.bytes": "3145728", "message.max.bytes": "5"})

    (found,) = settings.describe_default()

    assert (found.name, found.value) == ("log.segment.bytes", "3145728")
    assert places(found) == [("log.segment.bytes", "3145728", 3)]


def test_a_groups_setting_falls_back_to_the_brokers() -> None:
    settings = BrokerSettings.load(overrides={"group.share.session.timeout.ms": "46000"})

    plain = entry(settings.describe_group({}), "share.session.timeout.ms")
    own = entry(
        settings.describe_group({"share.session.timeout.ms": "47000"}), "share.session.timeout.ms"
    )

    assert (plain.value, int(plain.source)) == ("46000", 4)
    assert (own.value, int(own.source)) == ("47000", 8)
    assert places(own)[1:] == places(plain)


def test_a_metrics_subscription_shows_what_was_set_and_the_defaults() -> None:
    described = BrokerSettings.load().describe_client_metrics({"interval.ms": "5000"})

    assert [(each.name, each.value, int(each.source)) for each in described] == [
        ("interval.ms", "5000", 7),
        ("match", "", 5),
        ("metrics", "", 5),
    ]


def test_only_settings_that_act_are_documented() -> None:
    settings = BrokerSettings.load()

    assert entry(settings.describe_broker(), "log.segment.bytes").documentation
    assert entry(settings.describe_topic({}), "segment.bytes").documentation
    assert entry(settings.describe_broker(), "num.io.threads").documentation is None
    assert entry(settings.describe_topic({}), "min.insync.replicas").documentation is None
