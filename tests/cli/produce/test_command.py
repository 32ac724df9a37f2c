import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.processes import end_of, headrace_process, read_until

from headrace.testing import broker_process, running_broker


def records(run: Run, topic: str) -> list[Any]:
    """All that is in the topic, in the order of offsets of one partition after the other."""
    found = run("consume", topic, "--json").objects
    return sorted(found, key=lambda record: (record["partition"], record["offset"]))


def values(run: Run, topic: str) -> list[str]:
    return [record["value"] for record in records(run, topic)]


def write(tmp_path: Path, content: str | bytes, name: str = "input") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_each_line_of_each_file_is_a_message(run: Run, topic: str, tmp_path: Path) -> None:
    first, second = write(tmp_path, "a\n\nb", "1"), write(tmp_path, "c\r\n", "2")

    answer = run("produce", topic, "--partition", 0, first, second)

    assert (answer.code, answer.stdout) == (0, "")
    assert "4 messages, 4 bytes" in answer.stderr
    assert "0 failed" in answer.stderr
    assert values(run, topic) == ["a", "", "b", "c\r"]


def test_lines_of_stdin_are_messages(bootstrap: str, run: Run, topic: str) -> None:
    with headrace_process(
        bootstrap, "produce", topic, "--partition", 1, stdin=subprocess.PIPE
    ) as process:
        stdout, stderr = process.communicate(b"a\nb\n", timeout=180)

    assert (process.returncode, stdout) == (0, b"")
    assert b"2 messages" in stderr
    assert values(run, topic) == ["a", "b"]


def test_a_key_a_header_and_a_codec_hold_for_every_message(
    run: Run, topic: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "a\nb\n")

    run("produce", topic, path, "--key", "k", "--header", "h=1", "--header", "n", "--codec", "lz4")

    found = records(run, topic)
    assert [record["key"] for record in found] == ["k", "k"]
    assert found[0]["headers"] == [{"key": "h", "value": "1"}, {"key": "n", "value": None}]


def test_a_separator_parts_keys_from_values(run: Run, topic: str, tmp_path: Path) -> None:
    path = write(tmp_path, "k1=>v1\nk2=>v2\n")

    assert run("produce", topic, path, "--key-separator", "=>", "--partition", 0).code == 0

    pairs = [(record["key"], record["value"]) for record in records(run, topic)]
    assert pairs == [("k1", "v1"), ("k2", "v2")]


@pytest.mark.parametrize("options", [["--null"], ["--delimiter", r"\0"], ["--delimiter", r"\x00"]])
def test_lines_may_end_otherwise(run: Run, topic: str, tmp_path: Path, options: list[str]) -> None:
    path = write(tmp_path, b"a\nb\0c\0")

    run("produce", topic, path, "--partition", 0, *options)

    assert values(run, topic) == ["a\nb", "c"]


def test_a_whole_file_is_one_message(run: Run, topic: str, tmp_path: Path) -> None:
    first, second = write(tmp_path, "a\nb\n", "1"), write(tmp_path, "", "2")

    answer = run("produce", topic, first, second, "--whole-file", "--partition", 0)

    assert answer.code == 0
    assert values(run, topic) == ["a\nb\n", ""]


