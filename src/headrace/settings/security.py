"""Settings that ask for protection: there is none to be had here yet, so they are refused.

The rule: what would have kept somebody out of a Kafka with these settings stops the start, with
every line that asks for it. What is about security but has no effect in Kafka without such a
line, a keystore beside plain listeners only, is named in one warning. At run time none is taken.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from headrace.errors import InvalidConfigError, RequestError
from headrace.properties import Assignment
from headrace.settings.catalogue import BROKER, find_broker_setting

_PLAIN = "PLAINTEXT"
_PROTOCOLS = "listener.security.protocol.map"
_CLIENT_AUTH = re.compile(r"(listener\.name\.[^.]+\.)?ssl\.client\.auth")
# Plug-ins that refuse requests of anybody, on plain listeners too.
_GUARDS = (
    "authorizer.class.name",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
)
_ABOUT_SECURITY = re.compile(
    r"(listener\.name\.[^.]+\.(.+\.)?)?(ssl|sasl)\..+"
    r"|(listener\.name\.[^.]+\.)?(principal\.builder\.class|connections\.max\.reauth\.ms)"
    r"|authorizer\..+|security\..+|delegation\.token\..+"
    r"|super\.users|allow\.everyone\.if\.no\.acl\.found"
    r"|(create\.topic|alter\.config)\.policy\.class\.name"
)
_REASON = "there is no TLS, SASL, authorizer or policy in headrace yet"
_WAYS_OUT = (
    "remove these lines, or overrule them with --set NAME=VALUE, and listen on loopback "
    "(listeners=PLAINTEXT://127.0.0.1:9092), or run Apache Kafka (headrace kafka up)"
)


def is_about_security(name: str) -> bool:
    """Whether the setting has a say in who may connect, or do what."""
    return _ABOUT_SECURITY.fullmatch(name) is not None


def check_start(chosen: Mapping[str, Assignment]) -> list[str]:
    """Refuse what asks for protection, each line by its place; return warnings for the rest.

    `chosen` is what counts of all sources: a line that a stronger one overrules asks for nothing.
    """
    demands = list(_demands(chosen))
    if demands:
        raise InvalidConfigError(
            demands[0].name,
            demands[0].value,
            "the settings ask for security that would silently be missing: "
            f"{'; '.join(map(_written, demands))}: {_REASON}; {_WAYS_OUT}",
        )
    idle = [
        each for each in chosen.values() if is_about_security(each.name) and not _is_default(each)
    ]
    if not idle:
        return []
    places = ", ".join(f"{each.name} ({each.source})" for each in idle)
    return [f"no effect with plain listeners and no authorizer, here as in Kafka: {places}"]


def refuse_at_run_time(names: Iterable[str]) -> None:
    """Raise RequestError when one of the settings to be changed is about security."""
    refused = sorted(filter(is_about_security, names))
    if refused:
        raise RequestError(
            f"These settings would not be honoured, because {_REASON}: [{', '.join(refused)}]"
        )


def _demands(chosen: Mapping[str, Assignment]) -> Iterator[Assignment]:
    yield from _protected_listeners(chosen)
    protocol = chosen.get("security.inter.broker.protocol")
    if protocol is not None and protocol.value.strip().upper() != _PLAIN:
        yield protocol
    for name, assignment in chosen.items():
        value = assignment.value.strip()
        asks_for_certificates = _CLIENT_AUTH.fullmatch(name) and value.lower() != "none"
        if value and (name in _GUARDS or asks_for_certificates):
            yield assignment


def _protected_listeners(chosen: Mapping[str, Assignment]) -> Iterator[Assignment]:
    """The lines that give clients or brokers a listener which does not speak plain text."""
    protocols = _protocols(chosen)
    controllers = set(_entries(chosen, "controller.listener.names"))
    is_mapped = "listeners" not in chosen and protocols[_PLAIN] != _PLAIN
    for name in ("listeners", "advertised.listeners", "inter.broker.listener.name"):
        listeners = {entry.partition("://")[0].strip() for entry in _entries(chosen, name)}
        # A name without a protocol is no demand: it is refused for what it is, later.
        spoken = {each: protocols.get(each, _PLAIN) for each in listeners - controllers}
        protected = {each for each in spoken if spoken[each] != _PLAIN}
        if protected:
            is_mapped |= any(spoken[each] != each for each in protected)
            yield chosen[name]
    if is_mapped:
        yield chosen[_PROTOCOLS]


def _protocols(chosen: Mapping[str, Assignment]) -> dict[str, str]:
    """What each listener speaks, by its name in capitals."""
    if _PROTOCOLS not in chosen:
        return _KNOWN
    pairs = (entry.rpartition(":") for entry in _entries(chosen, _PROTOCOLS))
    # A name of a protocol that the map leaves out still says what was meant.
    return _KNOWN | {name.strip(): protocol.strip() for name, _, protocol in pairs}


def _entries(chosen: Mapping[str, Assignment], name: str) -> list[str]:
    text = chosen[name].value if name in chosen else ""
    return [entry.strip().upper() for entry in text.split(",") if entry.strip()]


def _is_default(assignment: Assignment) -> bool:
    setting = BROKER.get(assignment.name) or find_broker_setting(assignment.name)
    return setting is not None and assignment.value.strip() == (setting.default or "")


def _written(assignment: Assignment) -> str:
    """The assignment as it stands in its place."""
    name, value, source = assignment
    is_place = ":" in source  # of a file; an option and a variable carry the name themselves
    return f"{source}: {name}={value}" if is_place else f"{source}={value}"


_KNOWN = {name: name for name in (_PLAIN, "SSL", "SASL_PLAINTEXT", "SASL_SSL")}
