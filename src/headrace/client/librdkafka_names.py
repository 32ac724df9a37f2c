"""Client properties as Java's clients know them, in the words of librdkafka.

A property that means the same in both has one name and passes unchanged. One that librdkafka
has under another name is renamed; one it cannot have is refused, with what to use instead.
What only concerns code of a Java program (serializers and the like) is left out.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.client.errors import PropertyError
from headrace.properties import Assignment

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_LEFT_OUT = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.class",
        "ssl.keystore.type",
        "ssl.truststore.type",
        "value.deserializer",
        "value.serializer",
    }
)
_USE_INSTEAD = {
    "buffer.memory": "queue.buffering.max.kbytes, in KiB",
    "sasl.client.callback.handler.class": "sasl.oauthbearer.method=oidc and its properties",
    "sasl.kerberos.kinit.cmd": "sasl.kerberos.kinit.cmd in librdkafka's form, with -X",
    "sasl.login.callback.handler.class": "sasl.oauthbearer.method=oidc and its properties",
    "security.providers": "the ciphers of OpenSSL: ssl.cipher.suites",
    "ssl.enabled.protocols": "OpenSSL's own configuration; it offers TLS 1.2 and 1.3",
    "ssl.engine.factory.class": "ssl.ca.location, ssl.certificate.location and ssl.key.location",
    "ssl.keymanager.algorithm": "ssl.certificate.location and ssl.key.location",
    "ssl.protocol": "OpenSSL's own configuration; it offers TLS 1.2 and 1.3",
    "ssl.provider": "OpenSSL's own configuration",
    "ssl.secure.random.implementation": "OpenSSL's own configuration",
    "ssl.trustmanager.algorithm": "ssl.ca.location",
}
_MODULE = re.compile(
    r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\s+(.*?);?\s*", re.S
)
_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_OAUTH_OPTIONS = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def translate(properties: Iterable[Assignment]) -> list[Assignment]:
    """The properties as librdkafka knows them; PropertyError for what it cannot have."""
    given = {each.name: each for each in properties}
    translated = list[Assignment]()
    for each in given.values():
        translated += _translate(each, given)
    return translated


def _translate(each: Assignment, given: Mapping[str, Assignment]) -> list[Assignment]:
    name, value, source = each
    if name in _LEFT_OUT:
        return []
    if name in _USE_INSTEAD:
        raise PropertyError(each, f"{name} means nothing to librdkafka; use {_USE_INSTEAD[name]}")
    if name in _RENAMED:
        return [Assignment(_RENAMED[name], value, source)]
    if name == "sasl.jaas.config":
        return _from_jaas(each)
    if name.startswith("ssl.truststore."):
        return _from_truststore(each, given)
    if name.startswith("ssl.keystore."):
        return _from_keystore(each, given)
    if name == "ssl.endpoint.identification.algorithm" and not value:
        return [each._replace(value="none")]
    if name == "partition.assignment.strategy":
        words = (word.strip() for word in value.split(","))
        return [each._replace(value=",".join(_ASSIGNORS.get(word, word) for word in words))]
    return [each]


def _from_jaas(each: Assignment) -> list[Assignment]:
    match = _MODULE.fullmatch(each.value)
    if match is None:
        raise PropertyError(
            each,
            "sasl.jaas.config is not of the form "
            "'MODULE required name=\"value\";'; sasl.username and sasl.password do the same",
        )
    module = match[1].rpartition(".")[2]
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single or bare)
        for name, double, single, bare in _OPTION.findall(match[2])
    }
    if module in ("PlainLoginModule", "ScramLoginModule"):
        missing = [name for name in ("username", "password") if name not in options]
        if missing:
            raise PropertyError(each, f"sasl.jaas.config lacks {' and '.join(missing)}")
        return [
            Assignment(f"sasl.{name}", options[name], each.source)
            for name in ("username", "password")
        ]
    if module == "OAuthBearerLoginModule":
        named = {new: options[old] for old, new in _OAUTH_OPTIONS.items() if old in options}
        named["sasl.oauthbearer.method"] = "oidc"
        return [Assignment(name, value, each.source) for name, value in named.items()]
    raise PropertyError(
        each,
        f"sasl.jaas.config names {module}, which librdkafka does not have; "
        "for Kerberos use sasl.kerberos.keytab and sasl.kerberos.principal",
    )


def _from_truststore(each: Assignment, given: Mapping[str, Assignment]) -> list[Assignment]:
    if _store_type("truststore", given) != "PEM":
        raise PropertyError(
            each,
            f"librdkafka reads no Java truststore ({each.name}); export its "
            "certificates with keytool -exportcert -rfc and name the file in ssl.ca.location",
        )
    if each.name == "ssl.truststore.location":
        return [Assignment("ssl.ca.location", each.value, each.source)]
    return []  # a PEM file of certificates has no password


def _from_keystore(each: Assignment, given: Mapping[str, Assignment]) -> list[Assignment]:
    kind = _store_type("keystore", given)
    if kind == "PKCS12":
        return [each]  # librdkafka has the same two properties for it
    if kind != "PEM":
        raise PropertyError(
            each,
            f"librdkafka reads no Java keystore ({each.name}); convert it with "
            "keytool -importkeystore -deststoretype PKCS12 and set ssl.keystore.type=PKCS12",
        )
    if each.name == "ssl.keystore.location":
        names = ("ssl.certificate.location", "ssl.key.location")
        return [Assignment(name, each.value, each.source) for name in names]
    return []


def _store_type(store: str, given: Mapping[str, Assignment]) -> str:
    """PEM, PKCS12 or JKS: as stated, else by the file's first bytes."""
    if stated := given.get(f"ssl.{store}.type"):
        return stated.value.upper()
    location = given.get(f"ssl.{store}.location")
    if location is None:
        return "PEM"
    try:
        with Path(location.value).open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise PropertyError(location, f"cannot read {location.value}: {error.strerror}") from error
    if b"-----BEGIN" in head:
        return "PEM"
    return "PKCS12" if head[:1] == b"\x30" else "JKS"  # DER of PKCS#12 is a SEQUENCE
