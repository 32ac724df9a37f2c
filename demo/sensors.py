"""The sensors of the demo: what they send, and what is broken on the way.

The feed keeps its own books: what a lake and a table made from it must hold is known here,
without asking the broker or Spark.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

# What a good reading is. A reading without a `not null` field is a bad one.
SCHEMA = (
    "sensor string not null, at timestamp not null, celsius double not null, "
    "humidity double, battery double"
)
SENSORS = 300
BAD_SHARE = 0.01
# Sensors go out of use for good, one after so many messages: a null value, which deletes its row.
RETIRES_EVERY = 7_500
_KEPT_IN_USE = SENSORS // 2


class SensorMessage(NamedTuple):
    """One message; a null value says that the sensor is no more. `kind` names what is bad."""

    key: bytes
    value: bytes | None
    kind: str | None = None


@dataclass(slots=True)
class Books:
    """What was sent, kept by the feed itself."""

    sent: int = 0
    retired: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    # Each sensor in use that ever sent a good reading, and the last one.
    latest: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Sensor:
    name: str
    celsius: float
    humidity: float
    battery: float


class SensorFeed:
    """An endless feed, the same for the same seed but for its times. Used by one thread."""

    def __init__(self, seed: int = 5) -> None:
        self.books = Books()
        self._random = random.Random(seed)
        self._in_use = [self._new_sensor(number) for number in range(SENSORS)]

    def next(self, now: datetime) -> SensorMessage:
        """Make the next message and enter it in the books."""
        self.books.sent += 1
        if self.books.sent % RETIRES_EVERY == 0 and len(self._in_use) > _KEPT_IN_USE:
            return self._retire()
        sensor = self._random.choice(self._in_use)
        reading = self._read(sensor, now)
        key = sensor.name.encode()
        if self._random.random() < BAD_SHARE:
            kind, spoil = self._random.choice(_SPOILERS)
            self.books.bad[kind] += 1
            return SensorMessage(key, spoil(reading, self._random), kind)
        self.books.latest[sensor.name] = sensor.celsius
        return SensorMessage(key, _encode(reading))

    def _new_sensor(self, number: int) -> _Sensor:
        draw = self._random
        return _Sensor(
            f"sensor-{number:03}", draw.gauss(12, 5), draw.uniform(30, 80), draw.uniform(0.5, 1)
        )

    def _retire(self) -> SensorMessage:
        sensor = self._in_use.pop(self._random.randrange(len(self._in_use)))
        self.books.retired += 1
        self.books.latest.pop(sensor.name, None)
        return SensorMessage(sensor.name.encode(), None)

    def _read(self, sensor: _Sensor, now: datetime) -> dict[str, object]:
        draw = self._random
        hour = now.hour + now.minute / 60
        day_curve = 0.02 * math.sin((hour - 9) * math.pi / 12)
        sensor.celsius = round(sensor.celsius + day_curve + draw.gauss(0, 0.05), 2)
        sensor.humidity = round(min(100, max(0, sensor.humidity + draw.gauss(0, 0.2))), 1)
        sensor.battery = max(0, sensor.battery - 1e-7)
        return {
            "sensor": sensor.name,
            "at": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "celsius": sensor.celsius,
            "humidity": sensor.humidity,
            "battery": round(sensor.battery, 3),
        }


def _encode(reading: dict[str, object]) -> bytes:
    return json.dumps(reading, separators=(",", ":")).encode()


def _not_json(reading: dict[str, object], draw: random.Random) -> bytes:
    return f"ERR {draw.randrange(16):#04x} {reading['sensor']}: no answer on the bus".encode()


def _wrong_type(reading: dict[str, object], draw: random.Random) -> bytes:
    return _encode({**reading, "celsius": draw.choice(["warm", "cold", "n/a"])})


def _missing_field(reading: dict[str, object], draw: random.Random) -> bytes:
    missing = draw.choice(["celsius", "at"])
    return _encode({name: value for name, value in reading.items() if name != missing})


def _cut(reading: dict[str, object], draw: random.Random) -> bytes:
    whole = _encode(reading)
    return whole[: draw.randrange(10, len(whole) - 1)]


_SPOILERS: list[tuple[str, Callable[[dict[str, object], random.Random], bytes]]] = [
    ("not JSON", _not_json),
    ("wrong type", _wrong_type),
    ("missing field", _missing_field),
    ("cut in the middle", _cut),
]
