"""One line of a dump, as DumpLogSegments prints it or as JSON."""

import base64
import json
from pathlib import Path
from typing import NamedTuple

_OPTIONAL_NAMES = ("deleteHorizonMs", "currentTxnFirstOffset")


class Row(NamedTuple):
    """One line of a dump. `fields` are Kafka's names; bytes and None stay what they are."""

    type: str
    fields: dict[str, object]
    is_damage: bool = False

    def as_text(self) -> str:
        """The line DumpLogSegments prints for it."""
        prefix = "| " if self.type == "record" else ""
        is_decoded = isinstance(self.fields.get("key"), dict)
        words = [
            f"{name}: {_text_of(name, value)}"
            for name, value in self.fields.items()
            if not (value is None and name in ("key", "payload") and not is_decoded)
            and name != "headers"
        ]
        return prefix + " ".join(words)

    def as_json(self, file: Path) -> str:
        """One JSON object; bytes that are not UTF-8 come as <name>Base64."""
        plain: dict[str, object] = {"file": str(file), "type": self.type}
        for name, value in self.fields.items():
            if isinstance(value, bytes):
                name, value = json_bytes(name, value)
            plain[name] = value
        return json.dumps(plain, ensure_ascii=False)


def _text_of(name: str, value: object) -> str:
    if name in _OPTIONAL_NAMES:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if value is None and name == "payload":
        return "<DELETE>"
    if isinstance(value, list):
        return "[" + ",".join(map(str, value)) + "]"
    return str(value)


def json_bytes(name: str, value: bytes) -> tuple[str, str]:
    """Name and text of bytes in JSON: as they are when UTF-8, else as <name>Base64."""
    try:
        return name, value.decode()
    except UnicodeDecodeError:
        return f"{name}Base64", base64.b64encode(value).decode()
