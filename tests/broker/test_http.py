import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.broker.turn_counter import turns_during

from headrace.broker import http
from headrace.broker.http import HttpServer, WriteProbe
from headrace.metrics import Metrics, MetricSample


def run_with_server(
    talk: Callable[[int], Awaitable[bytes]],
    *,
    health: tuple[bool, str] = (True, "ok"),
    readiness: tuple[bool, str] = (True, "ok"),
) -> bytes:
    async def main() -> bytes:
        server = HttpServer(Metrics(), lambda: health, lambda: readiness)
        await server.start("127.0.0.1", 0)
        try:
            return await asyncio.wait_for(talk(server.port), 120)
        finally:
            await server.stop()

    return asyncio.run(main())


def exchange(sent: bytes) -> Callable[[int], Awaitable[bytes]]:
    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    return talk


def get(path: str, method: str = "GET") -> Callable[[int], Awaitable[bytes]]:
    return exchange(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_healthy_broker_answers_200() -> None:
    answer = run_with_server(get("/healthz"))

    assert status_of(answer) == 200
    assert answer.endswith(b"\r\n\r\nok\n")


def test_readiness_says_why_not() -> None:
    answer = run_with_server(get("/readyz"), readiness=(False, "draining"))

    assert status_of(answer) == 503
    assert answer.endswith(b"draining\n")


def test_health_and_readiness_are_two_questions() -> None:
    answer = run_with_server(get("/healthz"), readiness=(False, "draining"))

    assert status_of(answer) == 200


def test_metrics_come_as_prometheus_text() -> None:
    answer = run_with_server(get("/metrics?x=1"))

    assert status_of(answer) == 200
    assert b"Content-Type: text/plain; version=0.0.4" in answer
    assert b"headrace_connections_open 0\n" in answer


def test_a_scrape_of_many_samples_gives_others_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = Metrics()
    metrics.register(lambda: [MetricSample("number", "A number.", at) for at in range(100)])

    async def scrape() -> None:
        server = HttpServer(metrics, lambda: (True, ""), lambda: (True, ""))
        await server.start("127.0.0.1", 0)
        assert b"number 99\n" in await get("/metrics")(server.port)
        await server.stop()

    assert turns_during(scrape(), monkeypatch) >= 50


def test_head_gives_the_length_without_the_body() -> None:
    answer = run_with_server(get("/healthz", "HEAD"))

    assert b"Content-Length: 3\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_another_path_is_not_found() -> None:
    assert status_of(run_with_server(get("/etc/passwd"))) == 404


def test_another_method_is_not_allowed() -> None:
    answer = run_with_server(get("/metrics", "POST"))

    assert status_of(answer) == 405
    assert b"Allow: GET, HEAD\r\n" in answer


@pytest.mark.parametrize("line", [b"\x16\x03\x01\x02\r\n\r\n", b"GET /healthz\r\n\r\n"])
def test_what_is_not_http_is_refused(line: bytes) -> None:
    assert status_of(run_with_server(exchange(line))) == 400


def test_endless_headers_are_cut_off() -> None:
    sent = b"GET / HTTP/1.1\r\n" + b"x" * 20_000

    assert status_of(run_with_server(exchange(sent))) == 431


def test_a_connection_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.01)

    assert status_of(run_with_server(exchange(b"GET /healthz HT"))) == 408


def test_a_connection_over_the_limit_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_MAX_CONNECTIONS", 0)

    assert run_with_server(exchange(b"")) == b""


def test_a_directory_that_takes_writes_is_left_as_it_was(tmp_path: Path) -> None:
    assert WriteProbe(tmp_path)() == (True, "ok")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_named_with_the_reason(tmp_path: Path) -> None:
    is_good, reason = WriteProbe(tmp_path / "gone")()

    assert not is_good
    assert str(tmp_path / "gone") in reason
    assert "No such file" in reason


def test_the_probe_is_believed_for_a_while(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    probe = WriteProbe(directory)
    assert not probe()[0]

    directory.mkdir()

    assert not probe()[0]
