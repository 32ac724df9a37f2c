"""From the text of a setting to its typed value and back, with Kafka's checks and Kafka's words."""

import math
import re
from collections.abc import Callable
from typing import TypeAlias

from headrace.errors import InvalidConfigError
from headrace.settings.catalogue import ConfigType, Setting

Value: TypeAlias = int | float | bool | str | list[str] | None

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)", re.ASCII
)
_COMMA = re.compile(r"\s*,\s*")
_THROTTLED_REPLICAS = re.compile(r"\s*[0-9]+:[0-9]+\s*")
_DURATION = re.compile(
    r"P(?!$)([0-9]+D)?(T(?!$)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?", re.IGNORECASE
)


def parse(setting: Setting, text: str) -> Value:
    """Return the checked value; raises InvalidConfigError as Kafka would."""
    value = _convert(setting, text)
    if isinstance(value, list):
        _check_list(setting, value)
    elif isinstance(value, str):
        _check_text(setting, value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(setting, value)
    if setting.form is not None:
        _FORMS[setting.form](setting, value)
    return value


def show(value: Value) -> str | None:
    """Return the text Kafka shows for a value."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(value)
        case float():
            return _show_double(value)
        case _:
            return str(value)


def split_list(text: str) -> list[str]:
    """Return the entries of a list setting, each once."""
    text = text.strip()
    return list(dict.fromkeys(_COMMA.split(text))) if text else []


def refusal(setting: Setting, value: object, reason: str) -> InvalidConfigError:
    """The error for a value that breaks a rule."""
    message = f"Invalid value {value} for configuration {setting.name}: {reason}"
    return InvalidConfigError(setting.name, value, message)


def _convert(setting: Setting, text: str) -> Value:
    trimmed = text.strip()
    match setting.type:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise refusal(setting, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            limit = 1 << _BITS[setting.type] - 1
            # Twenty characters hold any LONG: more are no number, and int() would be slow on them.
            is_number = len(trimmed) <= 20 and _INTEGER.fullmatch(trimmed)
            if not is_number or not -limit <= int(trimmed) < limit:
                raise refusal(setting, text, f"Not a number of type {setting.type.name}")
            return int(trimmed)
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(trimmed):
                raise refusal(setting, text, "Not a number of type DOUBLE")
            is_word = trimmed.endswith(("NaN", "Infinity"))
            return float(trimmed if is_word else trimmed.rstrip("dDfF"))
        case ConfigType.LIST:
            return split_list(text)
        case ConfigType.PASSWORD | ConfigType.UNKNOWN:
            return text
        case _:
            return trimmed


def _check_number(setting: Setting, value: float) -> None:
    if setting.minimum is not None and value < setting.minimum:
        raise refusal(setting, show(value), f"Value must be at least {setting.minimum}")
    if setting.maximum is not None and value > setting.maximum:
        raise refusal(setting, show(value), f"Value must be no more than {setting.maximum}")


def _check_text(setting: Setting, value: str) -> None:
    if setting.is_never_empty and not value:
        raise refusal(setting, value, "String must be non-empty")
    _check_choice(setting, value)


def _check_list(setting: Setting, values: list[str]) -> None:
    if setting.is_never_empty and not values:
        choices = f"[{', '.join(setting.one_of)}]" if setting.one_of else "any non-empty value"
        message = f"Configuration '{setting.name}' must not be empty. Valid values include: "
        raise InvalidConfigError(setting.name, "", message + choices)
    for value in values:
        _check_choice(setting, value)


def _check_choice(setting: Setting, value: str) -> None:
    choices = ", ".join(setting.one_of)
    if setting.ignores_case:
        if value.upper() not in setting.one_of:
            raise refusal(setting, value, f"String must be one of (case insensitive): {choices}")
    elif setting.one_of and value not in setting.one_of:
        raise refusal(setting, value, f"String must be one of: {choices}")


def _check_gzip_level(setting: Setting, value: Value) -> None:
    if isinstance(value, int) and value != -1 and not 1 <= value <= 9:
        raise refusal(setting, value, "Value must be between 1 and 9 or equal to -1")


def _check_not_zero(setting: Setting, value: Value) -> None:
    if value == 0:
        raise refusal(setting, value, "Value must be unlimited (-1) or at least 1")


def _check_throttled_replicas(setting: Setting, value: Value) -> None:
    entries = value if isinstance(value, list) else []
    if entries != ["*"] and not all(map(_THROTTLED_REPLICAS.fullmatch, entries)):
        raise refusal(
            setting,
            f"[{', '.join(entries)}]",
            f"{setting.name} must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _check_offset_reset(setting: Setting, value: Value) -> None:
    word, colon, duration = str(value).partition(":")
    is_duration = word == "by_duration" and colon and _DURATION.fullmatch(duration)
    if value not in ("earliest", "latest") and not is_duration:
        raise refusal(
            setting,
            value,
            f"Invalid value `{value}` for configuration {setting.name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


_FORMS: dict[str, Callable[[Setting, Value], None]] = {
    "gzip_level": _check_gzip_level,
    "not_zero": _check_not_zero,
    "offset_reset": _check_offset_reset,
    "throttled_replicas": _check_throttled_replicas,
}


def _show_double(value: float) -> str:
    """As Java writes it: an exponent from ten million on and below a thousandth."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for digits in range(1, 18):
        mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return f"{mantissa}E{int(exponent)}"
