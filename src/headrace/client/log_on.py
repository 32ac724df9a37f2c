"""How a bare socket logs on as a Bus says: TLS, and SASL with PLAIN or SCRAM.

The properties are librdkafka's, and mean here what they mean there.
"""

import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.client.bus import Bus
from headrace.client.errors import BusError

_FALSE = ("false", "f", "0")
_SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_SCRAM)
_CLIENT_HEADER = "n,,"  # no channel binding, nobody else's name
# RFC 7677 asks for 4096, and Java's clients take no fewer: few make the password easy to guess for
# who poses as the broker. One that asks for a billion wants to keep us busy.
_LEAST_ITERATIONS = 4096
_MOST_ITERATIONS = 1_000_000


def secured(connection: socket.socket, host: str, bus: Bus) -> socket.socket:
    """The connection, with TLS around it where the bus has TLS."""
    if _protocol(bus) not in ("SSL", "SASL_SSL"):
        return connection
    context = tls_context(bus)
    wrapped = context.wrap_socket(connection, server_hostname=host, do_handshake_on_connect=False)
    try:
        wrapped.do_handshake()
    except BaseException:
        wrapped.close()
        raise
    return wrapped


def tls_context(bus: Bus) -> ssl.SSLContext:
    """Whom we trust and who we are; BusError names the property whose file is none."""
    given = bus.properties.get
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = given("ssl.endpoint.identification.algorithm") != "none"
    if given("enable.ssl.certificate.verification", "").lower() in _FALSE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    authorities, pem = given("ssl.ca.location", "probe"), given("ssl.ca.pem")
    if authorities != "probe":
        with _naming("ssl.ca.location", bus):
            is_directory = Path(authorities).is_dir()
            context.load_verify_locations(**{"capath" if is_directory else "cafile": authorities})
    if pem:
        with _naming("ssl.ca.pem", bus):
            context.load_verify_locations(cadata=pem)
    elif authorities == "probe":
        context.load_default_certs()
    if revoked := given("ssl.crl.location"):
        with _naming("ssl.crl.location", bus):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if ciphers := given("ssl.cipher.suites"):
        with _naming("ssl.cipher.suites", bus):
            context.set_ciphers(ciphers)
    with _naming("ssl.keystore.location", bus):
        if given("ssl.keystore.location"):
            raise ValueError("only PEM is read here, no PKCS#12; use ssl.certificate.location")
    certificate_name = _present(bus, "ssl.certificate.location", "ssl.certificate.pem")
    if certificate_name is not None:
        key_name = _present(bus, "ssl.key.location", "ssl.key.pem")
        with (
            _naming(key_name or certificate_name, bus),
            _file(bus, certificate_name) as certificate,
            _file(bus, key_name) as key,
        ):
            # Without any password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate or "", key, given("ssl.key.password", ""))
    return context


def _present(bus: Bus, *names: str) -> str | None:
    return next((name for name in names if bus.properties.get(name)), None)


@contextlib.contextmanager
def _naming(name: str, bus: Bus) -> Iterator[None]:
    """Say which property it was that could not be used."""
    try:
        yield
    except (OSError, ValueError) as error:
        sentence = f"{bus.sources.get(name, name)}: {getattr(error, 'strerror', None) or error}"
        raise BusError(None, sentence, is_passing=False) from error


@contextlib.contextmanager
def _file(bus: Bus, name: str | None) -> Iterator[str | None]:
    """A path, also of what was given as text: OpenSSL's Python interface takes nothing else."""
    value = bus.properties[name] if name else None
    if value is None or not str(name).endswith(".pem"):
        yield value
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # for our eyes only
        file.write(value)
        file.flush()
        yield file.name


Exchange = Callable[[bytes], bytes]  # what we say, and what the broker says to that


def authenticate(bus: Bus, shake_hands: Callable[[str], None], exchange: Exchange) -> None:
    """Log on by SASL where the bus has SASL: name the mechanism, then say what it wants to hear."""
    if not _protocol(bus).startswith("SASL_"):
        return
    given = bus.properties.get
    mechanism = (given("sasl.mechanisms") or given("sasl.mechanism") or "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        sentence = f"this question cannot be asked by {mechanism}; {known} are known to it"
        raise BusError(None, sentence, is_passing=False)
    user, password = given("sasl.username", ""), given("sasl.password", "")
    shake_hands(mechanism)
    if mechanism == "PLAIN":
        exchange(f"\0{user}\0{password}".encode())
    else:
        _scram(_SCRAM[mechanism], user, password.encode(), exchange)


def _scram(algorithm: str, user: str, password: bytes, exchange: Exchange) -> None:
    """RFC 5802: both sides prove that they know the password, and neither tells it."""
    nonce = secrets.token_urlsafe(24)
    name = user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = exchange((_CLIENT_HEADER + first).encode()).decode()
    asked = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
    iterations = int(asked["i"])
    is_fresh = asked["r"].startswith(nonce) and len(asked["r"]) > len(nonce)
    if not is_fresh or not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise ValueError("the challenge is no answer to what was said")
    header = base64.b64encode(_CLIENT_HEADER.encode()).decode()
    final = f"c={header},r={asked['r']}"
    signed = f"{first},{challenge},{final}".encode()
    salted = hashlib.pbkdf2_hmac(algorithm, password, base64.b64decode(asked["s"]), iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    signature = hmac.digest(stored_key, signed, algorithm)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))
    verdict = exchange(f"{final},p={proof.decode()}".encode())
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    wanted = b"v=" + base64.b64encode(hmac.digest(server_key, signed, algorithm))
    if not hmac.compare_digest(verdict.split(b",")[0], wanted):
        raise ValueError("the broker does not know the password itself")


def _protocol(bus: Bus) -> str:
    return bus.properties.get("security.protocol", "PLAINTEXT").upper()
