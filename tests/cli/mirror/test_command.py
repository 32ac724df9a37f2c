from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Answer
from tests.mirror.conftest import Bus
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.mirror.view import describe
from headrace.mirror.interface import COPYING, FOLLOWING, MirrorProgress
from headrace.testing import running_broker


@pytest.fixture(scope="module")
def buses() -> Iterator[tuple[Bus, Bus]]:
    with running_broker(in_memory=True) as source, running_broker(in_memory=True) as target:
        yield Bus(source.bootstrap), Bus(target.bootstrap)


@pytest.fixture
def mirror(buses: tuple[Bus, Bus], tmp_path: Path) -> Callable[..., Answer]:
    """`headrace mirror` between the two, with more words."""

    def invoke(*words: str, is_back: bool = False) -> Answer:
        source, target = reversed(buses) if is_back else buses
        result = CliRunner().invoke(
            app,
            ["mirror", "--from", source.bootstrap, "--to", target.bootstrap, *words],
            env={"HEADRACE_STATE_DIR": str(tmp_path), "NO_COLOR": "1"},
        )
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return invoke


def test_a_mirror_tells_what_it_would_do_does_it_and_refuses_the_way_back(
    buses: tuple[Bus, Bus], mirror: Callable[..., Answer]
) -> None:
    source, target = buses
    source.create("orders", partitions=2, configs={"retention.ms": "-1"})
    source.numbers("orders", 30, partitions=2)
    source.commit("billing", {("orders", 0): 4})

    looked = mirror("--dry-run", "--json")
    done = mirror("--topics", "ord.*", "--json")
    again = mirror()
    back = mirror(is_back=True)

    assert looked.objects == [
        {
            "topic": "orders",
            "action": "create",
            "partitions": 2,
            "messages": 30,
            "configs": {"retention.ms": "-1"},
        }
    ]
    topic, group, whole = done.objects
    assert (topic["topic"], topic["messages"], topic["verified"]) == ("orders", 30, "checksums")
    assert group == {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "source_offset": 4,
        "target_offset": 4,
    }
    assert (whole["messages"], whole["is_complete"]) == (30, True)
    assert (done.code, again.code, back.code) == (0, 0, 2)
    assert again.lines[1].split() == ["orders", "2", "0", "0", "B", "30", "checksums"]
    assert target.records("orders") == source.records("orders")
    assert back.stdout == ""
    assert "loop" in back.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topics", "("], "--topics (: no regular expression"),
        (["--topics", "nothing"], "no topic at --from"),
        (["--to-X", "no.such=1"], "no client property is called no.such"),
        (["--to-X", "word"], "write NAME=VALUE"),
        (["--to", "127.0.0.1"], "--to 127.0.0.1: write HOST:PORT"),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(
    mirror: Callable[..., Answer], words: list[str], sentence: str
) -> None:
    answer = mirror(*words)

    assert answer.code == 2
    assert sentence in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_bus_that_is_not_there_is_named(mirror: Callable[..., Answer]) -> None:
    answer = mirror("--to", "127.0.0.1:9", "--timeout", "2")

    assert answer.code == 1
    assert "no broker answers at 127.0.0.1:9; start it, or name another with --to" in answer.stderr


def test_both_sides_must_be_named() -> None:
    answer = CliRunner().invoke(app, ["mirror", "--to", "127.0.0.1:9092"])

    assert answer.exit_code == 2
    assert "name the bus: --from HOST:PORT" in answer.stderr


def test_progress_has_a_rate_and_an_estimate() -> None:
    copying = MirrorProgress(COPYING, 1_000_000, 10_000_000, 1_000_000, 1 << 30, 10)
    following = MirrorProgress(FOLLOWING, 5, 5, 7, 100, 10)

    assert describe(copying, 50_000) == (
        "copying: 1,000,000 of 10,000,000, 1.0 GiB, 50,000/s, 3 min 0 s left"
    )
    assert describe(copying, 0).endswith("0/s")
    assert describe(following, 2) == "following: 7 messages, 100 B, 2/s"
