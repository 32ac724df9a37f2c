"""Names that stand in server.properties files although Kafka 4.3.1 itself does not define them.

Some were settings of earlier versions; others belong to plug-ins, which read them past Kafka.
A file with them must work, so they are not errors as a misspelt name is.
"""

_RETIRED = frozenset(
    {
        "advertised.host.name",
        "advertised.port",
        "auto.include.jmx.reporter",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "eligible.leader.replicas.enable",
        "group.coordinator.new.enable",
        "host.name",
        "inter.broker.protocol.version",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "port",
        "quota.consumer.default",
        "quota.producer.default",
        "reserved.broker.max.id",
    }
)
_RETIRED_PREFIXES = ("zookeeper.", "password.encoder.")
_PLUG_INS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
_PLUG_IN_PREFIXES = (
    "authorizer.",
    "config.providers.",
    "confluent.",
    "listener.name.",
    "metrics.",
    "rlmm.config.",
    "rsm.config.",
)


def is_retired(name: str) -> bool:
    """Whether an earlier Kafka had this setting."""
    return name in _RETIRED or name.startswith(_RETIRED_PREFIXES)


def is_for_plug_in(name: str) -> bool:
    """Whether Kafka hands this name on without looking at it."""
    return name in _PLUG_INS or name.startswith(_PLUG_IN_PREFIXES)
