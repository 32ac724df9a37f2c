"""The words of a log-on, without a broker: RFC 7677's own example, and brokers that lie."""

import pytest

from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.log_on import authenticate, tls_context

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
VERDICT = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def log_on(
    monkeypatch: pytest.MonkeyPatch, challenge: str = CHALLENGE, verdict: str = VERDICT
) -> list[str]:
    """Log on as RFC 7677's user to a broker that says this; return what the broker heard."""
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: NONCE)
    bus = Bus(
        properties={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "user",
            "sasl.password": "pencil",
        }
    )
    heard, answers = list[str](), iter([challenge, verdict])

    def exchange(said: bytes) -> bytes:
        heard.append(said.decode())
        return next(answers).encode()

    authenticate(bus, heard.append, exchange)
    return heard


def test_scram_says_what_its_standard_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_on(monkeypatch) == [
        "SCRAM-SHA-256",
        f"n,,n=user,r={NONCE}",
        f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ]


def test_a_broker_that_does_not_know_the_password_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="does not know the password"):
        log_on(monkeypatch, verdict=VERDICT.replace("6rri", "7rri"))


@pytest.mark.parametrize(
    "challenge",
    [CHALLENGE.replace(NONCE, "another"), CHALLENGE.replace("4096", "1000000000")],
    ids=["of another log-on", "that takes an hour"],
)
def test_a_challenge_that_is_none_is_not_taken_up(
    monkeypatch: pytest.MonkeyPatch, challenge: str
) -> None:
    with pytest.raises(ValueError, match="no answer to what was said"):
        log_on(monkeypatch, challenge)


def test_without_sasl_nothing_is_said() -> None:
    authenticate(Bus(), pytest.fail, pytest.fail)


def test_a_store_that_only_librdkafka_reads_is_named_with_what_to_use() -> None:
    bus = Bus(properties={"ssl.keystore.location": "k.p12", "ssl.keystore.type": "PKCS12"})

    with pytest.raises(BusError, match=r"^ssl\.keystore\.location: .*use ssl\.certificate\.loc"):
        tls_context(bus)


@pytest.mark.parametrize(
    "challenge",
    [
        CHALLENGE.replace("4096", "1"),  # to try passwords at, four thousand times as fast
        CHALLENGE.replace("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", ""),
    ],
)
def test_a_challenge_that_makes_the_password_easy_to_guess_is_not_answered(
    challenge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="no answer to what was said"):
        log_on(monkeypatch, challenge=challenge)
