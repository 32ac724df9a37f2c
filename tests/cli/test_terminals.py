"""What commands show on a terminal of 80 columns, and in which state they leave it."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.terminals import on_a_terminal

from headrace.cli.connection import Connection
from headrace.cli.endings import EXIT_INTERRUPTED
from headrace.testing import running_broker


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Connection(bootstrap, timeout_s=120).producer()
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(120) == 0


@pytest.mark.spark
def test_a_pipeline_shows_its_figures_until_ctrl_c_and_leaves_the_terminal_as_it_was(
    tmp_path: Path,
) -> None:
    words = ("pipeline", "run", "archive", "--topic", "orders", "--to", f"parquet:{tmp_path}/lake")
    state = {"HEADRACE_STATE_DIR": str(tmp_path / "state")}
    with running_broker(in_memory=True) as broker, ExitStack() as stack:
        produce(broker.bootstrap, "orders", 10)
        terminal = stack.enter_context(on_a_terminal(broker.bootstrap, *words, environment=state))
        terminal.wait_until(lambda text: "10 rows ·" in text)
        produce(broker.bootstrap, "orders", 20)
        shown = terminal.wait_until(lambda text: "30 rows ·" in text)
        terminal.press_ctrl_c()
        code = terminal.end()
        is_sane = terminal.is_sane

    assert shown.startswith("archive: topic orders")
    assert re.search(r"^ orders +0 +30 +30 +0$", shown, re.MULTILINE)
    assert code == EXIT_INTERRUPTED
    assert re.fullmatch(r"stopped; 30 rows in \d+ batch(es)?, .*", terminal.lines[-1])
    assert is_sane


def test_top_shows_whole_names_and_gives_the_screen_back() -> None:
    name = "a-topic-with-a-name-of-some-length-as-they-are-often"
    with (
        running_broker(in_memory=True) as broker,
        on_a_terminal(broker.bootstrap, "top", "--interval", "0.5") as terminal,
    ):
        produce(broker.bootstrap, name, 10)
        shown = terminal.wait_until(lambda text: name[:20] in text)
        terminal.press_ctrl_c()
        code = terminal.end()
        is_sane = terminal.is_sane

    assert "messages/s" in shown
    words = re.findall(r"^ ([\w-]+)", shown, re.MULTILINE)
    assert name in "".join(words)
    assert code == EXIT_INTERRUPTED
    assert is_sane


def test_top_shows_its_figures_on_a_terminal_that_cannot_draw() -> None:
    words = ("top", "--interval", "0.5")
    with (
        running_broker(in_memory=True) as broker,
        on_a_terminal(broker.bootstrap, *words, environment={"TERM": "dumb"}) as terminal,
    ):
        produce(broker.bootstrap, "orders", 10)
        terminal.wait_until(lambda text: "orders" in text)
        terminal.press_ctrl_c()
        code = terminal.end()

    assert code == EXIT_INTERRUPTED
