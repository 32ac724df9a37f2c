import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.consume.test_command import produce
from tests.cli.processes import end_of, headrace_process, read_lines, read_until

from headrace.cli.connection import Connection
from headrace.cli.top.snapshot import ClusterSnapshot, GroupSnapshot
from headrace.cli.top.view import Frame, as_json, print_frame, rate_text
from headrace.testing import broker_process

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def a_frame() -> Frame:
    before = ClusterSnapshot(
        0.0, {("a", 0): 0}, {("a", 0): 0}, {"g": GroupSnapshot("Stable", 1, {("a", 0): 0})}
    )
    after = ClusterSnapshot(
        2.0, {("a", 0): 2001}, {("a", 0): 4096}, {"g": GroupSnapshot("Stable", 1, {("a", 0): 1000})}
    )
    return Frame(NOON, "localhost:9092", before, after)


def test_a_frame_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_frame(a_frame())

    assert capsys.readouterr().out.splitlines() == [
        "12:00:00 UTC  localhost:9092  1,000 messages/s in",
        "TOPIC  PARTITIONS  MESSAGES/S    BYTES/S     SIZE",
        "a               1       1,000  2.0 KiB/s  4.0 KiB",
        "",
        "GROUP  STATE   MEMBERS  MESSAGES/S    LAG",
        "g      Stable        1         500  1,001",
        "",
    ]


def test_a_frame_as_json() -> None:
    assert as_json(a_frame()) == {
        "time": "2026-11-16T12:00:00.000000Z",
        "seconds": 2.0,
        "topics": [
            {
                "topic": "a",
                "partitions": 1,
                "messages_per_s": 1000.5,
                "bytes_per_s": 2048.0,
                "size_bytes": 4096,
            }
        ],
        "groups": [
            {"group": "g", "state": "Stable", "members": 1, "messages_per_s": 500.0, "lag": 1001}
        ],
    }


def test_a_broker_that_is_away_is_told_in_either_form(capsys: pytest.CaptureFixture[str]) -> None:
    frame = Frame(NOON, "localhost:9092", trouble="refused")

    print_frame(frame)

    assert "away: refused; trying again" in capsys.readouterr().out
    assert as_json(frame) == {"time": "2026-11-16T12:00:00.000000Z", "error": "refused"}


@pytest.mark.parametrize(
    ("rate", "text"), [(None, "-"), (0.0, "0"), (0.25, "0.2"), (9.96, "10.0"), (12345.6, "12,346")]
)
def test_a_rate_has_the_digits_that_say_something(rate: float | None, text: str) -> None:
    assert rate_text(rate) == text


def test_once_shows_one_interval_and_ends(run: Run, messages: str, group: str) -> None:
    answer = run("top", "--once", "--interval", 0.2, "--json")

    assert answer.code == 0
    (frame,) = answer.objects
    topics = {each["topic"]: each for each in frame["topics"]}
    groups = {each["group"]: each for each in frame["groups"]}
    assert topics[messages]["partitions"] == 3
    assert topics[messages]["size_bytes"] > 0
    assert "__consumer_offsets" not in topics
    assert groups[group] == {
        "group": group,
        "state": "Empty",
        "members": 0,
        "messages_per_s": 0.0,
        "lag": 5 + 15,
    }


def test_messages_that_come_show_as_a_rate_until_ctrl_c(
    bootstrap: str, topic: str, connection: Connection
) -> None:
    with headrace_process(bootstrap, "top", "--interval", 0.5, "--json") as process:
        rate = 0.0
        while rate == 0:
            produce(connection, topic, *["x" * 100] * 10)
            frame = json.loads(read_lines(process.stdout, 1)[0])
            rates = {each["topic"]: each["messages_per_s"] for each in frame["topics"]}
            rate = rates[topic] or 0
        process.send_signal(signal.SIGINT)
        code, _, told = end_of(process)

    assert (code, told) == (130, "")


def test_topics_and_the_broker_may_come_and_go(tmp_path: Path) -> None:
    with broker_process(tmp_path / "data") as broker:
        port, connection = broker.port, Connection(broker.bootstrap)
        with headrace_process(broker.bootstrap, "top", "--interval", 0.2) as process:
            read_until(process.stdout, "TOPIC")
            produce(connection, "came", "x")
            read_until(process.stdout, "came ")
            assert connection.admin().delete_topics(["came"]) == {"came": None}
            while "came " in read_until(process.stdout, "messages/s in"):
                pass
            broker.kill()
            read_until(process.stdout, "away: ")
            with broker_process(tmp_path / "data", port=port):
                read_until(process.stdout, "TOPIC")
                process.send_signal(signal.SIGINT)
                assert end_of(process)[0] == 130


def test_a_broker_that_is_not_there_at_all_ends_it_with_1(run: Run) -> None:
    answer = run("top", "--once", "--bootstrap", "127.0.0.1:1")

    assert answer.code == 1
    assert "no broker answers at 127.0.0.1:1" in answer.stderr


def test_on_a_terminal_it_has_a_screen_of_its_own(bootstrap: str) -> None:
    master, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "50"}
    environment.pop("NO_COLOR", None)
    with headrace_process(
        bootstrap, "top", "--interval", 0.2, stdout=terminal, environment=environment
    ) as process:
        os.close(terminal)
        shown = b""
        while b"messages/s in" not in shown:
            shown += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        try:
            while block := os.read(master, 4096):
                shown += block
        except OSError:
            pass  # EIO: the last one who had it open is gone
        assert end_of(process)[0] == 130
    os.close(master)

    assert b"\x1b[?1049h" in shown  # the alternate screen
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"messages/s in")
