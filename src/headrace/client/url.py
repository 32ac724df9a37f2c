"""A bus as one line: `kafka://user:password@host:9092,host2:9092?security.protocol=SASL_SSL`.

Whatever is wrong with it, no error shows a secret: what may be one is left out of the sentence.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from headrace.client.addresses import parse_addresses
from headrace.client.errors import PropertyError
from headrace.client.secrets import HIDDEN, is_secret
from headrace.properties import Assignment

SCHEME = "kafka"
_PORT = 9092
# Who names a user and nothing else: his password does not cross the network readable.
_WITH_A_USER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


def is_url(text: str) -> bool:
    """Whether it is meant as such a URL, rather than as `host:port`."""
    return text.lower().startswith(f"{SCHEME}://")


def parse_url(text: str, source: str) -> tuple[str, list[Assignment]]:
    """Addresses and properties; PropertyError says what is wrong, after `source`."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.lower() != SCHEME:
        raise _error(text, source, f"a bus's URL begins with {SCHEME}://")
    place, _, query = rest.partition("?")
    user, has_user, hosts = place.rpartition("@")
    hosts = hosts.removesuffix("/")
    if "/" in hosts or "#" in rest:
        raise _error(text, source, "nothing but ?property=value may follow the addresses")
    addresses = ",".join(_with_port(each.strip()) for each in hosts.split(","))
    try:
        parse_addresses(addresses)
    except PropertyError:
        raise _error(
            text, source, "write HOST or HOST:PORT, several with commas between them"
        ) from None
    given = [*_properties(query, text, source)]
    names = [each.name for each in given]
    if has_user:
        name, has_password, password = user.partition(":")
        if not name or not has_password:
            raise _error(text, source, "write USER:PASSWORD before the @")
        ours = {**_WITH_A_USER, "sasl.username": unquote(name), "sasl.password": unquote(password)}
        if twice := {"sasl.username", "sasl.password"} & {*names}:
            raise _error(text, source, f"{min(twice)} stands in it twice")
        given += [Assignment(*each, source) for each in ours.items() if each[0] not in names]
    if len({*names}) < len(names):
        twice = {name for name in names if names.count(name) > 1}
        raise _error(text, source, f"{min(twice)} stands in it twice")
    return addresses, given


def _with_port(host: str) -> str:
    # [::1] has colons of its own.
    return f"{host}:{_PORT}" if host and ":" not in host.rpartition("]")[2] else host


def _properties(query: str, text: str, source: str) -> Iterator[Assignment]:
    for word in filter(None, query.split("&")):
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise _error(text, source, "write ?property=value&property=value after the addresses")
        yield Assignment(unquote(name), unquote(value), f"{source}, {unquote(name)}")


def _error(text: str, source: str, wanted: str) -> PropertyError:
    shown = without_secrets(text)
    sentence = f"{shown} cannot be read: {wanted}"
    if "@" in text:
        sentence += "; / ? # & % in a password are written %2F %3F %23 %26 %25"
    return PropertyError(Assignment("bootstrap.servers", shown, source), sentence)


def without_secrets(text: str) -> str:
    """It, to be shown: what stands before the last @ may be a password."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    if "@" in rest:
        rest = f"{HIDDEN}@{rest.rpartition('@')[2]}"
    place, has_query, query = rest.partition("?")
    words = (word.partition("=") for word in query.split("&"))
    shown = "&".join(
        f"{name}={HIDDEN}" if value and is_secret(unquote(name)) else f"{name}{equals}{value}"
        for name, equals, value in words
    )
    return f"{scheme}{separator}{place}{'?' * bool(has_query)}{shown}"
