"""Client properties in the words of Java's clients: the way back from `client_properties`.

A command keeps librdkafka's names; Spark's connector is a Java client. What both call the same
passes unchanged, and so does a name only Java knows. What Java cannot have is refused, with what
to use instead.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from headrace.client.errors import PropertyError
from headrace.properties import Assignment

_RENAMED = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "message.max.bytes": "max.request.size",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER = (
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
)
_OAUTH_OPTIONS = {
    "sasl.oauthbearer.client.id": "clientId",
    "sasl.oauthbearer.client.secret": "clientSecret",
    "sasl.oauthbearer.scope": "scope",
}
# How librdkafka itself works: threads, callbacks, logs. Java has no counterpart and needs none.
_ONLY_LIBRDKAFKA = frozenset(
    {
        "api.version.request",
        "broker.address.family",
        "debug",
        "log_level",
        "log.connection.close",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "sasl.oauthbearer.method",
        "sasl.password",
        "sasl.username",
        "socket.keepalive.enable",
        "socket.timeout.ms",
        "statistics.interval.ms",
        *_OAUTH_OPTIONS,
    }
)
# A stream has no group and commits nothing; Spark refuses these.
_ONLY_CONSUMERS = frozenset({"auto.offset.reset", "enable.auto.commit", "group.id"})
_STORES = {
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
    "ssl.key.password": "ssl.key.password",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_PEM = "PEM"


def java_properties(properties: Iterable[Assignment]) -> dict[str, str]:
    """Return librdkafka's properties as Java knows them; PropertyError for what it cannot have."""
    given = {each.name: each for each in properties}
    java = dict[str, str]()
    for name, each in given.items():
        if name == "enable.ssl.certificate.verification":
            _refuse_no_verification(each)
        elif name in _RENAMED:
            java[_RENAMED[name]] = each.value
        elif name in _STORES:
            java[_STORES[name]] = each.value
        elif name == "ssl.endpoint.identification.algorithm":
            java[name] = "" if each.value == "none" else each.value
        elif name in ("ssl.certificate.location", "ssl.key.location"):
            pass  # both together, below
        elif name not in _ONLY_LIBRDKAFKA | _ONLY_CONSUMERS:
            java[name] = each.value
    java |= _stores(given)
    java |= _login(given)
    return java


def _stores(given: dict[str, Assignment]) -> dict[str, str]:
    """What kind of stores there are, and the key store of a certificate and a key."""
    java = dict[str, str]()
    if {"ssl.ca.location", "ssl.ca.pem"} & given.keys():
        java["ssl.truststore.type"] = _PEM
    authority = given.get("ssl.ca.location")
    if authority is not None and not Path(authority.value).is_file():
        raise PropertyError(authority, f"{authority.value} is no file; Java needs a PEM file")
    if "ssl.keystore.location" in given:
        java["ssl.keystore.type"] = "PKCS12"
    if {"ssl.certificate.pem", "ssl.key.pem"} & given.keys():
        java["ssl.keystore.type"] = _PEM
    certificate, key = given.get("ssl.certificate.location"), given.get("ssl.key.location")
    if certificate is None and key is None:
        return java
    if certificate is None or key is None:
        lone = certificate or key
        assert lone is not None
        missing = "ssl.key.location" if key is None else "ssl.certificate.location"
        raise PropertyError(lone, f"{lone.name} needs {missing} beside it")
    java["ssl.keystore.type"] = _PEM
    if certificate.value == key.value:
        java["ssl.keystore.location"] = key.value
        return java
    java["ssl.keystore.certificate.chain"] = _read(certificate)
    java["ssl.keystore.key"] = _read(key)
    if re.search(r"BEGIN (RSA|EC|DSA) PRIVATE KEY", java["ssl.keystore.key"]):
        raise PropertyError(
            key,
            f"Java reads only keys of the form PKCS#8; make {key.value} one with "
            "openssl pkcs8 -topk8 -in KEY -out NEW_KEY",
        )
    return java


def _refuse_no_verification(each: Assignment) -> None:
    if each.value.lower() in ("false", "0", "f"):
        raise PropertyError(
            each,
            "Java always verifies certificates; name the CA in ssl.ca.location, "
            "and for another host name set ssl.endpoint.identification.algorithm=none",
        )


def _login(given: dict[str, Assignment]) -> dict[str, str]:
    """The JAAS line that says who logs in."""
    mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms")
    if mechanism is None:
        return {}
    word = mechanism.value.upper()
    if word in _LOGIN_MODULES:
        names = ("sasl.username", "sasl.password")
        missing = [name for name in names if name not in given]
        if missing:
            raise PropertyError(mechanism, f"{word} needs {' and '.join(missing)}")
        user, password = (given[name].value for name in names)
        return {"sasl.jaas.config": _jaas(_LOGIN_MODULES[word], username=user, password=password)}
    if word == "OAUTHBEARER":
        options = {
            java: given[name].value for name, java in _OAUTH_OPTIONS.items() if name in given
        }
        return {
            "sasl.jaas.config": _jaas(_OAUTH_MODULE, **options),
            "sasl.login.callback.handler.class": _OAUTH_HANDLER,
        }
    raise PropertyError(
        mechanism,
        f"{word} is not passed on to Spark; "
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER are",
    )


def _jaas(module: str, **options: str) -> str:
    words = "".join(f" {name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required{words};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(each: Assignment) -> str:
    try:
        return Path(each.value).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not PEM"
        raise PropertyError(each, f"cannot read {each.value}: {reason}") from error
