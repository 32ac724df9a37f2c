"""docs/compatibility.md, made from the table of APIs and from what tests with real clients proved.

`make docs` writes the page from docs/compatibility-results.json, which `make compatibility`
records; a test fails when the page is out of date. A cell never says more than a test did.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headrace.broker.dispatch import APIS, Api

_HEAD = """\
# Compatibility

<!-- Made by `make docs` from broker/dispatch.py and compatibility-results.json. -->

What is on this page was run, not planned: each cell of the first table is the result of tests in
`tests/interop/` that start the real client against headrace. `make compatibility` runs them again
and records the results, `make docs` writes this page.
"""

_LEGEND = """\
`yes`: every test of it passed. `no`: one failed. `not run`: the client was not on that machine.
Empty: no test; the client has no such thing, or it is in the list below.
"""

# What tests leave out although the client has it, so that no cell says more than it should.
_LEFT_OUT = """\
Left out of these tests or relaxed in them. But for the last two, which were seen on one engine
only, Apache Kafka 4.3.1 gave the same result when it was tried:

- kafka-python 3.0.12, pause and resume: at times the partition is never read again.
- kafka-python 3.0.12, static members: the older of two members with one name is not told.
- franz-go 1.22.2, static members in the next protocol: comes back when its old session is over.
- confluent-kafka, change of protocol online from cooperative-sticky: refused. From range it works.
- Java console tools, cooperative-sticky: may process a message twice when partitions move.
- A change of protocol back to classic: what a classic member has not committed is processed again.
- kcat: leaves a group only when nothing flows, for at SIGTERM it drops a message it has counted.
- kafka-python 3.0.12 forgets a rejoin that outlasts one poll; our member reminds it.
"""

_APIS_HEAD = """\
Versions are those in the answer to ApiVersions. All of Kafka's are served or none: a client that
may choose an API finds in it what Kafka has.
"""

# The order of the page; a feature that is not here comes after these.
_FEATURES = (
    *(f"produce, {codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    *(f"consume, {codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    "any bytes in keys, values and headers",
    "idempotent producer",
    "topic admin",
    "group admin",
    *(
        f"group, {assignor} assignor"
        for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")
    ),
    "group, next protocol (KIP-848)",
    "commit and resume",
    "takes over from a killed member",
    "cooperative rebalancing",
    "static members",
    "groups with other clients",
    "change of protocol online",
    "seek",
    "pause and resume",
)
_CELLS = {"passed": "yes", "failed": "no", "skipped": "not run"}

# Changes of the cluster's members are Apache Kafka's job; the others brokers say to
# each other.
_NEVER = frozenset({27, 64, 80, 81, 83, 84, 85, 86, 87})


class KafkaApi(NamedTuple):
    """One API as Apache Kafka advertises it."""

    key: int
    name: str
    min_version: int
    max_version: int


def kafka_apis() -> tuple[str, list[KafkaApi]]:
    """Kafka's version and the APIs it advertises, by key."""
    text = Path(__file__).with_name("kafka_apis.json").read_text("utf-8")
    document = json.loads(text)
    return document["kafka"], [KafkaApi(*row) for row in document["apis"]]


def render(recorded: dict[str, Any]) -> str:
    """The whole page, from what `--feature-results` recorded."""
    kafka_version, apis = kafka_apis()
    clients = {name: title for name, title in recorded["clients"].items()}
    results = {name: recorded["results"].get(name, {}) for name in clients}
    known = {feature for by_feature in results.values() for feature in by_feature}
    ordered = [name for name in _FEATURES if name in known] + sorted(known - {*_FEATURES})
    features = (
        (feature, *(_cell(results[client].get(feature)) for client in clients))
        for feature in ordered
    )
    rows = ((str(api.key), api.name, _span(api), _served(api)) for api in apis)
    parts = [
        _HEAD,
        "## Clients\n",
        *_table(("", *clients.values()), features),
        _LEGEND,
        _LEFT_OUT,
        "## APIs\n",
        _APIS_HEAD,
        *_table(("key", "API", f"Kafka {kafka_version}", "headrace"), rows),
    ]
    return "\n".join(parts)


def _cell(result: dict[str, str] | None) -> str:
    return _CELLS[result["outcome"]] if result else ""


def _span(api: KafkaApi) -> str:
    return f"{api.min_version}–{api.max_version}"


def _served(api: KafkaApi) -> str:
    ours: Api | None = APIS.get(api.key)
    if ours is None:
        return "never: one broker" if api.key in _NEVER else "not yet"
    return f"{ours.versions[0]}–{ours.versions[-1]}"


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for number, row in enumerate((columns, *rows)):
        yield "| " + " | ".join(row) + " |"
        if number == 0:
            yield "|---" * len(columns) + "|"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(render(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
