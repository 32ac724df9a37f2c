"""The levels of this process's loggers in Kafka's words: the BROKER_LOGGER resource."""

import logging
from collections.abc import Iterable

from headrace.errors import InvalidConfigError, RequestError

ROOT = "root"
_SET, _DELETE = 0, 1
_OPERATIONS = {2: "APPEND", 3: "SUBTRACT"}
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def levels() -> dict[str, str]:
    """Return the effective level of every logger of headrace's, and of the root."""
    found = {ROOT: _name(logging.getLogger().getEffectiveLevel())}
    for name, logger in logging.root.manager.loggerDict.items():
        if _is_ours(name) and isinstance(logger, logging.Logger):
            found[name] = _name(logger.getEffectiveLevel())
    return dict(sorted(found.items()))


def set_levels(edits: Iterable[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Apply (logger, operation, level) edits: all of them or, with an error, none."""
    changes: list[tuple[str, int]] = []
    known = levels()
    for name, operation, level in edits:
        if operation in _OPERATIONS:
            raise RequestError(
                f"{_OPERATIONS[operation]} operation is not allowed for the BROKER_LOGGER resource"
            )
        if name not in known:
            raise InvalidConfigError(name, level, f"Logger {name} does not exist!")
        if operation == _DELETE:
            if name == ROOT:
                raise RequestError(f"Removing the log level of the {ROOT} logger is not allowed")
            changes.append((name, logging.NOTSET))
            continue
        if level not in _LEVELS:
            raise InvalidConfigError(
                name,
                level,
                f"Cannot set the log level of {name} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(_LEVELS)}",
            )
        changes.append((name, _LEVELS[level]))
    if not validate_only:
        for name, number in changes:
            logging.getLogger(None if name == ROOT else name).setLevel(number)


def _is_ours(name: str) -> bool:
    return name == "headrace" or name.startswith("headrace.")


def _name(number: int) -> str:
    return next((name for name, least in reversed(_LEVELS.items()) if number >= least), "TRACE")
