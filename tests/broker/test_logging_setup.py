import io
import json
import logging
from collections.abc import Iterator

import pytest

from headrace.broker.logging_setup import set_up_logging


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.getLogger("headrace").setLevel(logging.NOTSET)


def logged(log_format: str | None, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    set_up_logging(log_format, level, stream)
    return logging.getLogger("headrace.test"), stream


def test_json_logs_hold_the_facts_by_name() -> None:
    logger, stream = logged("json")

    logger.warning("cut %d bytes", 3, extra={"path": "a-0/x.log", "position": 17})

    entry = json.loads(stream.getvalue())
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "warning",
        "logger": "headrace.test",
        "message": "cut 3 bytes",
        "path": "a-0/x.log",
        "position": 17,
    }


def test_text_logs_are_one_line_with_name_and_value() -> None:
    logger, stream = logged("text")

    logger.info("two\nlines", extra={"topic": "a"})

    assert stream.getvalue().endswith(" info    two\\nlines topic=a\n")
    assert stream.getvalue().count("\n") == 1


def test_what_is_not_a_terminal_gets_json() -> None:
    logger, stream = logged(None)

    logger.info("hello")

    assert json.loads(stream.getvalue())["message"] == "hello"


def test_an_exception_is_part_of_the_json_line() -> None:
    logger, stream = logged("json")

    try:
        raise ValueError("bad")
    except ValueError:
        logger.exception("failed")

    assert "ValueError: bad" in json.loads(stream.getvalue())["exception"]


def test_debug_is_silent_at_info_and_others_below_warning() -> None:
    logger, stream = logged("text")

    logger.debug("hidden")
    logging.getLogger("somebody.else").info("hidden")
    logging.getLogger("somebody.else").warning("shown")

    assert stream.getvalue().count("\n") == 1
    assert "shown" in stream.getvalue()
