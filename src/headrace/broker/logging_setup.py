"""Structured logs on stderr: one line for people on a terminal, one JSON object a line elsewhere.

A log call passes its facts as `extra={"topic": …}`; both formats show them by name.
Nothing on the request path logs at info or above: what is counted is in `headrace.metrics`.
"""

import json
import logging
import sys
import time
from typing import TextIO

_STANDARD_FIELDS = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line, time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Build the object: time, level, logger and message first, then the facts by name."""
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        entry: dict[str, object] = {
            "time": f"{stamp}.{milliseconds:03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line for a person, local time; an exception's traceback follows it."""

    def format(self, record: logging.LogRecord) -> str:
        """Build the line: time, level, message, then the facts as name=value."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        words = [stamp, f"{record.levelname.lower():7}", record.getMessage()]
        words += [f"{name}={value}" for name, value in _facts(record).items()]
        line = " ".join(words).replace("\n", "\\n")
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def set_up_logging(
    log_format: str | None = None, level: str = "info", stream: TextIO | None = None
) -> None:
    """Send headrace's logs at `level` and everybody else's warnings to `stream` (stderr)."""
    stream = stream or sys.stderr
    if log_format is None:
        log_format = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for old_handler in root.handlers[:]:
        root.removeHandler(old_handler)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("headrace").setLevel(level.upper())


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