def test_json_lines_carry_everything_and_come_back_the_same(
    run: Run, topic: str, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000  # retention would take what is from long ago
    lines = [
        {"key": "k", "value": {"a": 1}, "headers": {"h": "x"}, "timestamp": now_ms, "partition": 2},
        {"key_base64": "/w==", "value": None, "timestamp": now_ms - 5, "partition": 2},
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n")

    assert run("produce", topic, path, "--json-lines").code == 0

    first, second = records(run, topic)
    assert (first["key"], first["value"], first["timestamp"]) == ("k", '{"a":1}', now_ms)
    assert (second["key_base64"], second["value"], second["partition"]) == ("/w==", None, 2)
    copy = write(tmp_path, run("consume", topic, "--json").stdout, "copy")
    assert run("produce", topic, copy, "--json-lines").code == 0
    third, fourth = records(run, topic)[2:]
    assert third == {**first, "offset": 2}
    assert fourth == {**second, "offset": 3}


def test_a_bad_line_stops_it_with_its_place(run: Run, topic: str, tmp_path: Path) -> None:
    path = write(tmp_path, '{"value": "a"}\n{"value": \n{"value": "c"}\n')

    answer = run("produce", topic, path, "--json-lines")

    assert answer.code == 1
    assert f"{path}:2: not JSON" in answer.stderr
    assert "1 messages" in answer.stderr
    assert values(run, topic) == ["a"]


def test_bad_lines_may_be_skipped_and_are_counted(run: Run, topic: str, tmp_path: Path) -> None:
    path = write(tmp_path, "a\n" * 20 + "k:v\n")

    answer = run("produce", topic, path, "--key-separator", ":", "--on-error", "skip", "--json")

    assert answer.code == 0
    (summary,) = answer.objects
    assert (summary["messages"], summary["refused"], summary["failed"]) == (1, 20, 0)
    assert f"skipped {path}:10: there is no key separator" in answer.stderr
    assert f"{path}:11" not in answer.stderr  # a flood of complaints helps nobody
    assert values(run, topic) == ["v"]


def test_a_message_that_is_too_large_is_named_and_the_rest_is_sent(
    run: Run, topic: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "a\n" + "x" * 5000 + "\nb\n")

    answer = run(
        "produce", topic, path, "--on-error", "skip", "--partition", 0,
        "-X", "message.max.bytes=1000",
    )  # fmt: skip

    assert f"skipped {path}:2: " in answer.stderr
    assert values(run, topic) == ["a", "b"]


def test_a_line_without_an_end_does_not_fill_the_memory(
    run: Run, topic: str, tmp_path: Path
) -> None:
    path = write(tmp_path, b"a\n" + b"x" * 3_000_000 + b"\nb\n")

    answer = run(
        "produce", topic, path, "--on-error", "skip", "--partition", 0,
        "-X", "message.max.bytes=1000",
    )  # fmt: skip

    assert f"skipped {path}:2: longer than 8000 bytes" in answer.stderr
    assert values(run, topic) == ["a", "b"]


def test_what_the_broker_refuses_fails_with_its_reason(run: Run, tmp_path: Path) -> None:
    topic = f"small-{tmp_path.name}"
    run("topics", "create", topic, "--config", "max.message.bytes=200")
    path = write(tmp_path, "a\n" + "x" * 1000 + "\n")

    answer = run("produce", topic, path, "-X", "batch.num.messages=1")

    assert answer.code == 1
    assert "1 messages were not acknowledged: Broker: Message size too large (1)" in answer.stderr
    assert values(run, topic) == ["a"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--partition", 3], "has partitions 0 to 2"),
        (["--key", "k", "--key-separator", ":"], "--key-separator goes neither"),
        (["--json-lines", "--whole-file"], "--whole-file has no lines"),
        (["--delimiter", ""], "--delimiter cannot be empty"),
        (["--delimiter", r"\q"], "means nothing"),
        (["no-such-file"], "no-such-file: no such file"),
        (["/"], "is a directory"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_sent(
    run: Run, topic: str, options: list[object], reason: str, tmp_path: Path
) -> None:
    answer = run("produce", topic, write(tmp_path, "a\n"), *options)

    assert answer.code == 2
    assert reason in answer.stderr
    assert values(run, topic) == []


def test_a_topic_that_the_broker_creates_by_itself_is_waited_for(
    run: Run, topic: str, tmp_path: Path
) -> None:
    new = f"{topic}-new"

    assert run("produce", new, write(tmp_path, "a\n")).code == 0

    assert values(run, new) == ["a"]


def test_a_topic_that_nobody_creates_is_told_at_once(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path, "a\n")
    with running_broker(auto_create_topics_enable="false") as broker:
        answer = run("produce", "absent", path, "--bootstrap", broker.bootstrap)

    assert answer.code == 1
    assert "there is no topic absent" in answer.stderr


def test_ctrl_c_sends_the_lines_that_were_read_and_ends_with_130(
    bootstrap: str, run: Run, topic: str
) -> None:
    with headrace_process(
        bootstrap, "produce", topic, "--partition", 0, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"a\nb\nunfinished")
        process.stdin.flush()
        while values(run, topic) != ["a", "b"]:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stderr is not None
        told = process.stderr.read().decode()

    assert "stdin:3: 10 bytes were read and not sent" in told
    assert "2 messages" in told
    assert values(run, topic) == ["a", "b"]


def test_after_a_second_ctrl_c_what_still_waits_is_told_as_not_acknowledged(
    tmp_path: Path,
) -> None:
    with (
        broker_process(tmp_path / "data") as broker,
        headrace_process(broker.bootstrap, "produce", "t", stdin=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(b"a\n")
        process.stdin.flush()
        while b"a" not in _log_bytes(tmp_path / "data"):
            assert process.poll() is None
        broker.kill()
        process.stdin.write(b"b\nc\n")
        process.stdin.flush()
        read_until(process.stderr, "no broker answers")
        process.send_signal(signal.SIGINT)
        read_until(process.stderr, "messages to be acknowledged")
        process.send_signal(signal.SIGINT)
        code, _, told = end_of(process)

    assert code == 130
    # Three when the broker went before it could say that it has the first.
    assert re.search(r"([23]) messages were not acknowledged: given up .* \(\1\)", told)


def _log_bytes(data_dir: Path) -> bytes:
    return b"".join(path.read_bytes()[61:] for path in data_dir.glob("t-*/*.log"))


def test_progress_is_shown_on_a_terminal_only(bootstrap: str, topic: str, tmp_path: Path) -> None:
    path = write(tmp_path, "line\n" * 1000)
    master, terminal = os.openpty()

    with headrace_process(bootstrap, "produce", topic, path, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while block := _read_terminal(master):
            shown += block
        assert end_of(process)[0] == 0
    os.close(master)

    assert b"messages" in shown
    assert b"1,000 messages, 4,000 bytes" in shown


def _read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:  # EIO: the last one who had it open is gone
        return b""
